//! The head of a kernel.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{FnArg, Ident, ItemFn, Pat, ReturnType, Type, spanned::Spanned};

/// A parameter of a kernel.
pub(crate) struct Parameter {
    pub name: Ident,
    pub ty: Type,
    pub kind: ParameterKind,
    pub mutable: bool,
}

/// How a body sees a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    /// An array: a reference, which is indexed.
    Array,
    /// A `Value`, as what is in it.
    Value,
    /// A number.
    Number,
}

/// The types of arrays, which a kernel's signature says by these names.
const ARRAYS: [&str; 6] = ["Slice", "SliceMut", "View", "ViewMut", "Constant", "ConstantArray"];

impl Parameter {
    /// Declares the parameter as the body sees it.
    pub(crate) fn unpacked(&self) -> TokenStream {
        let Self { name, kind, mutable, .. } = self;
        let mutability = mutable.then(|| quote!(mut));
        match kind {
            ParameterKind::Array => TokenStream::new(),
            ParameterKind::Value => quote_spanned!(name.span()=> let #mutability #name = #name.0;),
            ParameterKind::Number => quote_spanned!(name.span()=> let #mutability #name = *#name;),
        }
    }
}

/// The parameters of a kernel, or all that is wrong with its head.
pub(crate) fn parameters(function: &ItemFn) -> syn::Result<Vec<Parameter>> {
    let signature = &function.sig;
    let mut wrong: Option<syn::Error> = None;
    let mut refuse = |span: proc_macro2::Span, what: &str| {
        let error = syn::Error::new(span, what);
        match &mut wrong {
            Some(all) => all.combine(error),
            None => wrong = Some(error),
        }
    };
    if let ReturnType::Type(_, ty) = &signature.output {
        refuse(ty.span(), "a kernel returns nothing: it writes to its `SliceMut` and `ViewMut`");
    }
    if let Some(word) = &signature.asyncness {
        refuse(word.span(), "a kernel is not `async`: `barrier(..)` waits as it is");
    }
    if let Some(word) = &signature.constness {
        refuse(word.span(), "a kernel is not `const`");
    }
    if let Some(word) = &signature.unsafety {
        refuse(word.span(), "launching a kernel is safe: the promise is made here, as `#[kernel(unsafe)]`");
    }
    if let Some(word) = &signature.abi {
        refuse(word.span(), "a kernel has no ABI: `name = \"..\"` sets its symbol");
    }
    if let Some(lifetime) = signature.generics.lifetimes().next() {
        refuse(lifetime.span(), "a kernel has no lifetimes: its arrays are there as long as it runs");
    }
    let mut parameters = Vec::new();
    for input in &signature.inputs {
        let argument = match input {
            FnArg::Typed(argument) => argument,
            FnArg::Receiver(receiver) => {
                refuse(receiver.span(), "a kernel has no `self`");
                continue;
            }
        };
        match (&*argument.pat, &*argument.ty) {
            (_, Type::Reference(ty)) => {
                let what = "a kernel takes `Slice`, `SliceMut`, `View`, `ViewMut`, constants and numbers, no references";
                refuse(ty.span(), what);
            }
            (Pat::Ident(name), ty) if name.by_ref.is_none() && name.subpat.is_none() => {
                let kind = kind_of(ty);
                if let (ParameterKind::Array, Some(word)) = (kind, &name.mutability) {
                    refuse(
                        word.span(),
                        "an array is written to without `mut`: `SliceMut` and `ViewMut` say that it is",
                    );
                }
                let (ty, mutable) = (ty.clone(), name.mutability.is_some());
                parameters.push(Parameter { name: name.ident.clone(), ty, kind, mutable });
            }
            (pattern, _) => refuse(pattern.span(), "a parameter of a kernel is a plain name"),
        }
    }
    wrong.map_or(Ok(parameters), Err)
}

fn kind_of(ty: &Type) -> ParameterKind {
    let Type::Path(path) = ty else { return ParameterKind::Number };
    let last = path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
    match last.as_str() {
        "Value" => ParameterKind::Value,
        name if ARRAYS.contains(&name) => ParameterKind::Array,
        _ => ParameterKind::Number,
    }
}
