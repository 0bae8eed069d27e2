//! From the body of a kernel to its three forms, in one walk:
//!
//! * `host`: the code of a work-item on the host. The body as written, with the functions of kernels as calls of
//!   `__item`, and reads and writes of elements as calls of `Load` and `Store`. rustc's errors and lints refer to this
//!   copy.
//! * `witness`: the same, with values passed through witnesses. It is checked, and never generated.
//! * `tree`: constructors of `E` and `S`, with the numbers of the witnesses, from which C++ is printed.
//!
//! C++ leaves the order of operands open, and has no blocks as values. So a value has two parts in the tree: statements that
//! come `before` it, and an expression. [`Lower::in_order`] moves operands to variables where the order can be seen.

mod assign;
mod blocks;
mod calls;
mod control;
mod expressions;
mod functions;
mod methods;
mod parts;
mod patterns;
mod phases;
mod ranges;
mod records;
pub(crate) mod refuse;
mod values;
#[cfg(test)]
mod words;

use crate::{
    names::{Key, Names},
    signature::Role,
    split::Phase,
};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use std::collections::HashSet;
use syn::{Expr, spanned::Spanned};

/// The forms of a value.
pub(crate) struct Value {
    pub host: TokenStream,
    pub witness: TokenStream,
    /// Statements that come before it.
    pub before: Vec<TokenStream>,
    /// An expression.
    pub tree: TokenStream,
    pub order: Order,
}

/// The effects of moving a value past another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(crate) enum Order {
    /// Nothing.
    Fixed,
    /// It reads memory that another may change.
    Reads,
    /// It changes something, or others wait for it.
    Acts,
}

/// The forms of a statement.
#[derive(Default)]
pub(crate) struct Code {
    pub host: TokenStream,
    pub witness: TokenStream,
    pub tree: Vec<TokenStream>,
}

/// The collected parts of a kernel.
pub(crate) struct Lower {
    pub names: Names,
    /// Where each witness looks, by number.
    pub witnesses: Vec<Span>,
    /// Where values are compared with `==` and `!=`, by number.
    pub compared: Vec<Span>,
    /// Where functions are called, by number.
    pub functions: Vec<Span>,
    /// The names of those whose paths have one segment.
    called: Vec<Ident>,
    /// The constants, by number, with the number of the witness that has seen their type where they do not say it themselves.
    pub constants: Vec<(Expr, Option<usize>)>,
    /// Shared arrays: the type of their elements, and their extents.
    pub shared: Vec<(syn::Type, Vec<Expr>)>,
    /// Where dynamic shared memory, or a shared array, is asked for first.
    pub shares: Option<Span>,
    /// Work-items of the body wait for each other, or use values of the group.
    pub meets: bool,
    /// Barriers and operations of waves so far.
    waits: usize,
    pub errors: Vec<syn::Error>,
    /// Whether this is a kernel, or a function that kernels call.
    role: Role,
    /// Whether this is the function of a `wave_reduce`, which the host calls for all work-items of a wave.
    of_wave: bool,
    /// Where the first `wave_reduce` stands.
    pub reduces: Option<Span>,
    /// The element whose part the last expression was, if it was one.
    part: Option<parts::Part>,
    /// The loops around the current statement.
    loops: Vec<Loop>,
    /// Labels that something jumps to.
    jumped: HashSet<String>,
    /// The last line that was told.
    line: usize,
    /// Whether the body is split at its barriers.
    is_split: bool,
    /// Its phases that have not been walked yet.
    phases: Vec<Option<Phase>>,
}

/// A loop around the current statement.
struct Loop {
    /// Its label, and the number of that.
    label: Option<(Key, usize)>,
    /// Its names as labels of C++: after it, and at the end of its body.
    end: String,
    next: String,
    /// The variable and the witness of its value.
    value: Option<(String, usize)>,
}

/// A place for what the macro writes, told as the user's place.
fn own(span: Span) -> Span {
    Span::call_site().located_at(span)
}

/// The arguments of a call, in brackets that end where those of the user do. What the macro wrote is then told as the whole
/// call, and rustc has no advice for it that the user could not follow.
fn in_brackets(call: &syn::ExprCall, arguments: TokenStream) -> proc_macro2::Group {
    let mut group = proc_macro2::Group::new(proc_macro2::Delimiter::Parenthesis, arguments);
    group.set_span(own(call.paren_token.span.join()));
    group
}

/// A place for variables that the macro declares and uses itself: they are others than the user's of the same name.
fn local(span: Span) -> Span {
    Span::mixed_site().located_at(span)
}

/// The work-item that a body belongs to.
pub(crate) fn item(span: Span) -> Ident {
    Ident::new("__item", local(span))
}

/// The variable of a split body that runs its phases, and that of its arguments.
pub(crate) fn phases() -> [Ident; 2] {
    ["__phases", "__arguments"].map(|name| Ident::new(name, local(Span::call_site())))
}

