//! Functions of kernels that are written in Rust: the code that `#[device]` generates, and how a kernel finds them.
//!
//! Each function has an empty type of the same name, with the same generic parameters. A kernel's witness has that
//! type, so rustc infers which instance of a generic function is called, and [`function_of`] prints that one.

use super::{Form, Language, PrintedProgram, TypeInfo, Witness};
use std::{any::type_name, cell::RefCell, marker::PhantomData, rc::Rc};

/// The type beside a function with `#[device]`.
///
/// # Safety
/// The program is the function's, as `#[device]` writes it: it is printed into the source of every kernel that calls it.
pub unsafe trait DeviceFunction {
    /// Its tree, within the functions that lead to it.
    fn program(calls: &Calls<'_>) -> PrintedProgram;
}

/// A function with `#[device]` that takes one value, as a type of the function's name: `map::<square>()`. A generic kernel
/// calls it by the name of its type parameter.
///
/// # Safety
/// [`__call`](Self::__call) is the function of [`DeviceFunction::program`], which takes one `A` and gives an
/// [`Output`](Self::Output).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no kernel function of one `{A}`",
    note = "write `#[gpumem::device] fn name(x: {A}) -> ..`, and name it without parentheses: `map::<name>()`"
)]
pub unsafe trait UnaryFunction<A>: DeviceFunction + Sized {
    type Output;

    #[doc(hidden)]
    fn __call(witness: &Witness<Self>, a: A) -> Answer<Self, Self::Output>;
}

/// As [`UnaryFunction`], of two values.
///
/// # Safety
/// [`__call`](Self::__call) is the function of [`DeviceFunction::program`], which takes an `A` and a `B` and gives an
/// [`Output`](Self::Output).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no kernel function of a `{A}` and a `{B}`",
    note = "write `#[gpumem::device] fn name(x: {A}, y: {B}) -> ..`, and name it without parentheses: `zip_map::<name, _, _>(..)`"
)]
pub unsafe trait BinaryFunction<A, B>: DeviceFunction + Sized {
    type Output;

    #[doc(hidden)]
    fn __call(witness: &Witness<Self>, a: A, b: B) -> Answer<Self, Self::Output>;
}

/// What the function beside the type `F` has given: a kernel calls `path::__call`, and the path is the user's.
#[derive(Debug)]
pub struct Answer<F, R>(R, PhantomData<fn(F)>);

impl<F, R> Answer<F, R> {
    /// The answer of the function.
    ///
    /// # Safety
    /// The function beside `F` has given this value.
    #[inline(always)]
    pub unsafe fn new(value: R) -> Self {
        Self(value, PhantomData)
    }

    #[inline(always)]
    pub fn value(self) -> R {
        self.0
    }

    /// The value of the function that a witness has seen.
    pub fn of(self, _: &Witness<F>) -> R {
        self.0
    }
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
