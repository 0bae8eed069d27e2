//! The attribute `#[gpumem::kernel]`: one Rust function that is a kernel on every device.
//!
//! How it works, and what must stay so:
//!
//! * A kernel has one subset of Rust, one walk over its body (`lower`), and three results: the body for the host, a
//!   copy whose types rustc infers, and a tree that is printed as C++ when the kernel is declared. That walk refuses
//!   code outside the subset, at the user's token, and says what to write instead.
//! * A body whose work-items are known to come to the same barriers is split there (`split`), which makes it faster on
//!   the host. Check mode runs the body that awaits, and tests compare both.
//! * No type is inferred here. Where C++ depends on a type, the copy has a witness of it
//!   (`gpumem_kernel::codegen`), and the tree the witness's number.
//! * Tokens of the user keep their places in all copies, and so do the calls that are made of them: rustc's errors, panics and
//!   faults name the user's lines. rustc tells equal errors of two copies once.
//! * Names are looked up by letters and macro, and rustc proves what was found (`names`). Methods, operators and conversions are
//!   those of the language: the host calls methods by a path, and the copy asks for numbers beside operators.
//! * The expansion names `gpumem` by the path in `crate = ..`, and no other name of the user's scope. The path is the user's to
//!   define, so nothing `unsafe` rests on it alone: the scope claims that the names on it are gpumem's (`declaration::origin`),
//!   and all that it calls are functions of these types and traits, by a path, or methods that take their receiver as it is, before
//!   which no trait's of the user's come. Its variables and labels have a hygiene of their own (`lower::local`). A record's
//!   promises are made by a macro of gpumem, of the structure itself (`record`).

mod attribute;
mod declaration;
mod function;
mod groups;
mod lower;
mod names;
mod number_methods;
mod operators;
mod record;
mod signature;
mod split;
mod wave;

use attribute::Attribute;
use proc_macro::TokenStream;
use syn::{DeriveInput, ItemFn, parse_macro_input};

/// Makes a function a kernel for every device.
///
/// `fn saxpy(x: Slice<f32>, y: Own<f32>, a: f32)` becomes `fn saxpy() -> KernelDef<(Slice<f32>, Own<f32>, f32)>`,
/// to be loaded and launched like any other declaration. Its source for GPUs is printed from the function; its body for the
/// host is the function.
///
/// ```
/// use gpumem::{Device, host::Host, kernel::{config_for_items, prelude::*}};
///
/// #[gpumem::kernel]
/// fn saxpy(x: Slice<f32>, y: Own<f32>, a: f32) {
///     let i = global_id(0);
///     if i < y.len() {
///         y[own()] = a * x[i] + y[own()];
///     }
/// }
///
/// # fn main() -> gpumem::Result<()> {
/// let device = Device::open("host")?;
/// let stream = device.stream()?;
/// let saxpy = saxpy().load(&device)?;
/// let x = stream.to_device(&vec![1.0f32; 1000])?;
/// let mut y = stream.to_device(&vec![2.0f32; 1000])?;
/// saxpy.launch(&stream, &config_for_items(1000, 256), (&x, &mut y, 2.5))?;
/// assert_eq!(y.get(999)?, 4.5);
/// # Ok(())
/// # }
/// ```
///
/// Each of its work-items writes its own element, so that none can race. A kernel with a `SliceMut`, a `ViewMut` or a
/// shared array says `#[gpumem::kernel(unsafe)]`:
///
/// | argument | |
/// |---|---|
/// | `unsafe` | the author answers for races: an element that one work-item writes is used by another only after a barrier of the same group, or atomically by both; and shared memory is read where it was written |
/// | `unchecked` | a GPU does not check indices, divisors and steps; the author answers for them. Needs `unsafe` |
/// | `name = ".."` | the kernel's symbol, where it is not the function's name: an identifier of C++ |
/// | `flag = ".."` | an option of the device's compiler, as `KernelDef::compiler_flag`. Needs `unsafe` |
/// | `launch_bounds = 256` or `(256, 4)` | the most work-items of a group, and how many groups a multiprocessor of an NVIDIA GPU is to hold, as `KernelDef::launch_bounds` |
/// | `crate = path` | where `gpumem` is, if not at `::gpumem` |
///
/// The book's page on kernels describes the language of kernels.
///
/// # Words and methods
///
/// Beside Rust's own, a kernel has these, which need no import.
///
#[doc = include_str!("words.md")]
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let attribute = parse_macro_input!(attribute as Attribute);
    let item = TokenStream::from(names::one_spelling(item.into()));
    let mut function = parse_macro_input!(item as ItemFn);
    groups::take_from(&mut function);
    declaration::expand(&attribute, &function).into()
}

