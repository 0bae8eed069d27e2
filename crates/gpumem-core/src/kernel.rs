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

/// Most bytes of one argument: what every version of CUDA has room for in a launch.
pub const MAX_ARGUMENT_BYTES: usize = 4096;

/// Bytes of an argument that need no heap: a view of three axes, with extents and strides.
const INLINE_BYTES: usize = 64;

/// An argument of a kernel, by value: its bytes in the ABI of the device's C++, at an address that is a multiple of 16.
///
/// Scalars, addresses and views of up to three axes are held without a heap allocation.
#[derive(Clone)]
pub struct KernelArgument(Held);

#[derive(Clone)]
enum Held {
    Inline { len: u8, bytes: Aligned<INLINE_BYTES> },
    Heap { len: usize, chunks: Box<[Aligned<16>]> },
}

/// Compilers place a parameter at its own alignment, and so do we: no parameter of CUDA or HIP is aligned to more.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Aligned<const N: usize>([u8; N]);

impl KernelArgument {
    /// The argument for a plain value, or `None` if it is longer than [`MAX_ARGUMENT_BYTES`].
    #[inline]
    pub fn new<T: bytemuck::Pod>(value: T) -> Option<Self> {
        Self::from_bytes(bytemuck::bytes_of(&value))
    }

    /// The argument with these bytes, or `None` if they are more than [`MAX_ARGUMENT_BYTES`].
    #[inline]
    pub fn from_bytes(source: &[u8]) -> Option<Self> {
        let len = source.len();
        let mut bytes = [0; INLINE_BYTES];
        if let (Some(part), Ok(len)) = (bytes.get_mut(..len), u8::try_from(len)) {
            part.copy_from_slice(source);
            return Some(Self(Held::Inline { len, bytes: Aligned(bytes) }));
        }
        if len > MAX_ARGUMENT_BYTES {
            return None;
        }
        let chunks = source.chunks(16).map(|chunk| {
            let mut bytes = [0; 16];
            bytes.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            Aligned(bytes)
        });
        Some(Self(Held::Heap { len, chunks: chunks.collect() }))
    }

    /// A device address.
    #[inline]
    pub fn address(address: u64) -> Self {
        let mut bytes = [0; INLINE_BYTES];
        bytes.iter_mut().zip(address.to_ne_bytes()).for_each(|(to, from)| *to = from);
        Self(Held::Inline { len: 8, bytes: Aligned(bytes) })
    }

    /// The bytes of the value. They start at a multiple of 16.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Held::Inline { len, bytes } => bytes.0.get(..usize::from(*len)).unwrap_or_default(),
            Held::Heap { len, chunks } => {
                // SAFETY: the chunks lie side by side without padding, 16 bytes each, and are borrowed with `self`.
                let all =
                    unsafe { std::slice::from_raw_parts(chunks.as_ptr().cast::<u8>(), chunks.len() * 16) };
                all.get(..*len).unwrap_or_default()
            }
        }
    }

    /// Reads the value back, or `None` if it has another length.
    pub fn get<T: bytemuck::Pod>(&self) -> Option<T> {
        bytemuck::try_pod_read_unaligned(self.bytes()).ok()
    }
}

impl PartialEq for KernelArgument {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for KernelArgument {}

impl fmt::Debug for KernelArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KernelArgument").field(&self.bytes()).finish()
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

/// What turns source text into an image: everything that decides what comes out beside the text and the options.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Compiler {
    /// The compiler, its version, and the library that it was found in (`NVRTC 13.0 (libnvrtc.so.13)`).
    pub version: String,
    /// What it compiles for, with the features of the device (`sm_90`, `gfx90a:sramecc+:xnack-`).
    pub target: String,
}

/// How source text is compiled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompileOptions {
    /// Further options in the compiler's words.
    pub flags: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_every_length_keep_their_bytes() {
        for len in [0, 1, 8, 15, 16, 17, 63, 64, 65, 79, 80, 81, 255, 256, 300, 4095, MAX_ARGUMENT_BYTES] {
            let source: Vec<u8> = (0..len).map(|i| i as u8 ^ 0x5a).collect();
            let argument = KernelArgument::from_bytes(&source).unwrap();
            assert_eq!(argument.bytes(), source, "{len}");
            assert_eq!(argument.bytes().as_ptr().addr() % 16, 0, "{len}");
            assert_eq!(argument.clone(), argument);
        }
        assert!(KernelArgument::from_bytes(&vec![0; MAX_ARGUMENT_BYTES + 1]).is_none());
    }

    #[test]
    fn values_are_read_back_as_what_they_are() {
        let argument = KernelArgument::new([1.5f32, 2.5]).unwrap();
        assert_eq!(argument.get::<[f32; 2]>(), Some([1.5, 2.5]));
        assert_eq!(argument.get::<f32>(), None);
        assert_eq!(argument.get::<[f32; 3]>(), None);
        assert_eq!(KernelArgument::address(0x1234).get::<u64>(), Some(0x1234));
        assert_ne!(KernelArgument::new(0u32), KernelArgument::new(0u64));
        let long = KernelArgument::new([7u64; 32]).unwrap();
        assert_eq!(long.get::<[u64; 32]>(), Some([7; 32]));
    }
}
