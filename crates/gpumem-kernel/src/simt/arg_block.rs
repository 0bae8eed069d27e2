//! Launches that arrive as one block of bytes, as a simulated GPU gets them.

use crate::simt::{ParameterInfo, Parameters};
use gpumem_core::{HostFunction, HostLaunch, KernelArguments, LaunchConfig};

/// A body with descriptions of its parameters, for simulators that run launches of a GPU.
#[derive(Debug, Clone)]
pub struct Entry {
    function: HostFunction,
    parameters: Vec<ParameterInfo>,
}

impl Entry {
    pub fn new<P: Parameters>(function: HostFunction) -> Self {
        Self { function, parameters: P::list() }
    }

    pub fn parameters(&self) -> &[ParameterInfo] {
        &self.parameters
    }

    /// The body, which only unsafe code can call.
    pub fn function(&self) -> &HostFunction {
        &self.function
    }

    /// Takes an argument block in the layout of C++ apart: every parameter at the next multiple of its alignment.
    /// `translate` gives the host's address for a stretch of device memory, or `None` where that is not mapped.
    ///
    /// # Errors
    /// Returns an error for a block that is too short, and for memory that is not mapped.
    pub fn arguments(
        &self,
        block: &[u8],
        mut translate: impl FnMut(u64, u64) -> Option<u64>,
    ) -> Result<KernelArguments, String> {
        let mut offset: usize = 0;
        let mut arguments = KernelArguments::new();
        for (index, parameter) in self.parameters.iter().enumerate() {
            offset = offset.next_multiple_of(parameter.align.max(1));
            let argument = block.get(offset..offset + parameter.size);
            let argument =
                argument.ok_or_else(|| format!("the argument block ends before argument {index}"))?;
            let translated = match (parameter.reach)(argument) {
                Some(reach) if reach.bytes > 0 => {
                    let host = translate(reach.start, reach.bytes);
                    let host = host.ok_or_else(|| {
                        format!(
                            "argument {index} names {} bytes at {:#x}, which are not mapped",
                            reach.bytes, reach.start
                        )
                    })?;
                    moved(argument, host.wrapping_sub(reach.start))
                }
                _ => None,
            };
            let pushed = arguments.push_bytes(translated.as_deref().unwrap_or(argument));
            pushed.map_err(|error| error.to_string())?;
            offset += parameter.size;
        }
        Ok(arguments)
    }

    /// Runs a launch.
    ///
    /// # Safety
    /// The arguments are those of the kernel, and their memory is as the body's declaration demands.
    ///
    /// # Errors
    /// Returns the fault of the body, as text.
    pub unsafe fn run(&self, dims: LaunchConfig, arguments: &KernelArguments) -> Result<(), String> {
        // SAFETY: the caller's promise.
        unsafe { self.function.call(HostLaunch { dims, arguments }) }
    }
}

/// The argument with the address in its first eight bytes moved by a distance.
fn moved(argument: &[u8], distance: u64) -> Option<Vec<u8>> {
    let (first, rest) = argument.split_at_checked(8)?;
    let address = u64::from_ne_bytes(first.try_into().ok()?).wrapping_add(distance);
    Some([&address.to_ne_bytes(), rest].concat())
}
