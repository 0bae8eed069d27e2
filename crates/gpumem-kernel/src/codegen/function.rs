//! Functions of kernels that are written in Rust: the code that `#[device]` generates, and how a kernel finds them.
//!
//! Each function has an empty type of the same name, with the same generic parameters. A kernel's witness has that
//! type, so rustc infers which instance of a generic function is called, and [`function_of`] prints that one.

use super::{Form, Language, PrintedProgram, TypeInfo, Witness};
use std::{any::type_name, cell::RefCell, rc::Rc};

/// The type beside a function with `#[device]`.
///
/// # Safety
/// The program is that of the function that the pointer leads to, as `#[device]` writes both: the host calls the pointer, and the
/// program is printed into the source of every kernel that calls it.
pub unsafe trait DeviceFunction: Sized {
    /// How the host calls it.
    type Pointer;

    #[doc(hidden)]
    fn pointer() -> Self::Pointer;

    /// Its tree, within the functions that lead to it.
    fn program(calls: &Calls<'_>) -> PrintedProgram;

    /// By this, a generic kernel names the function that it is given.
    #[doc(hidden)]
    #[inline(always)]
    fn __witness() -> Witness<Self> {
        Witness::new()
    }
}

/// A function with `#[device]` that takes one value, as a type of the function's name: `map::<square>()`. A generic kernel
/// calls it by the name of its type parameter.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no kernel function of one `{A}`",
    note = "write `#[gpumem::device] fn name(x: {A}) -> ..`, and name it without parentheses: `map::<name>()`"
)]
pub trait UnaryFunction<A>: DeviceFunction<Pointer = fn(A) -> <Self as UnaryFunction<A>>::Output> {
    type Output;
}

#[diagnostic::do_not_recommend]
impl<F: DeviceFunction<Pointer = fn(A) -> R>, A, R> UnaryFunction<A> for F {
    type Output = R;
}

/// As [`UnaryFunction`], of two values.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no kernel function of a `{A}` and a `{B}`",
    note = "write `#[gpumem::device] fn name(x: {A}, y: {B}) -> ..`, and name it without parentheses: `zip_map::<name, _, _>(..)`"
)]
pub trait BinaryFunction<A, B>:
    DeviceFunction<Pointer = fn(A, B) -> <Self as BinaryFunction<A, B>>::Output>
{
    type Output;
}

#[diagnostic::do_not_recommend]
impl<F: DeviceFunction<Pointer = fn(A, B) -> R>, A, B, R> BinaryFunction<A, B> for F {
    type Output = R;
}

/// The address of [`DeviceFunction::program`], and what it has given.
type Built = (usize, Rc<PrintedProgram>);

/// The functions that call one another, from a kernel on.
#[derive(Debug)]
pub struct Calls<'c> {
    name: &'static str,
    by: Option<&'c Calls<'c>>,
    /// The functions built so far, at the kernel: each is built once, however many call it.
    built: RefCell<Vec<Built>>,
}

impl<'c> Calls<'c> {
    /// Where a kernel begins.
    pub fn of_kernel() -> Self {
        Self::new("", None)
    }

    fn new(name: &'static str, by: Option<&'c Calls<'c>>) -> Self {
        Self { name, by, built: RefCell::new(Vec::new()) }
    }

    fn contains(&self, name: &str) -> bool {
        self.name == name || self.by.is_some_and(|by| by.contains(name))
    }

    fn kernel(&self) -> &Calls<'c> {
        self.by.map_or(self, |by| by.kernel())
    }
}

impl Language {
    /// The function of a witness. A kernel gets this from `path::__witness`, and the path is the user's: whatever that is, the
    /// host calls the function of the type that device code has, too.
    #[inline(always)]
    pub fn called<F: DeviceFunction>(_: Witness<F>) -> F::Pointer {
        F::pointer()
    }

    /// The same, which a witness sees.
    pub fn called_as<F: DeviceFunction>(_: Witness<F>, _: &Witness<F>) -> F::Pointer {
        F::pointer()
    }

    /// The tree of the function that a witness has seen.
    pub fn function_of<F: DeviceFunction>(_: &Witness<F>, calls: &Calls<'_>) -> Rc<PrintedProgram> {
        let name = type_name::<F>();
        if calls.contains(name) {
            return Rc::new(recursive());
        }
        // Two functions may have one name. What has one address is one code, and gives one tree.
        let address = F::program as fn(&Calls<'_>) -> PrintedProgram as usize;
        let built = &calls.kernel().built;
        let known =
            built.borrow().iter().find(|(known, _)| *known == address).map(|(_, tree)| Rc::clone(tree));
        known.unwrap_or_else(|| {
            let tree = Rc::new(F::program(&Calls::new(name, Some(calls))));
            built.borrow_mut().push((address, Rc::clone(&tree)));
            tree
        })
    }
}

/// In the place of a function that calls itself through others, which the device's compiler then refuses with these words.
fn recursive() -> PrintedProgram {
    PrintedProgram {
        name: "functions_of_kernels_do_not_call_themselves",
        file: "",
        parameters: Vec::new(),
        result: TypeInfo { name: "error".to_owned(), form: Form::Other, records: Vec::new() },
        types: Vec::new(),
        constants: Vec::new(),
        functions: Vec::new(),
        body: &[],
    }
}
