//! The key to what is behind the handles that users hold.

/// What a caller needs who looks behind a handle. Safe code can make none, so it cannot fill an array of another's, empty a
/// log, forget poison, or end a stream.
#[derive(Clone, Copy)]
pub struct Key(());

impl Key {
    /// Makes a key.
    ///
    /// # Safety
    /// The caller is a crate of gpumem, and keeps the laws of the order of work and of memory with all that the key opens:
    /// it submits each access to memory, within the bounds of the memory, and records no work that does not run.
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}
