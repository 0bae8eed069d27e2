//! Programs and kernels.

use crate::{
    Cuda, NAME,
    device::{CudaDevice, Owner},
    error::Status,
    image, nvrtc,
    stream::CudaStream,
};
use cudarc::driver::sys::{
    CUDA_KERNEL_NODE_PARAMS, CUfunction, CUfunction_attribute_enum as Attribute,
    CUjit_option_enum as JitOption, CUmodule,
};
use gpumem_core::{
    CompileOptions, DriverModule, Error, ErrorKind, KernelArguments, KernelSource, LaunchConfig, Result,
    c_text,
};
use std::{
    ffi::{CString, c_char, c_void},
    ptr::{null_mut, without_provenance_mut},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Bytes of dynamic shared memory that a kernel gets without opting in, less what it declares itself.
const SHARED_WITHOUT_OPTING_IN: u32 = 48 << 10;
/// Bytes of the log of the driver's assembler.
const LOG_BYTES: usize = 16 << 10;

/// A loaded program. Clones are the same program; the last one unloads it.
#[derive(Debug, Clone)]
pub struct CudaModule(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    owner: Owner,
    raw: CUmodule,
}

// SAFETY: a module handle is a name that the driver takes from any thread, and its functions are thread-safe.
unsafe impl Send for Loaded {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: the module is ours, and no kernel of it is alive.
        self.owner.destroy_quietly("cuModuleUnload", |api| unsafe { api.cuModuleUnload(self.raw) });
    }
}

impl CudaModule {
    pub(crate) fn compile(
        device: &CudaDevice,
        source: &KernelSource,
        options: &CompileOptions,
    ) -> Result<Self> {
        const OPERATION: &str = "compile";
        device.check_alive(OPERATION)?;
        let build = |log: &str| Error::new(NAME, OPERATION, ErrorKind::Build { log: log.to_owned() });
        match source {
            KernelSource::Text(text) => {
                let cubin = nvrtc::compile(text, &device.inner().info.architecture, options)?;
                // SAFETY: NVRTC has just written it.
                unsafe { Self::load(device, cubin.as_ptr().cast()) }
            }
            KernelSource::Ptx(text) => {
                let text = CString::new(text.as_str()).map_err(|_| build("the PTX has a zero byte in it"))?;
                // SAFETY: a text that ends with a zero.
                unsafe { Self::load(device, text.as_ptr().cast()) }
            }
            KernelSource::Binary(bytes) => {
                image::check(bytes).map_err(build)?;
                // SAFETY: all parts that the image names lie within it.
                unsafe { Self::load(device, bytes.as_ptr().cast()) }
            }
            _ => {
                let what = "programs of this form (CUDA takes source text, PTX, cubins and fat binaries)";
                Err(Error::new(NAME, OPERATION, ErrorKind::Unsupported { what }))
            }
        }
    }

    /// # Safety
    /// A whole cubin or fat binary, or PTX that ends with a zero.
    unsafe fn load(device: &CudaDevice, image: *const c_void) -> Result<Self> {
        const OPERATION: &str = "cuModuleLoadDataEx";
        let owner = Owner::new(device);
        let mut log = vec![0 as c_char; LOG_BYTES];
        let mut options = [
            JitOption::CU_JIT_ERROR_LOG_BUFFER,
            JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            JitOption::CU_JIT_LOG_VERBOSE,
        ];
        // A number is passed in the place of a pointer.
        let mut values =
            [log.as_mut_ptr().cast::<c_void>(), without_provenance_mut(LOG_BYTES), without_provenance_mut(1)];
        let count = options.len() as u32;
        let mut raw = null_mut();
        let _current = device.enter(OPERATION)?;
        // SAFETY: the image is whole, says the caller; as many options as values; the log has the length named.
        let status = unsafe {
            device.api().cuModuleLoadDataEx(&mut raw, image, count, options.as_mut_ptr(), values.as_mut_ptr())
        };
        if status.is_about_an_image() {
            let log = c_text::read(&log);
            let log =
                if log.trim().is_empty() { status.to_string() } else { format!("{status}: {}", log.trim()) };
            return Err(Error::new(NAME, OPERATION, ErrorKind::Build { log }));
        }
        device.check(status, OPERATION)?;
        Ok(Self(Arc::new(Loaded { owner, raw })))
    }
}

