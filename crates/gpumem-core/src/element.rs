//! The types that an array may hold.

/// An array element: plain old data that can be moved as bytes.
///
/// Implemented for everything that is [`bytemuck::Pod`] and may be used from any thread: integers, floats,
/// `half::f16` and `half::bf16`, `num_complex::Complex`, fixed-size arrays of these, and `#[repr(C)]` structs that
/// derive `Pod`. `bool`, `char`, enums and structs with padding are not elements: a device may write any bits, and
/// not all bits are values of those types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of a device array",
    note = "a `#[repr(C)]` struct can with `#[derive(Clone, Copy, Pod, Zeroable)]` (of `gpumem::bytemuck`); \
            instead of `bool` there is `gpumem::Bool`"
)]
pub trait Element: bytemuck::Pod + Send + Sync {}

// The compiler then names `Element` and what to do, and not `Pod`.
#[diagnostic::do_not_recommend]
impl<T: bytemuck::Pod + Send + Sync> Element for T {}
