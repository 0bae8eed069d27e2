//! The words in the brackets of `#[kernel(..)]`.

use crate::names;
use proc_macro2::Span;
use syn::{
    Ident, LitInt, LitStr, Path, Token, ext::IdentExt, parenthesized, parse::Parse, parse::ParseStream,
    parse_quote, punctuated::Punctuated,
};

/// The arguments of the attribute.
pub(crate) struct Attribute {
    /// The word `unsafe`: the author answers for races. Its place is that of the emitted `unsafe` block, so that lints see it.
    pub unsafe_word: Option<Span>,
    /// Indices, divisors and steps are not checked on a GPU.
    pub unchecked: bool,
    /// The symbol, where it is not the function's name.
    pub name: Option<LitStr>,
    /// The most work-items of a group, and the groups that a multiprocessor is to hold.
    pub launch_bounds: Option<(u32, u32)>,
    /// Options of the device's compiler.
    pub flags: Vec<LitStr>,
    /// Where `gpumem` is found.
    pub root: Path,
}

enum Word {
    Unsafe(Span),
    Unchecked(Span),
    Name(LitStr),
    Flag(LitStr),
    LaunchBounds(u32, u32),
    Root(Path),
}

impl Parse for Word {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let word = Ident::parse_any(input)?;
        let value = |input: ParseStream<'_>| input.parse::<Token![=]>().and_then(|_| input.parse::<LitStr>());
        Ok(match word.to_string().as_str() {
            "unsafe" => Self::Unsafe(word.span()),
            "unchecked" => Self::Unchecked(word.span()),
            "name" => {
                let name = value(input)?;
                if !names::is_identifier(&name.value()) {
                    let what = "a kernel's name is an identifier of C++: letters, digits and `_`, and no digit first";
                    return Err(syn::Error::new(name.span(), what));
                }
                Self::Name(name)
            }
            "flag" => Self::Flag(value(input)?),
            "launch_bounds" => {
                input.parse::<Token![=]>()?;
                let (items, groups) = launch_bounds(input)?;
                Self::LaunchBounds(items, groups)
            }
            "crate" => {
                input.parse::<Token![=]>()?;
                Self::Root(input.call(Path::parse_mod_style)?)
            }
            _ => {
                let words = "`unsafe`, `unchecked`, `name = \"..\"`, `flag = \"..\"`, `launch_bounds = (256, 4)`, `crate = path`";
                return Err(syn::Error::new(word.span(), format!("a kernel's attribute knows {words}")));
            }
        })
    }
}

/// `256`, or `(256, 4)`.
fn launch_bounds(input: ParseStream<'_>) -> syn::Result<(u32, u32)> {
    let (items, groups) = if input.peek(LitInt) {
        (input.parse::<LitInt>()?, 0)
    } else {
        let pair;
        parenthesized!(pair in input);
        let items = pair.parse::<LitInt>()?;
        pair.parse::<Token![,]>()?;
        (items, pair.parse::<LitInt>()?.base10_parse()?)
    };
    match items.base10_parse()? {
        0 => Err(syn::Error::new(items.span(), "a group has at least one work-item")),
        most => Ok((most, groups)),
    }
}

impl Parse for Attribute {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attribute = Self {
            unsafe_word: None,
            unchecked: false,
            name: None,
            launch_bounds: None,
            flags: Vec::new(),
            root: parse_quote!(::gpumem),
        };
        let mut unchecked = None;
        for word in Punctuated::<Word, Token![,]>::parse_terminated(input)? {
            match word {
                Word::Unsafe(span) => attribute.unsafe_word = Some(span),
                Word::Unchecked(span) => unchecked = Some(span),
                Word::Name(name) => attribute.name = Some(name),
                Word::Flag(flag) => attribute.flags.push(flag),
                Word::LaunchBounds(items, groups) => attribute.launch_bounds = Some((items, groups)),
                Word::Root(root) => attribute.root = root,
            }
        }
        if attribute.unsafe_word.is_none() {
            if let Some(span) = unchecked {
                let what = "`unchecked` needs `unsafe`: the author then answers for every index and divisor on a GPU";
                return Err(syn::Error::new(span, what));
            }
            if let Some(flag) = attribute.flags.first() {
                let what = "`flag` needs `unsafe`: a compiler's option can change what the kernel does";
                return Err(syn::Error::new(flag.span(), what));
            }
        }
        attribute.unchecked = unchecked.is_some();
        Ok(attribute)
    }
}