// SAFETY: the address and the length of a variable are the driver's answer.
unsafe impl DriverModule<Cuda> for CudaModule {
    fn variable(&self, name: &str) -> Result<(u64, usize)> {
        const OPERATION: &str = "cuModuleGetGlobal";
        let why = "the module has no variable of that name";
        let missing = || Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why });
        let symbol = c_text::name(name).ok_or_else(missing)?;
        let Loaded { owner, raw } = &*self.0;
        let _current = owner.enter(OPERATION, "module")?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: places for an address and a size; the module is alive; the name ends with a zero.
        match unsafe {
            owner.device.api().cuModuleGetGlobal_v2(&mut address, &mut bytes, *raw, symbol.as_ptr())
        } {
            Status::NOT_FOUND => Err(missing()),
            status => owner.device.check(status, OPERATION).map(|()| (address, bytes)),
        }
    }

    fn kernel(&self, name: &str) -> Result<CudaKernel> {
        const OPERATION: &str = "cuModuleGetFunction";
        let missing = || Error::new(NAME, OPERATION, ErrorKind::NoSuchKernel { name: name.to_owned() });
        let symbol = c_text::name(name).ok_or_else(missing)?;
        let Loaded { owner, raw } = &*self.0;
        let (device, api) = (&owner.device, owner.device.api());
        let _current = owner.enter(OPERATION, "module")?;
        let mut function = null_mut();
        // SAFETY: a place for a handle; the module is alive; the name ends with a zero.
        match unsafe { api.cuModuleGetFunction(&mut function, *raw, symbol.as_ptr()) } {
            Status::NOT_FOUND => return Err(missing()),
            status => device.check(status, OPERATION)?,
        }
        let read = |attribute| {
            let mut value = 0;
            // SAFETY: a place for an integer; the function is alive with its module.
            let status = unsafe { api.cuFuncGetAttribute(&mut value, attribute, function) };
            device.check(status, "cuFuncGetAttribute").map(|()| u32::try_from(value).unwrap_or(0))
        };
        let max_group_size = read(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        let shared_bytes = read(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let all = u32::try_from(device.inner().capabilities.shared_memory).unwrap_or(u32::MAX);
        let found = Function {
            _module: self.clone(),
            owner: owner.clone(),
            function,
            max_group_size,
            shared_bytes,
            max_dynamic_bytes: all.saturating_sub(shared_bytes),
            plain_dynamic_bytes: all.min(SHARED_WITHOUT_OPTING_IN).saturating_sub(shared_bytes),
            opted_in: false.into(),
        };
        Ok(CudaKernel(Arc::new(found)))
    }
}

/// One kernel of a module. Clones are the same kernel.
#[derive(Debug, Clone)]
pub struct CudaKernel(Arc<Function>);

#[derive(Debug)]
struct Function {
    /// Keeps the function loaded.
    _module: CudaModule,
    /// The module's, nearer to where launches look.
    owner: Owner,
    function: CUfunction,
    /// Most threads of a block that the kernel's registers leave room for.
    max_group_size: u32,
    /// Bytes of shared memory that the kernel declares itself.
    shared_bytes: u32,
    /// The most dynamic shared memory that a launch may ask for, in bytes.
    max_dynamic_bytes: u32,
    /// Most of those without opting in.
    plain_dynamic_bytes: u32,
    /// Whether the kernel may have all the shared memory that the device has.
    opted_in: AtomicBool,
}

// SAFETY: a function handle is a name that the driver takes from any thread, and its functions are thread-safe.
unsafe impl Send for Function {}
// SAFETY: as above; the only field that changes is an atomic.
unsafe impl Sync for Function {}

impl CudaKernel {
    pub(crate) fn function(&self) -> CUfunction {
        self.0.function
    }

    /// # Safety
    /// As for [`Stream::launch`](gpumem_core::Stream::launch).
    pub(crate) unsafe fn launch(
        &self,
        stream: &CudaStream,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        const OPERATION: &str = "cuLaunchKernel";
        let device = &stream.owner.device;
        if !self.0.owner.is(&stream.owner) {
            self.0.owner.check_fresh(OPERATION, "kernel")?;
        }
        if !self.is_likely_to_fit(dims) {
            self.check(device, dims)?;
            self.opt_in(device, dims.shared_bytes)?;
        }
        // SAFETY: the caller promises that the arguments match the kernel's signature. The driver copies them before it
        // returns and writes none.
        let launch = move |pointers: *mut *mut c_void| unsafe {
            let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (dims.groups, dims.group_size);
            stream.owner.device.api().cuLaunchKernel(
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
        };
        arguments.with_pointers(move |pointers| {
            let failure = move |status| self.refused(&stream.owner.device, dims, status);
            stream.call_or(OPERATION, move || launch(pointers), failure)
        })
    }

    /// A launch as a node of a graph has it.
    pub(crate) fn node_parameters(
        &self,
        dims: &LaunchConfig,
        arguments: *mut *mut c_void,
    ) -> CUDA_KERNEL_NODE_PARAMS {
        let ([x, y, z], [block_x, block_y, block_z]) = (dims.groups, dims.group_size);
        CUDA_KERNEL_NODE_PARAMS {
            func: self.0.function,
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: block_x,
            blockDimY: block_y,
            blockDimZ: block_z,
            sharedMemBytes: dims.shared_bytes,
            kernelParams: arguments,
            extra: null_mut(),
            kern: null_mut(),
            ctx: null_mut(),
        }
    }

    /// Why the driver has not launched: in our words, where it is the sizes.
    #[cold]
    fn refused(&self, device: &CudaDevice, dims: &LaunchConfig, status: Status) -> Error {
        match self.check(device, dims) {
            Err(error) if !status.is_sticky() => error,
            _ => device.failure(status, "cuLaunchKernel"),
        }
    }

    /// Checks limits that the runtime does not know and that the driver does not check by itself. Launches with more
    /// shared memory than the default without opting in are checked too.
    #[inline]
    fn is_likely_to_fit(&self, dims: &LaunchConfig) -> bool {
        let [x, y, z] = dims.group_size.map(u64::from);
        x.saturating_mul(y).saturating_mul(z) <= u64::from(self.0.max_group_size)
            && dims.shared_bytes <= self.0.plain_dynamic_bytes
    }

    #[cold]
    fn check(&self, device: &CudaDevice, dims: &LaunchConfig) -> Result<()> {
        let Function { max_group_size, shared_bytes, .. } = *self.0;
        dims.check(&device.inner().capabilities, max_group_size, shared_bytes)
            .map_err(|why| Error::new(NAME, "launch", ErrorKind::InvalidArgument { why }))
    }

    /// Lets the kernel have all the shared memory there is, once one launch needs more than the default. It is not
    /// set to what each launch needs, because launches of several threads would lower it for each other.
    fn opt_in(&self, device: &CudaDevice, dynamic: u32) -> Result<()> {
        if dynamic.saturating_add(self.0.shared_bytes) <= SHARED_WITHOUT_OPTING_IN
            || self.0.opted_in.load(Ordering::Acquire)
        {
            return Ok(());
        }
        let _current = self.0.owner.enter("cuFuncSetAttribute", "kernel")?;
        let dynamic = i32::try_from(self.0.max_dynamic_bytes).unwrap_or(i32::MAX);
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is alive with its module.
        let status = unsafe { device.api().cuFuncSetAttribute(self.0.function, attribute, dynamic) };
        device.check(status, "cuFuncSetAttribute")?;
        self.0.opted_in.store(true, Ordering::Release);
        Ok(())
    }
}
