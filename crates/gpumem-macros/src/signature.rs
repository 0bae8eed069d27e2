//! The head of a kernel.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    FnArg, GenericArgument, Ident, ItemFn, Pat, PathArguments, ReturnType, Type, parse_quote,
    spanned::Spanned,
};

/// A parameter of a kernel.
#[derive(Clone)]
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
    /// A `Value`, as its content.
    Value,
    /// A number.
    Number,
    /// A type with a name of the user's: an alias, or a record.
    Named,
}

/// The kinds of functions with a body for GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A function that is launched.
    Kernel,
    /// A function that kernels call.
    Function,
}

/// The types of numbers.
const NUMBERS: &str = " u8 i8 u16 i16 u32 i32 u64 i64 usize isize f16 bf16 f32 f64 bool ";

/// Parameters of a kernel: as many as tuples of them have implementations.
pub(crate) const MOST: usize = 12;

/// Types of Rust that devices do not have, or not in one size, and what to take instead.
const WITHOUT_DEVICE_SIZE: [(&str, &str, &str); 4] = [
    ("usize", "u64", "`usize` has no fixed size on a device: take `u64` or `u32`"),
    ("isize", "i64", "`isize` has no fixed size on a device: take `i64` or `i32`"),
    ("u128", "u64", "`u128` is no type of kernels: take `u64`"),
    ("i128", "i64", "`i128` is no type of kernels: take `i64`"),
];