/// Makes a function one that kernels call.
///
/// It stays an ordinary function of the host, where an index past the end of an array is a panic. A kernel's source for GPUs has
/// it too, once for each set of types that it is called with. It has no ids, barriers and waves: the kernel passes values.
/// Arrays are passed by their names: a parameter `image: View<f32, 2>` is a `&View<f32, 2>` for callers on the host.
///
/// ```
/// use gpumem::{Device, kernel::{config_for_items, prelude::*}};
///
/// #[gpumem::device]
/// fn clamped<T: Numeric>(value: T, most: T) -> T {
///     if value > most { most } else { value }
/// }
///
/// // SAFETY: each work-item writes its own element.
/// #[gpumem::kernel(unsafe)]
/// fn limit(x: SliceMut<i32>, most: i32) {
///     let i = global_id(0);
///     if i < x.len() {
///         x[i] = clamped(x[i], most);
///     }
/// }
///
/// # fn main() -> gpumem::Result<()> {
/// let device = Device::open("host")?;
/// let stream = device.stream()?;
/// let mut x = stream.to_device(&[1, 5, 3])?;
/// limit().load(&device)?.launch(&stream, &config_for_items([3, 1, 1], [32, 1, 1]), (&mut x, 3))?;
/// assert_eq!(x.get(1)?, 3);
/// assert_eq!(clamped(2.5, 1.0), 1.0);
/// # Ok(())
/// # }
/// ```
///
/// | argument | |
/// |---|---|
/// | `crate = path` | where `gpumem` is, if not at `::gpumem` |
#[proc_macro_attribute]
pub fn device(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let attribute = parse_macro_input!(attribute as Attribute);
    let item = TokenStream::from(names::one_spelling(item.into()));
    let mut function = parse_macro_input!(item as ItemFn);
    groups::take_from(&mut function);
    function::expand(&attribute, &function).into()
}

/// Lets kernels use a structure or an enum of the user.
///
/// A structure has `#[repr(C)]`, fields that are elements of arrays, and no padding. It becomes an element of arrays: the derive
/// implements `bytemuck::Pod` and `Zeroable`, which are not derived beside it. A kernel reads and writes its fields one by one:
/// `particles[i].mass = 1.0`. As a parameter it is a `Value<Particle>`.
///
/// An enum has no fields, `#[repr(u32)]` or another number, and `#[derive(PartialEq)]`. A kernel compares it, and takes it apart with
/// `match`. A record has no `Deref`.
///
/// ```
/// use gpumem::{Device, kernel::{config_for_items, prelude::*}};
///
/// #[derive(Clone, Copy, gpumem::DeviceRecord)]
/// #[repr(C)]
/// struct Particle {
///     place: [f32; 3],
///     mass: f32,
/// }
///
/// // SAFETY: each work-item writes its own element.
/// #[gpumem::kernel(unsafe)]
/// fn lift(particles: SliceMut<Particle>, by: f32) {
///     let i = global_id(0);
///     if i < particles.len() {
///         particles[i].place[2] += by / particles[i].mass;
///     }
/// }
///
/// # fn main() -> gpumem::Result<()> {
/// let device = Device::open("host")?;
/// let stream = device.stream()?;
/// let mut particles = stream.to_device(&[Particle { place: [0.0; 3], mass: 2.0 }])?;
/// lift().load(&device)?.launch(&stream, &config_for_items([1, 1, 1], [32, 1, 1]), (&mut particles, 3.0))?;
/// assert_eq!(particles.get(0)?.place[2], 1.5);
/// # Ok(())
/// # }
/// ```
///
/// `#[gpumem(crate = path)]` says where `gpumem` is, if not at `::gpumem`.
#[proc_macro_derive(DeviceRecord, attributes(gpumem))]
pub fn device_record(item: TokenStream) -> TokenStream {
    let input = parse_macro_input!(item as DeriveInput);
    record::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
