//! The expansion of a kernel: a function that declares it.

use crate::{
    attribute::Attribute,
    lower::{self, Code, Lower},
    names::{self, VariableKind},
    signature::{self, Parameter, ParameterKind, Role},
    split::{self, Why},
};
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Ident, ItemFn, ext::IdentExt, spanned::Spanned};

/// The declaration; with errors, a function of the same type beside them, so that its callers bring no errors of their own.
pub(crate) fn expand(attribute: &Attribute, function: &ItemFn) -> TokenStream {
    match declaration(attribute, function) {
        Ok(declaration) => declaration,
        Err(error) => {
            let errors = error.to_compile_error();
            let head = head(attribute, function);
            quote!(#errors #[allow(unused)] #head { loop {} })
        }
    }
}

/// The head of the declaring function.
fn head(attribute: &Attribute, function: &ItemFn) -> TokenStream {
    let ItemFn { attrs, vis, sig, .. } = function;
    let (root, name, generics, clauses) =
        (&attribute.root, &sig.ident, &sig.generics, &sig.generics.where_clause);
    let types = sig.inputs.iter().filter_map(|input| match input {
        syn::FnArg::Typed(argument) if !matches!(*argument.ty, syn::Type::Reference(_)) => Some(&argument.ty),
        _ => None,
    });
    let types = types.take(signature::MOST).map(|ty| signature::declared(ty));
    quote! {
        #(#attrs)*
        #[allow(clippy::type_complexity)]
        #vis fn #name #generics () -> #root::kernel::KernelDef<(#(#types,)*)> #clauses
    }
}

fn declaration(attribute: &Attribute, function: &ItemFn) -> syn::Result<TokenStream> {
    let parameters = signature::parameters(function, Role::Kernel);
    let mut lower = Lower::new(Role::Kernel);
    let seen = declare(&mut lower, parameters.as_deref().unwrap_or_default());
    let code = lower.block(&function.block);
    lower.errors.extend(lower::refuse::attributes(function));
    let mut errors = std::mem::take(&mut lower.errors).into_iter();
    let parameters = match (parameters, errors.next()) {
        (Ok(parameters), None) => parameters,
        (Ok(_), Some(first)) => return Err(all_of(first, errors)),
        // Without its parameters, the body knows too little to be judged.
        (Err(head), _) => return Err(head),
    };
    let unpacked: TokenStream = parameters.iter().map(Parameter::unpacked).collect();
    let phases = phases(function, &parameters, &unpacked);
    if let Some(why) = phases.as_ref().err().filter(|why| **why == split::DIFFERS) {
        return Err(syn::Error::new(lower.reduces.unwrap_or_else(Span::call_site), why));
    }
    if attribute.unsafe_word.is_none() {
        check_races(&parameters, &lower, phases.as_ref().err().copied())?;
    }
    Ok(written(attribute, function, &parameters, &lower, &seen, &code, &unpacked, phases))
}

/// Refuses a kernel without `unsafe` whose work-items may race or diverge at a barrier. For parameters with the user's
/// type names, rustc does so ([`written`]).
fn check_races(parameters: &[Parameter], lower: &Lower, parts: Option<Why>) -> syn::Result<()> {
    const PROMISE: &str = "or promise that none do: `#[gpumem::kernel(unsafe)]`";
    let written = parameters.iter().filter_map(|parameter| {
        let own = signature::own_for(&parameter.ty)?;
        let what = format!("work-items may race for its elements: take `{own}`, {PROMISE}");
        Some(syn::Error::new(parameter.ty.span(), what))
    });
    let shared = lower.shares.map(|span| {
        syn::Error::new(
            span,
            "work-items may race for a shared array: `#[gpumem::kernel(unsafe)]` is the promise that none do",
        )
    });
    let parted = parts.filter(|_| lower.meets && lower.shares.is_none()).map(|why| {
        let what = "work-items may come to different barriers: `#[gpumem::kernel(unsafe)]` is the promise that they do not";
        syn::Error::new(Span::call_site(), format!("{what} ({why})"))
    });
    let mut errors = written.chain(shared).chain(parted);
    errors.next().map_or(Ok(()), |first| Err(all_of(first, errors)))
}

pub(crate) fn all_of(first: syn::Error, others: impl Iterator<Item = syn::Error>) -> syn::Error {
    others.fold(first, |mut all, error| {
        all.combine(error);
        all
    })
}

/// Declares the parameters. Returns the code by which their witnesses see them.
pub(crate) fn declare(lower: &mut Lower, parameters: &[Parameter]) -> TokenStream {
    let mut seen = TokenStream::new();
    for Parameter { name, ty, kind, mutable } in parameters {
        let (number, look) = match (kind, mutable) {
            (ParameterKind::Array, _) => lower.look_at_type(name, &quote!(#name)),
            // It may be an array, which is no value, and so has no witness of its own.
            (ParameterKind::Named, false) => {
                lower.look_at_type(name, &quote_spanned!(ty.span()=> __gpumem::Language::given::<&#ty>()))
            }
            _ => lower.look_at(name),
        };
        let kind = match (kind, mutable) {
            (ParameterKind::Array, _) => VariableKind::ArrayParameter,
            (_, true) => VariableKind::Mutable,
            (ParameterKind::Named, false) => VariableKind::Unknown,
            (_, false) => VariableKind::Fixed,
        };
        lower.names.declare(name, kind, number);
        seen.extend(look);
    }
    seen
}

/// The claim that `__gpumem` is gpumem: its scope does not compile if one of these names is another's. All that the expansion
/// calls belongs to them, by a path.
pub(crate) fn origin() -> TokenStream {
    // In a block of its own: no name of the user's means this structure.
    quote! {
        const _: () = {
            struct __Origin;
            // SAFETY: there is nothing to promise.
            #[allow(clippy::undocumented_unsafe_blocks)]
            unsafe impl __gpumem::Origin for __Origin {
                fn __gpumem_names<T>(
                    _: (
                        &dyn __gpumem::DeviceType,
                        &dyn __gpumem::Load<(), Elem = ()>,
                        &dyn __gpumem::Store<(), Elem = ()>,
                        &dyn __gpumem::StoreLocal<(), Elem = ()>,
                        &dyn __gpumem::Change<(), __gpumem::rust::primitive::u32>,
                        &dyn __gpumem::Row,
                        &dyn __gpumem::Grid,
                        &dyn __gpumem::Methods<Bits = (), Magnitude = (), Part = ()>,
                        &dyn __gpumem::Ordered,
                    ),
                    _: (
                        __gpumem::Calls<'_>,
                        __gpumem::PrintedConstant,
                        __gpumem::E,
                        __gpumem::Fault,
                        __gpumem::KernelDef<T>,
                        __gpumem::Language,
                        __gpumem::PrintedParameter,
                        __gpumem::Phases<'_>,
                        __gpumem::PrintedProgram,
                        __gpumem::Private<T>,
                        __gpumem::S,
                        __gpumem::Witness<T>,
                        __gpumem::WorkItem<'_>,
                        __gpumem::WorkItemIds<'_>,
                    ),
                ) {}
            }
        };
    }
}

/// The expression that makes the `Program` of a walked body. `closure` are the parameters of the copy for rustc,
/// `begin` the code before its body.
pub(crate) fn program(
    name: &str,
    result: &TokenStream,
    parameters: &[Parameter],
    lower: &Lower,
    closure: &TokenStream,
    begin: &TokenStream,
    code: &Code,
) -> TokenStream {
    let Code { witness, tree, .. } = code;
    // A text: a macro of this name could be the user's, and return another program.
    let file = if proc_macro::is_available() { Span::call_site().unwrap().file() } else { String::new() };
    let proof = lower.names.proof();
    let types = parameters.iter().map(|parameter| &parameter.ty);
    let texts = parameters.iter().map(|Parameter { name, .. }| {
        lower.names.find(name).map(|found| found.name.clone()).unwrap_or_default()
    });
    let numbered = |(number, _)| lower::witness(number, Span::call_site());
    let witnesses: Vec<Ident> = lower.witnesses.iter().enumerate().map(numbered).collect();
    let infos = lower.witnesses.iter().enumerate().map(|(number, span)| {
        let witness = lower::witness(number, *span);
        quote_spanned!(*span=> __gpumem::Language::type_of(&#witness))
    });
    let variables = lower.names.variables().map(|number| lower::witness(number, Span::call_site()));
    let numbered = |(number, span): (usize, &Span)| lower::function_witness(number, *span);
    let functions: Vec<Ident> = lower.functions.iter().enumerate().map(numbered).collect();
    let compared =
        lower.compared.iter().enumerate().map(|(number, span)| (*span, lower::sides(number, *span)));
    let (mut sides, mut alike) = (TokenStream::new(), TokenStream::new());
    for (span, [left, right]) in compared {
        sides.extend(quote!(let (#left, #right) = (__gpumem::Witness::new(), __gpumem::Witness::new());));
        alike.extend(quote_spanned!(span=> __gpumem::Language::alike(&#left, &#right);));
    }
    let constants = lower.constants.iter().map(|(value, seen)| match seen {
        None => quote_spanned!(value.span()=> __gpumem::PrintedConstant::new(&#value)),
        Some(number) => {
            let witness = lower::witness(*number, value.span());
            quote_spanned!(value.span()=> __gpumem::PrintedConstant::seen(&#witness, &#value))
        }
    });
    quote! {
        {
            #(let #witnesses = __gpumem::Witness::new();)*
            #(let #functions = __gpumem::Witness::new();)*
            #sides
            let __never = |#closure| -> #result { #begin #witness };
            #alike
            let __names = || { #proof };
            __gpumem::PrintedProgram {
                name: #name,
                file: #file,
                parameters: __gpumem::Language::list([#(__gpumem::PrintedParameter {
                    name: #texts,
                    info: <#types as __gpumem::DeviceType>::device_type(),
                }),*]),
                result: <#result as __gpumem::DeviceType>::device_type(),
                types: __gpumem::Language::list([#(#infos),*]),
                variables: __gpumem::Language::list([#(__gpumem::Language::bytes_of(&#variables)),*]),
                constants: __gpumem::Language::list([#(#constants),*]),
                functions: __gpumem::Language::list([#(__gpumem::Language::function_of(&#functions, __calls)),*]),
                body: {
                    use __gpumem::{E, S};
                    static BODY: &[S] = &[#(#tree),*];
                    BODY
                },
            }
        }
    }
}

/// The body that is split at its barriers, or why it is not.
fn phases(function: &ItemFn, parameters: &[Parameter], unpacked: &TokenStream) -> Result<TokenStream, Why> {
    let names: Vec<(Ident, bool)> =
        parameters.iter().map(|parameter| (parameter.name.clone(), parameter.mutable)).collect();
    let given: Vec<&Ident> = names.iter().map(|(name, _)| name).collect();
    // The split knows names by their letters.
    let alike = names::alike(&function.block, &given);
    let split = match alike.is_empty() {
        true => split::split(&function.block, &names),
        false => Err("macros have written names of the same letters that are not the same"),
    };
    let differs = || split::may_differ(&function.block, &names, &alike);
    let split = split.map_err(|why| if differs() { split::DIFFERS } else { why })?;
    let mut lower = Lower::new(Role::Kernel);
    declare(&mut lower, parameters);
    let body = lower.split(split, unpacked);
    if lower.errors.is_empty() { Ok(body) } else { Err("a phase is not in the subset of kernels") }
}

#[allow(clippy::too_many_arguments)] // the parts of one kernel
fn written(
    attribute: &Attribute,
    function: &ItemFn,
    parameters: &[Parameter],
    lower: &Lower,
    seen: &TokenStream,
    code: &Code,
    unpacked: &TokenStream,
    phases: Result<TokenStream, Why>,
) -> TokenStream {
    let (head, root) = (head(attribute, function), &attribute.root);
    let names: Vec<&Ident> = parameters.iter().map(|parameter| &parameter.name).collect();
    let types: Vec<&syn::Type> = parameters.iter().map(|parameter| &parameter.ty).collect();
    let host = &code.host;
    let symbol = match &attribute.name {
        Some(name) => name.value(),
        None => names::symbol(&function.sig.ident.to_string()),
    };
    let shown = attribute.name.is_none().then(|| {
        let written = function.sig.ident.unraw().to_string();
        quote!(.shown_as(#written))
    });
    let shared = lower.shared.iter().fold(quote!(0), |bytes, (element, extents)| {
        let rank = extents.len();
        quote!(__gpumem::Language::shared_end::<#element, #rank>(#bytes, [#(const { #extents }),*]))
    });
    let flags = &attribute.flags;
    let launch_bounds =
        attribute.launch_bounds.map(|(items, groups)| quote!(.launch_bounds(#items, #groups)));
    let checked = !attribute.unchecked;
    let (item, inline) = (lower::item(Span::call_site()), lower::inline());
    let arguments = quote!((#(#names,)*): &(#(#types,)*));
    // Only the parts that the body needs: without waits it is a plain loop.
    let awaiting = quote!(async |#item: __gpumem::WorkItem<'_>, #arguments| { #unpacked #host });
    let [runs, given] = lower::phases();
    let body = match (lower.meets, phases) {
        (false, _) => {
            quote!(.host_loop(#inline |#item: &__gpumem::WorkItemIds<'_>, #arguments| { #unpacked #host }))
        }
        (true, Err(_)) => quote!(.host_body(#awaiting)),
        (true, Ok(phases)) => quote! {
            .host_split(
                #awaiting,
                |#runs: &mut __gpumem::Phases<'_>, #given: &(#(#types,)*)| {
                    // The other body is the one that lints are about.
                    #[allow(unused, warnings, overflowing_literals, arithmetic_overflow, unconditional_panic, clippy::all)]
                    let __outcome = {
                        let (#(#names,)*) = #given;
                        #phases
                    };
                    __outcome
                },
            )
        },
    };
    // The names below are gpumem's own, which `origin` claims; else another could stand for one of them.
    // The block has the span of the author's `unsafe`, braces and all: otherwise lints attribute it to the macro.
    // Without that word it is the macro's own: rustc has checked the parameters, and the body writes only to them.
    let promise = attribute.unsafe_word.unwrap_or_else(Span::mixed_site);
    let new = quote_spanned!(promise=> unsafe { __gpumem::KernelDef::new(#symbol) });
    let race_free = attribute.unsafe_word.is_none().then(|| {
        let checks =
            types.iter().map(|ty| quote_spanned!(ty.span()=> __gpumem::Language::race_free::<#ty>();));
        quote!(#(#checks)*)
    });
    let (closure, origin) = (quote!(#item: __gpumem::WorkItem<'static>, #arguments), origin());
    let program = program(&symbol, &quote!(()), parameters, lower, &closure, &quote!(#unpacked #seen), code);
    quote! {
        #head {
            use #root::kernel::codegen as __gpumem;
            #origin
            let __calls = &__gpumem::Calls::of_kernel();
            #race_free
            #[allow(unused, warnings, overflowing_literals, arithmetic_overflow, unconditional_panic, clippy::all)]
            let __program = #program;
            // clippy does not see a comment above the attribute.
            #[allow(clippy::undocumented_unsafe_blocks)]
            let __declaration: __gpumem::KernelDef<(#(#types,)*)> = #new;
            __declaration.printed(&__program, __calls, #shared) #body .bounds_checks(#checked) #(.compiler_flag(#flags))* #launch_bounds #shown
                .sealed()
        }
    }
}
