//! Programs and kernels.

use crate::{
    NAME, Roc,
    device::{Held, Owner, RocDevice},
    error::Status,
    hiprtc, image,
    stream::RocStream,
};
use gpumem_core::{
    CompileOptions, DriverModule, Error, ErrorKind, KernelArguments, KernelSource, LaunchConfig, Result,
    c_text,
};
use gpumem_sys::hip::{
    dim3, hipFunction_attribute as Attribute, hipFunction_t, hipKernelNodeParams, hipModule_t,
};
use std::{ffi::c_void, ptr::null_mut, sync::Arc};

/// A loaded program. Clones are the same program; the last one unloads it.
#[derive(Debug, Clone)]
pub struct RocModule(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    owner: Owner,
    raw: hipModule_t,
    /// The code object, which HIP may go on reading.
    _image: Vec<u8>,
}

// SAFETY: a module handle is a name that HIP takes from any thread, and its functions are thread-safe.
unsafe impl Send for Loaded {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.owner.destroy_quietly("hipModuleUnload", Held::Module(self.raw.expose_provenance()));
    }
}

impl RocModule {
    pub(crate) fn compile(
        device: &RocDevice,
        source: &KernelSource,
        options: &CompileOptions,
    ) -> Result<Self> {
        const OPERATION: &str = "compile";
        device.check_alive(OPERATION)?;
        match source {
            KernelSource::Text(text) => {
                Self::load(device, hiprtc::compile(text, &device.inner().isa, options)?)
            }
            KernelSource::Binary(bytes) => {
                let build = |log: &str| Error::new(NAME, OPERATION, ErrorKind::Build { log: log.to_owned() });
                image::check(bytes, &device.inner().isa).map_err(build)?;
                Self::load(device, bytes.clone())
            }
            _ => {
                let what = "programs of this form (ROCm takes source text, code objects and bundles of them)";
                Err(Error::new(NAME, OPERATION, ErrorKind::Unsupported { what }))
            }
        }
    }

    /// Loads a code object or a bundle of code objects, which is whole.
    fn load(device: &RocDevice, image: Vec<u8>) -> Result<Self> {
        const OPERATION: &str = "hipModuleLoadData";
        let owner = Owner::new(device);
        let mut raw = null_mut();
        let _current = device.enter(OPERATION)?;
        // SAFETY: a place for a handle; the image is whole, and lives as long as the module.
        let status = Status::from(unsafe {
            device.hip().hipModuleLoadData(&mut raw, image.as_ptr().cast::<c_void>())
        });
        if status.is_about_an_image() {
            device.forget_last_error();
            let log = format!("{status}: the device is {}", device.inner().isa);
            return Err(Error::new(NAME, OPERATION, ErrorKind::Build { log }));
        }
        device.check(status, OPERATION)?;
        device.hold(Held::Module(raw.expose_provenance()));
        Ok(Self(Arc::new(Loaded { owner, raw, _image: image })))
    }
}

