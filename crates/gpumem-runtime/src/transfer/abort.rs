//! Ending the process when borrowed memory may still be in use.

use gpumem_core::Result;

/// Law 3, the one exception to law 7: memory that a device may still be using must not go back to its owner.
pub fn abort(operation: &'static str, result: Result<()>) -> ! {
    let reason = result.err().map_or_else(String::new, |error| error.to_string());
    eprintln!(
        "gpumem: {operation}: neither the stream nor the device could be waited for ({reason}); borrowed memory may \
         still be in use, so the process ends here"
    );
    std::process::abort()
}
