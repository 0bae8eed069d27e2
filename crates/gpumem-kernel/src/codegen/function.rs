//! Functions of kernels that are written in Rust: the code that `#[device]` generates, and how a kernel finds them.
//!
//! Each function has an empty type of the same name, with the same generic parameters. A kernel's witness has that
//! type, so rustc infers which instance of a generic function is called, and [`function_of`] prints that one.

use super::{Form, KernelDef, Language, PrintedProgram, TypeInfo, Witness};
use crate::{definition::Needs, simt::Parameters};
use std::{
    any::type_name,
    cell::{Cell, RefCell},
    rc::Rc,
};

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
    /// The address of [`DeviceFunction::program`]; 0 for the kernel.
    function: usize,
    by: Option<&'c Calls<'c>>,
    /// A function that leads to a call of itself, at the kernel.
    circle: Cell<Option<&'static str>>,
    /// The functions built so far, at the kernel: each is built once, however many call it.
    built: RefCell<Vec<Built>>,
}

impl<'c> Calls<'c> {
    /// Where a kernel begins.
    pub fn of_kernel() -> Self {
        Self::new(0, None)
    }

    fn new(function: usize, by: Option<&'c Calls<'c>>) -> Self {
        Self { function, by, circle: Cell::new(None), built: RefCell::new(Vec::new()) }
    }

    fn contains(&self, function: usize) -> bool {
        self.function == function || self.by.is_some_and(|by| by.contains(function))
    }

    /// A function that leads to a call of itself, if there is one.
    pub(crate) fn circle(&self) -> Option<&'static str> {
        self.circle.get()
    }

    fn kernel(&self) -> &Calls<'c> {
        self.by.map_or(self, |by| by.kernel())
    }
}

impl<P: Parameters> KernelDef<P> {
    /// Sets the source that is printed of a kernel in Rust, which has so many bytes of shared arrays.
    #[doc(hidden)]
    #[must_use]
    pub fn printed(self, program: &PrintedProgram, calls: &Calls<'_>, shared: usize) -> Self {
        let (source, tables) = program.source();
        let needs = Needs { variables: program.variable_bytes(), tables, shared };
        self.with_needs(calls.circle(), needs).source(&source)
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
        // Two functions may have one name. What has one address is one code, and gives one tree.
        let address = F::program as fn(&Calls<'_>) -> PrintedProgram as usize;
        let kernel = calls.kernel();
        if calls.contains(address) {
            kernel.circle.set(Some(type_name::<F>()));
            return Rc::new(no_program());
        }
        let built = &kernel.built;
        let known =
            built.borrow().iter().find(|(known, _)| *known == address).map(|(_, tree)| Rc::clone(tree));
        known.unwrap_or_else(|| {
            let tree = Rc::new(F::program(&Calls::new(address, Some(calls))));
            built.borrow_mut().push((address, Rc::clone(&tree)));
            tree
        })
    }
}

/// In the place of a function that calls itself through others. Its kernel is not loaded.
fn no_program() -> PrintedProgram {
    PrintedProgram {
        name: "",
        file: "",
        parameters: Vec::new(),
        result: TypeInfo { name: String::new(), form: Form::Other, records: Vec::new() },
        types: Vec::new(),
        variables: Vec::new(),
        constants: Vec::new(),
        functions: Vec::new(),
        body: &[],
    }
}