// SAFETY: the address and the length of a variable are HIP's answer.
unsafe impl DriverModule<Roc> for RocModule {
    fn variable(&self, name: &str) -> Result<(u64, usize)> {
        const OPERATION: &str = "hipModuleGetGlobal";
        let why = "the module has no variable of that name";
        let missing = || Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why });
        let symbol = c_text::name(name).ok_or_else(missing)?;
        let Loaded { owner, raw, .. } = &*self.0;
        let device = &owner.device;
        let _current = owner.enter(OPERATION, "module")?;
        let (mut address, mut bytes) = (null_mut(), 0);
        // SAFETY: places for an address and a size; the module is alive; the name ends with a zero.
        match Status::from(unsafe {
            device.hip().hipModuleGetGlobal(&mut address, &mut bytes, *raw, symbol.as_ptr())
        }) {
            Status::NOT_FOUND => {
                device.forget_last_error();
                Err(missing())
            }
            status => device.check(status, OPERATION).map(|()| (address.expose_provenance() as u64, bytes)),
        }
    }

    fn kernel(&self, name: &str) -> Result<RocKernel> {
        const OPERATION: &str = "hipModuleGetFunction";
        let missing = || Error::new(NAME, OPERATION, ErrorKind::NoSuchKernel { name: name.to_owned() });
        let symbol = c_text::name(name).ok_or_else(missing)?;
        let Loaded { owner, raw, .. } = &*self.0;
        let (device, hip) = (&owner.device, owner.device.hip());
        let _current = owner.enter(OPERATION, "module")?;
        let mut function = null_mut();
        // SAFETY: a place for a handle; the module is alive; the name ends with a zero.
        match Status::from(unsafe { hip.hipModuleGetFunction(&mut function, *raw, symbol.as_ptr()) }) {
            Status::NOT_FOUND => {
                device.forget_last_error();
                return Err(missing());
            }
            status => device.check(status, OPERATION)?,
        }
        let read = |attribute| {
            let mut value = 0;
            // SAFETY: a place for a number; the function is alive with its module.
            let status = unsafe { hip.hipFuncGetAttribute(&mut value, attribute, function) };
            device.check(status, "hipFuncGetAttribute").map(|()| u32::try_from(value).unwrap_or(0))
        };
        let max_group_size = read(Attribute::HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        let shared_bytes = read(Attribute::HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let found = Function { module: self.clone(), function, max_group_size, shared_bytes };
        Ok(RocKernel(Arc::new(found)))
    }
}

/// One kernel of a module. Clones are the same kernel.
#[derive(Debug, Clone)]
pub struct RocKernel(Arc<Function>);

#[derive(Debug)]
struct Function {
    module: RocModule,
    function: hipFunction_t,
    /// Most work-items of a group that the kernel's registers leave room for.
    max_group_size: u32,
    /// Bytes of shared memory that the kernel declares itself.
    shared_bytes: u32,
}

// SAFETY: a function handle is a name that HIP takes from any thread, and its functions are thread-safe.
unsafe impl Send for Function {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Function {}

impl RocKernel {
    pub(crate) fn function(&self) -> hipFunction_t {
        self.0.function
    }

    /// # Safety
    /// As for [`Stream::launch`](gpumem_core::Stream::launch).
    pub(crate) unsafe fn launch(
        &self,
        stream: &RocStream,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        const OPERATION: &str = "hipModuleLaunchKernel";
        let device = &stream.owner.device;
        self.0.module.0.owner.check(OPERATION, "kernel")?;
        self.check(device, dims)?;
        let _turn = device.enqueue_lock().shared();
        let _current = stream.owner.enter(OPERATION, "stream")?;
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (dims.groups, dims.group_size);
        // SAFETY: the caller promises that the arguments match the kernel's signature. HIP copies them before it
        // returns and writes none.
        let status = arguments.with_pointers(|pointers| unsafe {
            device.hip().hipModuleLaunchKernel(
                self.0.function,
                grid_x,
                grid_y,
                grid_z,
                block_x,
                block_y,
                block_z,
                dims.shared_bytes,
                stream.raw,
                pointers,
                null_mut(),
            )
        });
        device.check(status, OPERATION)
    }

    /// The launch as a node of a graph, with pointers to the arguments.
    pub(crate) fn node_parameters(
        &self,
        device: &RocDevice,
        dims: &LaunchConfig,
        pointers: *mut *mut c_void,
    ) -> Result<hipKernelNodeParams> {
        self.check(device, dims)?;
        let sides = |[x, y, z]: [u32; 3]| dim3 { x, y, z };
        Ok(hipKernelNodeParams {
            blockDim: sides(dims.group_size),
            extra: null_mut(),
            func: self.0.function.cast(),
            gridDim: sides(dims.groups),
            kernelParams: pointers,
            sharedMemBytes: dims.shared_bytes,
        })
    }

    fn check(&self, device: &RocDevice, dims: &LaunchConfig) -> Result<()> {
        let Function { max_group_size, shared_bytes, .. } = *self.0;
        let invalid = |why| Error::new(NAME, "launch", ErrorKind::InvalidArgument { why });
        dims.check(&device.inner().capabilities, max_group_size, shared_bytes).map_err(invalid)?;
        // AMD's packets count work-items, in 32 bits, where CUDA's count groups.
        let mut items = dims.groups.iter().zip(dims.group_size);
        if items.any(|(groups, side)| groups.checked_mul(side).is_none()) {
            return Err(invalid("the launch has more than 2^32 - 1 work-items along one axis"));
        }
        Ok(())
    }
}
