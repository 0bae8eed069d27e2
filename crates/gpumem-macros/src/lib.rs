//! The attribute `#[gpumem::kernel]`: one Rust function that is a kernel on every device.
//!
//! How it works, and what must stay so:
//!
//! * A kernel has one subset of Rust, one walk over its body (`lower`), and three results: the body for the host, a copy
//!   whose types rustc infers, and a tree that is printed as C++ when the kernel is declared. What is not in the subset is
//!   refused in that walk, at the user's token, with what to write instead.
//! * No type is inferred here. Where C++ depends on a type, the copy has a witness of it
//!   (`gpumem_runtime::kernel::codegen`), and the tree the witness's number.
//! * Tokens of the user keep their places in all copies, and so do the calls that are made of them: rustc's errors, panics and
//!   faults name the user's lines. rustc tells equal errors of two copies once.
//! * What a kernel expands to names `gpumem` by the path in `crate = ..`, and nothing else of the user's surroundings.

mod attribute;
mod declaration;
mod lower;
mod names;
mod signature;

use attribute::Attribute;
use proc_macro::TokenStream;
use syn::{ItemFn, parse_macro_input};

/// Makes a function a kernel for every device.
///
/// `fn saxpy(x: Slice<f32>, y: SliceMut<f32>, a: f32)` becomes `fn saxpy() -> KernelDeclaration<(Slice<f32>, SliceMut<f32>, f32)>`,
/// to be loaded and launched like any other declaration. Its source for GPUs is printed from the function; its body for the
/// host is the function.
///
/// ```
/// use gpumem::{Device, host::Host, kernel::{cover, prelude::*}};
///
/// // SAFETY: each work-item writes its own element.
/// #[gpumem::kernel(unsafe)]
/// fn saxpy(x: Slice<f32>, y: SliceMut<f32>, a: f32) {
///     let i = global_id(0);
///     if i < y.len() {
///         y[i] = a * x[i] + y[i];
///     }
/// }
///
/// # fn main() -> gpumem::Result<()> {
/// let device = Device::open("host")?;
/// let stream = device.stream()?;
/// let saxpy = saxpy().load(&device)?;
/// let x = stream.to_device(&vec![1.0f32; 1000])?;
/// let mut y = stream.to_device(&vec![2.0f32; 1000])?;
/// saxpy.launch(&stream, &cover(1000, 256), (&x, &mut y, 2.5))?;
/// assert_eq!(y.get(999)?, 4.5);
/// # Ok(())
/// # }
/// ```
///
/// | argument | |
/// |---|---|
/// | `unsafe` | the author answers for races: an element that one work-item writes is used by another only behind a barrier of the same group, or atomically by both |
/// | `unchecked` | a GPU does not check indices, divisors and steps; the author answers for them. Needs `unsafe` |
/// | `name = ".."` | the kernel's symbol, where it is not the function's name |
/// | `flag = ".."` | an option of the device's compiler, as `KernelDeclaration::flag` |
/// | `crate = path` | where `gpumem` is, if not at `::gpumem` |
///
/// What a kernel is written with stands in the book's page on kernels.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let attribute = parse_macro_input!(attribute as Attribute);
    let function = parse_macro_input!(item as ItemFn);
    declaration::expand(&attribute, &function).into()
}
