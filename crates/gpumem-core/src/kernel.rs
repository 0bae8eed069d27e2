//! Programs for a device, at the level of the trait: nothing checked.

use crate::{Capabilities, KernelArguments};
use std::{fmt, sync::Arc};

/// Size of a launch: groups, work-items of a group, and bytes of dynamic shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaunchConfig {
    /// Groups along x, y and z (CUDA: grid).
    pub groups: [u32; 3],
    /// Work-items of a group along x, y and z (CUDA: block).
    pub group_size: [u32; 3],
    /// Bytes of dynamic shared memory of each group.
    pub shared_bytes: u32,
}

impl LaunchConfig {
    /// Makes a launch of so many groups of so many work-items: `LaunchConfig::new((8, 8), (16, 16))`.
    pub fn new(groups: impl Into<Extents<u32>>, group_size: impl Into<Extents<u32>>) -> Self {
        let (Extents(groups), Extents(group_size)) = (groups.into(), group_size.into());
        Self { groups, group_size, shared_bytes: 0 }
    }

    /// Groups and work-items along x only, without dynamic shared memory.
    pub fn linear(groups: u32, group_size: u32) -> Self {
        Self { groups: [groups, 1, 1], group_size: [group_size, 1, 1], shared_bytes: 0 }
    }

    /// Sets the bytes of dynamic shared memory of each group.
    /// ```
    /// use gpumem_core::LaunchConfig;
    ///
    /// assert_eq!(LaunchConfig::linear(8, 256).shared_bytes(1024).shared_bytes, 1024);
    /// ```
    #[must_use]
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// Checks the sizes against the limits of a device and those of a kernel on it: the most work-items of a group that
    /// its registers leave room for, and the bytes of shared memory that it declares itself.
    ///
    /// # Errors
    /// Returns what does not fit.
    pub fn check(
        &self,
        has: &Capabilities,
        max_group_size: u32,
        declared_bytes: u32,
    ) -> Result<(), &'static str> {
        let within = |sizes: [u32; 3], limits: [u32; 3]| {
            sizes.iter().zip(limits).all(|(size, limit)| (1..=limit).contains(size))
        };
        if !within(self.groups, has.max_grid_dims) {
            return Err("a number of groups is zero or more than the device has");
        }
        if !within(self.group_size, has.max_group_dims) {
            return Err("a side of the group is zero or longer than the device has");
        }
        let items = self.group_size.iter().fold(1, |items: u64, side| items.saturating_mul(u64::from(*side)));
        if items > u64::from(has.max_group_size) {
            return Err("the group has more work-items than the device has");
        }
        if items > u64::from(max_group_size) {
            return Err("the group has more work-items than the kernel's registers leave room for");
        }
        if u64::from(self.shared_bytes) + u64::from(declared_bytes) > has.shared_memory as u64 {
            return Err("the kernel needs more shared memory than the device has");
        }
        Ok(())
    }
}

/// One group of one work-item.
impl Default for LaunchConfig {
    fn default() -> Self {
        Self::linear(1, 1)
    }
}

/// Lengths along x, y and z. Made from one, two or three numbers, x first; the others are 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Extents<T>(pub [T; 3]);

macro_rules! extents {
    ($($number:ty)*) => {$(
        impl From<$number> for Extents<$number> {
            fn from(x: $number) -> Self {
                Self([x, 1, 1])
            }
        }

        impl From<($number, $number)> for Extents<$number> {
            fn from((x, y): ($number, $number)) -> Self {
                Self([x, y, 1])
            }
        }

        impl From<($number, $number, $number)> for Extents<$number> {
            fn from((x, y, z): ($number, $number, $number)) -> Self {
                Self([x, y, z])
            }
        }

        impl From<[$number; 3]> for Extents<$number> {
            fn from(lengths: [$number; 3]) -> Self {
                Self(lengths)
            }
        }
    )*};
}
extents!(u32 usize);

/// So many groups along x, each of one work-item.
impl From<u32> for LaunchConfig {
    fn from(groups: u32) -> Self {
        Self::new(groups, 1)
    }
}

/// So many groups along x and y, each of one work-item.
impl From<(u32, u32)> for LaunchConfig {
    fn from(groups: (u32, u32)) -> Self {
        Self::new(groups, 1)
    }
}

/// So many groups along x, y and z, each of one work-item.
impl From<(u32, u32, u32)> for LaunchConfig {
    fn from(groups: (u32, u32, u32)) -> Self {
        Self::new(groups, 1)
    }
}

/// The launch as a host function sees it.
#[derive(Debug, Clone, Copy)]
pub struct HostLaunch<'a> {
    /// Size of the launch.
    pub dims: LaunchConfig,
    /// The arguments in order.
    pub arguments: &'a KernelArguments,
}

