//! Truth values as other libraries store them.

use std::fmt;

/// A truth value in one byte: 0 is false, everything else is true. Corresponds to NumPy's `bool`. Rust's `bool` does
/// not serve, because a device may write any bits.
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bool(u8);

impl Bool {
    /// The value as Rust's.
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Self {
        Self(u8::from(value))
    }
}

impl From<Bool> for bool {
    fn from(value: Bool) -> Self {
        value.get()
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Bool {}

impl fmt::Debug for Bool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
