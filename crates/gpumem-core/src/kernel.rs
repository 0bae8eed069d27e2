//! Programs for a device, at the level of the trait: untyped arguments, nothing checked.

use std::{fmt, sync::Arc};

/// Size of a launch: groups, work-items of a group, and bytes of dynamic shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaunchDims {
    /// Groups along x, y and z (CUDA: grid).
    pub groups: [u32; 3],
    /// Work-items of a group along x, y and z (CUDA: block).
    pub group_size: [u32; 3],
    /// Bytes of dynamic shared memory of each group.
    pub shared_bytes: u32,
}

impl LaunchDims {
    /// Groups and work-items along x only, without dynamic shared memory.
    pub fn linear(groups: u32, group_size: u32) -> Self {
        Self { groups: [groups, 1, 1], group_size: [group_size, 1, 1], shared_bytes: 0 }
    }
}

/// An argument of a kernel, by value: up to 16 bytes in the ABI of the device's C++.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct KernelArgument {
    bytes: [u8; 16],
}

impl KernelArgument {
    /// The argument for a plain value, or `None` if it is longer than 16 bytes.
    pub fn new<T: bytemuck::Pod>(value: T) -> Option<Self> {
        let source = bytemuck::bytes_of(&value);
        let mut bytes = [0; 16];
        bytes.get_mut(..source.len())?.copy_from_slice(source);
        Some(Self { bytes })
    }

    /// A device address.
    pub fn address(address: u64) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&address.to_ne_bytes());
        Self { bytes }
    }

    /// The bytes of the value, followed by zeros.
    pub fn bytes(&self) -> &[u8; 16] {
        &self.bytes
    }

    /// Reads the value back, or `None` if it would be longer than 16 bytes.
    pub fn get<T: bytemuck::Pod>(&self) -> Option<T> {
        Some(bytemuck::pod_read_unaligned(self.bytes.get(..size_of::<T>())?))
    }
}

/// What a host function gets to see of its launch.
#[derive(Debug, Clone, Copy)]
pub struct HostLaunch<'a> {
    /// Size of the launch.
    pub dims: LaunchDims,
    /// The arguments in order.
    pub arguments: &'a [KernelArgument],
}

type Function = dyn Fn(HostLaunch<'_>) -> Result<(), String> + Send + Sync;

/// A kernel as a function of the host. It runs once for the whole launch, in the stream's order.
#[derive(Clone)]
pub struct HostFunction(Arc<Function>);

impl HostFunction {
    /// Wraps a function. An error becomes an asynchronous fault of the stream, as a trap in a GPU kernel does.
    pub fn new(function: impl Fn(HostLaunch<'_>) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    /// Runs the function.
    ///
    /// # Errors
    /// Whatever the function reports.
    pub fn call(&self, launch: HostLaunch<'_>) -> Result<(), String> {
        (self.0)(launch)
    }
}

impl fmt::Debug for HostFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostFunction")
    }
}

/// A program to be compiled or loaded.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum KernelSource {
    /// Source text in the device compiler's C++ (NVRTC, hipRTC).
    Text(String),
    /// NVIDIA's intermediate text.
    Ptx(String),
    /// A cubin or an AMD code object.
    Binary(Vec<u8>),
    /// Functions of the host, by name.
    Host(Vec<(String, HostFunction)>),
}

/// How source text is compiled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompileOptions {
    /// Further options in the compiler's words.
    pub flags: Vec<String>,
}