type Function = dyn Fn(HostLaunch<'_>) -> Result<(), String> + Send + Sync;

/// A kernel as a function of the host. It runs once for the whole launch, in the stream's order.
#[derive(Clone)]
pub struct HostFunction(Arc<Function>);

impl HostFunction {
    /// Bytes of the stack of each thread that is started to run such functions, or other code of the user: as many as that of a
    /// program's main thread, instead of the two MiB of Rust's threads. A variable of a kernel alone may have half a MiB. The system
    /// gives the pages that are used.
    pub const STACK_BYTES: usize = 8 << 20;

    /// Wraps a function. An error becomes an asynchronous fault of the stream, as a trap in a GPU kernel does.
    pub fn new(function: impl Fn(HostLaunch<'_>) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    /// Runs the function. Its arguments are bytes, which it takes for addresses and lengths of memory, so that safe code cannot call
    /// it:
    ///
    /// ```compile_fail,E0133
    /// use gpumem_core::{HostFunction, HostLaunch, KernelArguments, LaunchConfig};
    ///
    /// fn run(function: &HostFunction, arguments: &KernelArguments) {
    ///     let _ = function.call(HostLaunch { dims: LaunchConfig::linear(1, 1), arguments });
    /// }
    /// ```
    ///
    /// # Safety
    /// The arguments are those that the function declares. Their memory is alive, and used by nothing else meanwhile but as the
    /// function allows.
    ///
    /// # Errors
    /// Returns the failure that the function reports.
    pub unsafe fn call(&self, launch: HostLaunch<'_>) -> Result<(), String> {
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

/// A compiler of source text: everything that decides the image, apart from the text and the options.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Compiler {
    /// The compiler, its version, and the library that it was found in (`NVRTC 13.0 (libnvrtc.so.13)`).
    pub version: String,
    /// The architecture that it compiles for, with the features of the device (`sm_90`, `gfx90a:sramecc+:xnack-`).
    pub target: String,
}

/// How source text is compiled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompileOptions {
    /// Further options in the compiler's words.
    pub flags: Vec<String>,
    /// Whether `a * b + c` may become one operation with one rounding. The host rounds the product and the sum.
    pub contract: bool,
}

impl CompileOptions {
    /// Returns the flags for a compiler that contracts unless it gets the flag `off`. A user's own flag that starts with
    /// one of `decides` says what the compiler does, and `off` is left out.
    pub fn flags_without_contraction(&self, off: &str, decides: &[&str]) -> Vec<String> {
        let is_decided = |flag: &String| decides.iter().any(|option| flag.starts_with(option));
        let off = (!self.contract && !self.flags.iter().any(is_decided)).then(|| off.to_owned());
        off.into_iter().chain(self.flags.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_made_from_one_two_or_three_numbers() {
        let dims = |groups, group_size| LaunchConfig { groups, group_size, shared_bytes: 0 };
        assert_eq!(LaunchConfig::new(7, 32), LaunchConfig::linear(7, 32));
        assert_eq!(LaunchConfig::new((7, 5), (16, 8)), dims([7, 5, 1], [16, 8, 1]));
        assert_eq!(LaunchConfig::new((7, 5, 3), [4, 2, 1]), dims([7, 5, 3], [4, 2, 1]));
        assert_eq!(LaunchConfig::from((7, 5)), dims([7, 5, 1], [1, 1, 1]));
        assert_eq!(LaunchConfig::default(), dims([1; 3], [1; 3]));
    }

    #[test]
    fn a_launch_has_the_sizes_of_the_device_and_the_kernel() {
        let has = Capabilities { max_grid_dims: [8, 4, 2], shared_memory: 64, ..Capabilities::minimal() };
        let fits = |groups, group_size, shared| {
            LaunchConfig { groups, group_size, shared_bytes: shared }.check(&has, 128, 16).is_ok()
        };
        assert!(fits([8, 4, 2], [128, 1, 1], 48));
        assert!(fits([1; 3], [2, 1, 64], 0));
        for groups in [[9, 1, 1], [1, 5, 1], [1, 1, 3], [0, 1, 1], [1, 1, 0]] {
            assert!(!fits(groups, [1; 3], 0), "{groups:?}");
        }
        for group_size in [[129, 1, 1], [257, 1, 1], [16, 16, 2], [1, 1, 65], [1, 0, 1], [u32::MAX; 3]] {
            assert!(!fits([1; 3], group_size, 0), "{group_size:?}");
        }
        assert!(!fits([1; 3], [1; 3], 49));
        assert!(!fits([1; 3], [1; 3], u32::MAX));
    }

    #[test]
    fn contraction_is_off_unless_it_is_asked_for() {
        let flags = |flags: &[&str], contract| {
            let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
            CompileOptions { flags, contract }.flags_without_contraction("--off", &["--fmad", "--fast"])
        };
        assert_eq!(flags(&[], false), ["--off"]);
        assert_eq!(flags(&["-O3"], false), ["--off", "-O3"]);
        assert_eq!(flags(&["-O3"], true), ["-O3"]);
        assert_eq!(flags(&["-O3", "--fmad=true"], false), ["-O3", "--fmad=true"]);
        assert_eq!(flags(&["--fast_math"], false), ["--fast_math"]);
    }
}
