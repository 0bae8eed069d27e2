//! The expansion of a function of kernels: the function, and a type by which kernels find its tree.

use crate::{
    attribute::Attribute,
    declaration::{all_of, declare, origin, program},
    lower::{Code, Lower, refuse},
    signature::{self, Parameter, ParameterKind, Role},
};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{GenericParam, ItemFn, ReturnType, ext::IdentExt, spanned::Spanned};

/// The function; with errors, one of the same head beside them, so that its callers bring no errors of their own.
pub(crate) fn expand(attribute: &Attribute, function: &ItemFn) -> TokenStream {
    match walked(attribute, function) {
        Ok(function) => function,
        Err(error) => {
            let errors = error.to_compile_error();
            if function.sig.generics.lifetimes().next().is_some() {
                return errors;
            }
            let stub = quote!({ loop {} });
            let parameters = signature::parameters(function, Role::Function).unwrap_or_default();
            let pieces = pieces(attribute, function, &parameters, &stub, None);
            // What it does with its parameters is not known.
            quote!(#errors #[allow(unused)] #pieces)
        }
    }
}

fn walked(attribute: &Attribute, function: &ItemFn) -> syn::Result<TokenStream> {
    let parameters = signature::parameters(function, Role::Function);
    let mut lower = Lower::new(Role::Function);
    let seen = declare(&mut lower, parameters.as_deref().unwrap_or_default());
    let code = match &function.sig.output {
        ReturnType::Default => Ok(lower.block(&function.block)),
        ReturnType::Type(..) => lower.giving_block(&function.block),
    };
    lower.errors.extend(refuse::attributes(function));
    lower.errors.extend(refuse::attributes_before(function));
    if let Some(span) = lower.calls_itself(&function.sig.ident) {
        let what = "a function of kernels does not call itself: write a loop";
        lower.errors.push(syn::Error::new(span, what));
    }
    let mut errors = std::mem::take(&mut lower.errors);
    let (parameters, code) = match (parameters, code) {
        (Err(head), _) => return Err(head),
        (Ok(parameters), Ok(code)) => (parameters, code),
        (Ok(_), Err(error)) => {
            errors.push(error);
            (Vec::new(), Code::default())
        }
    };
    let mut errors = errors.into_iter();
    if let Some(first) = errors.next() {
        return Err(all_of(first, errors));
    }
    let Code { host, .. } = &code;
    let result = result(function);
    // Variables, not parameters of the closure: their witnesses are outside of it, and have their lifetimes.
    let given = heads(&parameters);
    let begin = quote!(#(let #given = __gpumem::Language::given();)* #seen);
    let name = function.sig.ident.unraw().to_string();
    let tree = program(&name, &result, &parameters, &lower, &TokenStream::new(), &begin, &code);
    Ok(pieces(attribute, function, &parameters, host, Some(&tree)))
}

/// The parameters as the function takes them: arrays by reference.
fn heads(parameters: &[Parameter]) -> Vec<TokenStream> {
    let head = |Parameter { name, ty, kind, mutable }: &Parameter| {
        let mutability = mutable.then(|| quote!(mut));
        match kind {
            ParameterKind::Array => quote_spanned!(ty.span()=> #name: &#ty),
            _ => quote!(#mutability #name: #ty),
        }
    };
    parameters.iter().map(head).collect()
}

fn result(function: &ItemFn) -> TokenStream {
    match &function.sig.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    }
}

/// The function with this body, and its type.
fn pieces(
    attribute: &Attribute,
    function: &ItemFn,
    parameters: &[Parameter],
    host: &TokenStream,
    program: Option<&TokenStream>,
) -> TokenStream {
    let ItemFn { attrs, vis, sig, .. } = function;
    let (root, name, generics) = (&attribute.root, &sig.ident, &sig.generics);
    let (impl_generics, type_generics, clauses) = generics.split_for_impl();
    let output = &sig.output;
    let inline =
        attrs.iter().all(|attribute| !attribute.path().is_ident("inline")).then(|| quote!(#[inline]));
    let heads = heads(parameters);
    let types = parameters.iter().map(|Parameter { ty, kind, .. }| match kind {
        ParameterKind::Array => quote_spanned!(ty.span()=> &#ty),
        _ => quote!(#ty),
    });
    let used = generics.params.iter().filter_map(|parameter| match parameter {
        GenericParam::Type(ty) => Some(ty.ident.clone()),
        _ => None,
    });
    let used: Vec<Ident> = used.collect();
    // Without defaults and bounds: those are in the clauses of the implementations.
    let declared = generics.params.iter().map(|parameter| match parameter {
        GenericParam::Type(ty) => ty.ident.to_token_stream(),
        GenericParam::Const(value) => {
            let (name, ty) = (&value.ident, &value.ty);
            quote!(const #name: #ty)
        }
        GenericParam::Lifetime(lifetime) => lifetime.to_token_stream(),
    });
    let result = result(function);
    let program = program.map_or(quote!(loop {}), TokenStream::clone);
    let instance = quote_spanned!(name.span()=> #name);
    let origin = origin();
    let conditions: Vec<_> = attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect();
    let turbofish = type_generics.as_turbofish();
    quote! {
        #(#attrs)*
        // The user's body is a block in this one.
        #[allow(unused_braces)]
        #inline
        #vis fn #name #generics (#(#heads),*) #output #clauses {
            #[allow(unused_imports)]
            use #root::kernel::codegen as __gpumem;
            #host
        }

        #(#conditions)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code, clippy::all)]
        #vis enum #instance<#(#declared),*> {
            __Never(#root::kernel::codegen::rust::marker::PhantomData<fn() -> (#(#used,)*)>),
        }

        #(#conditions)*
        #[allow(unused, warnings, overflowing_literals, arithmetic_overflow, unconditional_panic, clippy::all)]
        const _: () = {
            use #root::kernel::codegen as __gpumem;
            #origin

            impl #impl_generics #name #type_generics #clauses {
                #[doc(hidden)]
                #[inline(always)]
                #vis fn __witness() -> __gpumem::Witness<Self> {
                    __gpumem::Witness::new()
                }
            }

            // SAFETY: the tree is that of the function.
            unsafe impl #impl_generics __gpumem::DeviceFunction for #name #type_generics #clauses {
                type Pointer = fn(#(#types),*) -> #result;

                #[inline(always)]
                fn pointer() -> Self::Pointer {
                    #name #turbofish
                }

                fn program(__calls: &__gpumem::Calls<'_>) -> __gpumem::PrintedProgram {
                    #program
                }
            }
        };
    }
}
