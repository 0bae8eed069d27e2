//! `#[derive(DeviceRecord)]`: structures with the same form on the host and on a GPU, and enums without fields.
//!
//! The path to gpumem and every name around the structure are the user's to define. So the expansion has no `unsafe` of its own:
//! it names the fields to a macro of gpumem, which checks the structure itself and makes the promises, by paths of its own. Who
//! puts another macro there has only what that macro writes.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Attribute, Data, DataEnum, DataStruct, DeriveInput, Fields, Ident, Path, parse_quote, spanned::Spanned,
};

pub(crate) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let root = root(&input.attrs)?;
    if let Some(parameter) = input.generics.params.first() {
        let what = "a record has no parameters: write one record for each type";
        return Err(syn::Error::new(parameter.span(), what));
    }
    match &input.data {
        Data::Struct(data) => record(input, data, &root),
        Data::Enum(data) => enumeration(input, data, &root),
        Data::Union(data) => {
            Err(syn::Error::new(data.union_token.span(), "a kernel has no unions: write a structure"))
        }
    }
}

/// `#[gpumem(crate = path)]`.
fn root(attributes: &[Attribute]) -> syn::Result<Path> {
    let mut root = parse_quote!(::gpumem);
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("gpumem")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("a record's attribute knows `crate = path`"));
            }
            root = meta.value()?.call(Path::parse_mod_style)?;
            Ok(())
        })?;
    }
    Ok(root)
}

/// The words in `#[repr(..)]`.
fn representation(attributes: &[Attribute]) -> syn::Result<Vec<Ident>> {
    let mut words = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            words.extend(meta.path.get_ident().cloned());
            // `align(16)` and its like have something in parentheses.
            let _ = meta.input.step(|cursor| match cursor.group(proc_macro2::Delimiter::Parenthesis) {
                Some((_, _, rest)) => Ok(((), rest)),
                None => Ok(((), *cursor)),
            });
            Ok(())
        })?;
    }
    Ok(words)
}

fn record(input: &DeriveInput, data: &DataStruct, root: &Path) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let Fields::Named(fields) = &data.fields else {
        return Err(syn::Error::new(
            name.span(),
            "a record has fields with names: `struct Point { x: f32, y: f32 }`",
        ));
    };
    if fields.named.is_empty() {
        return Err(syn::Error::new(name.span(), "a record has at least one field"));
    }
    if representation(&input.attrs)?.iter().all(|word| word != "C") {
        let what = "a record is laid out as in C++: put `#[repr(C)]` before it";
        return Err(syn::Error::new(name.span(), what));
    }
    // The word is the better place for an error. What decides is the layout, which the expansion asks for.
    if let Some(word) =
        representation(&input.attrs)?.iter().find(|word| *word == "packed" || *word == "align")
    {
        let what = "a record has the alignment of its fields: C++ lays it out by `#[repr(C)]` alone";
        return Err(syn::Error::new(word.span(), what));
    }
    let fields = fields.named.iter().map(|field| &field.ident);
    Ok(quote!(#root::kernel::codegen::device_record! { #name { #(#fields)* } }))
}

fn enumeration(input: &DeriveInput, data: &DataEnum, root: &Path) -> syn::Result<TokenStream> {
    let name = &input.ident;
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            let what = "an enum of kernels has no fields: use a record with a number that tells which it is";
            return Err(syn::Error::new(variant.span(), what));
        }
    }
    let numbers = ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"];
    let words = representation(&input.attrs)?;
    let Some(number) = words.iter().find(|word| numbers.contains(&word.to_string().as_str())) else {
        let what = "an enum of kernels is a number: put `#[repr(u32)]` before it";
        return Err(syn::Error::new(name.span(), what));
    };
    let variants: Vec<&Ident> = data.variants.iter().map(|variant| &variant.ident).collect();
    let first = variants.first();
    Ok(quote!(#root::kernel::codegen::device_enum! { #name #number #first { #(#variants)* } }))
}