/// The parameter's type; in place of one that is refused, the one to take, so that callers bring no errors of their own.
pub(crate) fn declared(ty: &Type) -> Type {
    let last = last_of(ty);
    match WITHOUT_DEVICE_SIZE.iter().find(|(name, ..)| *name == last) {
        Some((_, instead, _)) => {
            let instead = Ident::new(instead, ty.span());
            parse_quote!(#instead)
        }
        None => ty.clone(),
    }
}

/// Refuses types that devices do not have, as a parameter or as elements of one.
fn without_device_size(ty: &Type, refuse: &mut impl FnMut(proc_macro2::Span, &str)) {
    let Type::Path(path) = ty else { return };
    let Some(last) = path.path.segments.last() else { return };
    if let Some((.., what)) = WITHOUT_DEVICE_SIZE.iter().find(|(name, ..)| last.ident == name) {
        refuse(last.span(), what);
    }
    let has_elements = ARRAYS.iter().chain(&["Value"]).any(|name| last.ident == name);
    if let (true, PathArguments::AngleBracketed(arguments)) = (has_elements, &last.arguments)
        && let Some(GenericArgument::Type(element)) = arguments.args.first()
    {
        without_device_size(element, refuse);
    }
}

/// The types of arrays, which a kernel's signature says by these names.
const ARRAYS: [&str; 8] =
    ["Slice", "SliceMut", "View", "ViewMut", "Own", "OwnView", "Constant", "ConstantArray"];

impl Parameter {
    /// Declares the parameter as the body sees it.
    pub(crate) fn unpacked(&self) -> TokenStream {
        let Self { name, kind, mutable, .. } = self;
        let mutability = mutable.then(|| quote!(mut));
        match kind {
            ParameterKind::Array => TokenStream::new(),
            ParameterKind::Value => quote_spanned!(name.span()=> let #mutability #name = #name.0;),
            ParameterKind::Number => quote_spanned!(name.span()=> let #mutability #name = *#name;),
            ParameterKind::Named => {
                quote_spanned!(self.ty.span()=> let #mutability #name = __gpumem::Language::unpack(#name);)
            }
        }
    }
}

/// The parameters of a kernel or of a function of kernels, or all that is wrong with its head.
pub(crate) fn parameters(function: &ItemFn, role: Role) -> syn::Result<Vec<Parameter>> {
    let signature = &function.sig;
    let mut wrong: Option<syn::Error> = None;
    let mut refuse = |span: proc_macro2::Span, what: &str| {
        let error = syn::Error::new(span, what);
        match &mut wrong {
            Some(all) => all.combine(error),
            None => wrong = Some(error),
        }
    };
    if let (ReturnType::Type(_, ty), Role::Kernel) = (&signature.output, role) {
        refuse(ty.span(), "a kernel returns nothing: it writes to its arrays");
    }
    if let Some(word) = &signature.asyncness {
        refuse(word.span(), "a kernel is not `async`: `barrier(..)` waits as it is");
    }
    if let Some(word) = &signature.constness {
        refuse(word.span(), "a kernel is not `const`");
    }
    if let Some(word) = &signature.unsafety {
        let what = match role {
            Role::Kernel => "launching a kernel is safe: the promise is made here, as `#[kernel(unsafe)]`",
            Role::Function => {
                "calling it is safe: the kernel that calls it makes the promise, as `#[kernel(unsafe)]`"
            }
        };
        refuse(word.span(), what);
    }
    if let Some(word) = &signature.abi {
        refuse(word.span(), "a kernel has no ABI: `name = \"..\"` sets its symbol");
    }
    if let Some(lifetime) = signature.generics.lifetimes().next() {
        refuse(lifetime.span(), "a kernel has no lifetimes: its arrays are there as long as it runs");
    }
    if let (Some(input), Role::Kernel) = (signature.inputs.iter().nth(MOST), role) {
        let what = "a kernel has at most 12 parameters: a record holds several numbers (`#[derive(gpumem::DeviceRecord)]`)";
        refuse(input.span(), what);
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
        if role == Role::Kernel {
            without_device_size(&argument.ty, &mut refuse);
        }
        if let Some(span) = hides_names(argument.ty.to_token_stream()) {
            refuse(span, "write the type's own path: the expansion repeats it beside names of its own");
            continue;
        }
        match (&*argument.pat, &*argument.ty) {
            (_, Type::Reference(ty)) => {
                let what = "a kernel takes `Slice`, `SliceMut`, `View`, `ViewMut`, `Own`, `OwnView`, constants and numbers, no references";
                refuse(ty.span(), what);
            }
            (_, Type::ImplTrait(ty)) => {
                refuse(ty.span(), "name the type as a parameter: `fn f<T: Numeric>(value: T)`");
            }
            (Pat::Ident(name), ty) if name.by_ref.is_none() && name.subpat.is_none() => {
                let kind = match kind_of(ty, &signature.generics) {
                    ParameterKind::Named if role == Role::Function => ParameterKind::Number,
                    ParameterKind::Value if role == Role::Function => {
                        refuse(ty.span(), "a function of kernels takes the value itself, without `Value`");
                        ParameterKind::Number
                    }
                    kind => kind,
                };
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

/// Returns the array type in which each work-item has its own element, for one in which any can write to any.
pub(crate) fn own_for(ty: &Type) -> Option<&'static str> {
    match last_of(ty).as_str() {
        "SliceMut" => Some("Own"),
        "ViewMut" => Some("OwnView"),
        _ => None,
    }
}

/// Where a type begins with a name of the expansion, or may: below its `use` that would be another type than in the head.
fn hides_names(ty: TokenStream) -> Option<Span> {
    let mut last = None;
    for token in ty {
        let found = match &token {
            TokenTree::Ident(name) if *name == "__gpumem" => Some(name.span()),
            TokenTree::Punct(mark) if mark.as_char() == '!' => last,
            TokenTree::Group(group) => hides_names(group.stream()),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
        last = Some(token.span());
    }
    None
}

/// The last part of a type's path.
fn last_of(ty: &Type) -> String {
    match ty {
        Type::Path(path) => {
            path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
        }
        _ => String::new(),
    }
}

fn kind_of(ty: &Type, generics: &syn::Generics) -> ParameterKind {
    if !matches!(ty, Type::Path(_)) {
        return ParameterKind::Number;
    }
    let last = last_of(ty);
    let is_generic = |name: &str| generics.type_params().any(|parameter| parameter.ident == name);
    match last.as_str() {
        "Value" => ParameterKind::Value,
        name if ARRAYS.contains(&name) => ParameterKind::Array,
        name if NUMBERS.contains(&format!(" {name} ")) || is_generic(name) => ParameterKind::Number,
        _ => ParameterKind::Named,
    }
}