/// The attribute of a closure that is the inside of several loops. The code of a debug build would only become longer.
pub(crate) fn inline() -> TokenStream {
    quote!(#[cfg_attr(not(debug_assertions), inline(always))])
}

/// A witness.
pub(crate) fn witness(number: usize, span: Span) -> Ident {
    format_ident!("__w{number}", span = local(span))
}

/// The witnesses of the two sides of a comparison.
pub(crate) fn sides(number: usize, span: Span) -> [Ident; 2] {
    ["l", "r"].map(|side| format_ident!("__{side}{number}", span = local(span)))
}

/// A witness of a function that is called.
pub(crate) fn function_witness(number: usize, span: Span) -> Ident {
    format_ident!("__f{number}", span = local(span))
}

impl Lower {
    pub(crate) fn new(role: Role) -> Self {
        let mut names = Names::default();
        names.enter();
        Self {
            names,
            witnesses: Vec::new(),
            compared: Vec::new(),
            functions: Vec::new(),
            called: Vec::new(),
            constants: Vec::new(),
            shared: Vec::new(),
            shares: None,
            meets: false,
            waits: 0,
            errors: Vec::new(),
            role,
            of_wave: false,
            reduces: None,
            part: None,
            loops: Vec::new(),
            jumped: HashSet::new(),
            line: 0,
            is_split: false,
            phases: Vec::new(),
        }
    }

    /// Where a function of this name is called.
    pub(crate) fn calls_itself(&self, name: &Ident) -> Option<Span> {
        self.called.iter().find(|called| *called == name).map(Ident::span)
    }

    /// A new witness for the expression there.
    fn watch(&mut self, span: Span) -> usize {
        self.witnesses.push(span);
        self.witnesses.len() - 1
    }

    /// Lets a witness see an expression. Gives its number and the expression.
    fn seen(&mut self, expression: &TokenStream, span: Span) -> (usize, TokenStream) {
        let number = self.watch(span);
        let name = witness(number, span);
        // In parentheses at the user's place, so that errors of this copy are equal to those of the other, and told once.
        (number, quote_spanned!(span=> (#name.see(#expression))))
    }

    /// Moves a value to a variable of C++, after the statements before it.
    fn move_to_variable(&mut self, value: &mut Value, span: Span, before: &mut Vec<TokenStream>) {
        before.append(&mut value.before);
        let (number, witness) = self.seen(&value.witness, span);
        let (name, tree) = (self.names.fresh("value"), &value.tree);
        before.push(quote!(S::Let(#name, #number, false, &[#tree])));
        value.witness = witness;
        value.tree = quote!(E::Var(#name));
        value.order = Order::Fixed;
    }

    /// The values of expressions that stand side by side.
    fn expressions<'e>(
        &mut self,
        all: impl IntoIterator<Item = &'e Expr>,
    ) -> syn::Result<Vec<(Value, Span)>> {
        all.into_iter().map(|e| Ok((self.expression(e)?, e.span()))).collect()
    }

    /// Ensures that operands are computed from left to right wherever that can be observed. Returns the statements
    /// before all of them.
    fn in_order(&mut self, values: &mut [(Value, Span)]) -> Vec<TokenStream> {
        let mut before = Vec::new();
        let last =
            values.iter().rposition(|(value, _)| value.order == Order::Acts || !value.before.is_empty());
        let Some(last) = last else { return before };
        let reads_after = values.iter().skip(last + 1).any(|(value, _)| value.order != Order::Fixed);
        for (index, (value, span)) in values.iter_mut().enumerate() {
            let moves = index < last && value.order != Order::Fixed
                || index == last && value.order == Order::Acts && reads_after;
            if moves {
                self.move_to_variable(value, *span, &mut before);
            } else {
                before.append(&mut value.before);
            }
        }
        before
    }

    /// Tells the line that the next statement stands on, if it is another one.
    fn tell_line(&mut self, span: Span, tree: &mut Vec<TokenStream>) {
        // Outside of a compiler there are no lines.
        let line = if proc_macro::is_available() { span.unwrap().start().line() } else { 0 };
        if line != self.line && line > 0 {
            self.line = line;
            tree.push(quote!(S::Line(#line)));
        }
    }
}

impl Value {
    /// A value that is the same tokens for host and witness.
    fn plain(tokens: TokenStream, tree: TokenStream, order: Order) -> Self {
        Self { host: tokens.clone(), witness: tokens, before: Vec::new(), tree, order }
    }
}

/// These values for the host, for the witness and in the tree.
fn forms(values: &[(Value, Span)]) -> [Vec<&TokenStream>; 3] {
    let forms: [fn(&Value) -> &TokenStream; 3] =
        [|value| &value.host, |value| &value.witness, |value| &value.tree];
    forms.map(|form| values.iter().map(|(value, _)| form(value)).collect())
}

/// The strongest of the orders of these values.
fn order_of(values: &[(Value, Span)]) -> Order {
    let orders = values.iter().map(|(value, _)| value.order);
    orders.fold(Order::Fixed, |most, order| if order > most { order } else { most })
}

/// An error at these tokens.
fn error<T>(at: impl quote::ToTokens, what: impl std::fmt::Display) -> syn::Result<T> {
    Err(syn::Error::new_spanned(at, what))
}
