//! Refuses code that kernels do not support, and says what to write instead.

use super::error;
use syn::{
    Attribute, Expr, ItemFn, Meta, Token,
    punctuated::Punctuated,
    visit::{self, Visit},
};

pub(super) const ITEM: &str = "items stand outside of kernels";
pub(super) const MACRO: &str = "a kernel cannot see through a macro: the only one that it knows is `assert!`";

/// The error for an expression that is not in the subset.
pub(super) fn expression<T>(e: &Expr) -> syn::Result<T> {
    match e {
        Expr::Closure(closure) => error(
            closure,
            "kernels have no closures: write the expression where it is used, or a function with `#[gpumem::device]`",
        ),
        Expr::Reference(reference) => {
            error(reference, "kernels have no references: arrays are given by name, numbers by value")
        }
        Expr::Range(range) => error(range, "a range stands only in the head of a `for`"),
        Expr::Try(e) => error(e.question_token, "kernels have no `?`: nothing in them is a `Result`"),
        Expr::Await(e) => {
            error(e.await_token, "nothing is awaited in a kernel: `barrier(..)` waits as it is")
        }
        Expr::Async(e) => {
            error(e.async_token, "nothing is awaited in a kernel: `barrier(..)` waits as it is")
        }
        Expr::Unsafe(e) => error(e.unsafe_token, "a kernel has no `unsafe` block: say `#[kernel(unsafe)]`"),
        Expr::Macro(call) => error(&call.mac, MACRO),
        Expr::Let(e) => error(e, "kernels have no `if let`: compare, or use `match`"),
        Expr::Lit(e) => error(e, "kernels have numbers and `bool`, no text and no characters"),
        Expr::Yield(_) | Expr::TryBlock(_) | Expr::Verbatim(_) => error(e, "kernels do not know this"),
        e => error(
            e,
            "kernels do not know this: write it with numbers, `if`, `match`, `for`, `while` and `loop`",
        ),
    }
}

/// Attributes that leave the body of a function as it is: lints, formatting, documentation.
const HARMLESS: [&str; 8] = ["allow", "expect", "warn", "deny", "forbid", "doc", "rustfmt", "clippy"];
/// As those, before a whole function.
const BEFORE: [&str; 6] = ["cfg", "inline", "cold", "must_use", "deprecated", "diagnostic"];

fn is_one_of(meta: &Meta, known: &[&str]) -> bool {
    meta.path().segments.first().is_some_and(|first| known.iter().any(|known| first.ident == known))
}

/// Refuses attributes of other macros below that of a function of kernels: they would change the function of the host alone.
pub(crate) fn attributes_before(function: &ItemFn) -> impl Iterator<Item = syn::Error> {
    fn is_harmless(meta: &Meta) -> bool {
        let all = Punctuated::<Meta, Token![,]>::parse_terminated;
        match meta {
            Meta::List(list) if meta.path().is_ident("cfg_attr") => {
                list.parse_args_with(all).is_ok_and(|given| given.iter().skip(1).all(is_harmless))
            }
            meta => is_one_of(meta, &HARMLESS) || is_one_of(meta, &BEFORE),
        }
    }

    function.attrs.iter().filter(|attribute| !is_harmless(&attribute.meta)).map(|attribute| {
        let what = "an attribute of another macro would not change the code for GPUs: put it above `#[gpumem::device]`";
        syn::Error::new_spanned(attribute, what)
    })
}

/// Refuses attributes inside of a function but for lints and formatting: rustc never sees them, and a `cfg` would decide nothing.
pub(crate) fn attributes(function: &ItemFn) -> Vec<syn::Error> {
    struct Found(Vec<syn::Error>);

    impl<'a> Visit<'a> for Found {
        fn visit_attribute(&mut self, attribute: &'a Attribute) {
            if !is_one_of(&attribute.meta, &HARMLESS) {
                let what = "a kernel has no attributes inside: put `#[cfg(..)]` before the whole function, or use `if` with a constant";
                self.0.push(syn::Error::new_spanned(attribute, what));
            }
        }

        fn visit_macro(&mut self, call: &'a syn::Macro) {
            // `assert!`, whose arguments are expressions as others.
            let arguments = call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
            let mut inner = Found(Vec::new());
            arguments.iter().flatten().for_each(|argument| inner.visit_expr(argument));
            self.0.append(&mut inner.0);
        }
    }

    let mut found = Found(Vec::new());
    visit::visit_signature(&mut found, &function.sig);
    visit::visit_block(&mut found, &function.block);
    found.0
}
