//! The words of kernels: ids, the index of one's own element, barriers, operations of waves, shared and local arrays.

use super::{Code, Lower, Order, Value, error, forms, in_brackets, item, order_of, own};
use crate::{names::VariableKind, signature::Role, split, wave::WAVE};
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Expr, ExprCall, ExprPath, GenericArgument, Pat, PathArguments, PathSegment, Type, spanned::Spanned,
};

/// Ids that every body knows.
pub(super) const IDS: [&str; 8] = [
    "local_id",
    "global_id",
    "group_id",
    "group_size",
    "groups",
    "global_size",
    "local_linear",
    "group_linear",
];
/// Ids of bodies whose groups have waves.
pub(super) const WAVE_IDS: [&str; 4] = ["wave_size", "wave_id", "lane", "wave_items"];
const SHARED: &str =
    "a shared array is declared as `let tile = shared::<f32>([16, 16]);`, with constant extents";
const LOCAL: &str =
    "a local array is declared as `let mut window = local::<f32>([3, 3]);`, with constant extents";
const DYNAMIC: &str = "the dynamic shared memory is declared as `let all = dynamic_shared::<f32>();`";
const SCOPES: &str = "the scope of a barrier is `Local`, `Global` or `Both`";

impl Lower {
    /// A call: of a word, or of a function of a number's type.
    pub(super) fn call(&mut self, call: &ExprCall) -> syn::Result<Value> {
        let Expr::Path(path) = &*call.func else {
            return error(&call.func, "a kernel calls functions by their names");
        };
        let Some(name) = path.path.get_ident() else {
            if let Some((segment, usage)) = array_word(path) {
                return error(segment, usage);
            }
            return match super::methods::is_of_type(path) {
                true => self.function_of_type(call, path),
                false => self.function(call, path),
            };
        };
        if self.names.find(name).is_some() {
            return error(name, format!("`{name}` is a value: a kernel calls functions by their names"));
        }
        let (word, span) = (name.to_string(), call.span());
        let arguments = &call.args;
        if self.of_wave && split::is_own(&word) {
            return error(
                call,
                "the function of a `wave_reduce` is one for all work-items: it has no ids of its own",
            );
        }
        if IDS.contains(&word.as_str()) || WAVE_IDS.contains(&word.as_str()) {
            if self.role == Role::Function || WAVE_IDS.contains(&word.as_str()) {
                self.meet(name)?;
            }
            return self.id(name, call);
        }
        if let Some((_, with_lane)) = WAVE.iter().find(|(known, _)| *known == word) {
            return self.wave(name, call, *with_lane);
        }
        if word == "wave_reduce" {
            return self.wave_reduce(name, call);
        }
        let item = item(name.span());
        match word.as_str() {
            "own" => {
                if self.role == Role::Function {
                    self.meet(name)?;
                }
                let (arguments, item) = (in_brackets(call, quote!(#arguments)), self.ids(name));
                let tokens = quote_spanned!(span=> #item.#name #arguments);
                let (ty, witness) = self.seen(&tokens, span);
                let (before, tree) = (Vec::new(), quote!(E::Own(#ty)));
                Ok(Value { host: tokens, witness, before, tree, order: Order::Fixed })
            }
            "barrier" => {
                let number = self.meeting(name)?;
                let (Some(scope @ Expr::Path(path)), 1) = (arguments.first(), arguments.len()) else {
                    return error(call, SCOPES);
                };
                if let Some(name) = path.path.get_ident().filter(|name| self.names.find(name).is_some()) {
                    return error(name, SCOPES);
                }
                let tree = self.constant(scope.clone());
                Ok(Value {
                    host: quote_spanned!(span=> #item.numbered(#number).#name(#scope).await),
                    witness: quote_spanned!(span=> __gpumem::Language::finished(#item.numbered(#number).#name(#scope))),
                    before: Vec::new(),
                    tree: quote!(E::Call("barrier", &[#tree])),
                    order: Order::Acts,
                })
            }
            "wavebarrier" => {
                let number = self.meeting(name)?;
                Ok(Value {
                    host: quote_spanned!(span=> #item.numbered(#number).#name(#arguments).await),
                    witness: quote_spanned!(span=> __gpumem::Language::finished(#item.numbered(#number).#name(#arguments))),
                    before: Vec::new(),
                    tree: quote!(E::Call("wavebarrier", &[])),
                    order: Order::Acts,
                })
            }
            "memory_fence" => {
                self.meet(name)?;
                let tokens = quote_spanned!(span=> #item.#name(#arguments));
                Ok(Value::plain(tokens, quote!(E::Call("memory_fence", &[])), Order::Acts))
            }
            _ => match array_word(path) {
                Some((_, usage)) => error(name, usage),
                None => self.function(call, path),
            },
        }
    }

    /// The receiver of an id, of a type that has the method itself: one of a trait for the work-item would come first.
    fn ids(&self, name: &syn::Ident) -> TokenStream {
        let item = item(name.span());
        match name == "own" && self.is_split || WAVE_IDS.iter().any(|word| name == word) {
            true => item.to_token_stream(),
            false => quote_spanned!(own(name.span())=> __gpumem::Language::ids(&#item)),
        }
    }

    fn id(&mut self, name: &syn::Ident, call: &ExprCall) -> syn::Result<Value> {
        let mut values = self.expressions(&call.args)?;
        let before = self.in_order(&mut values);
        let (order, item, text) = (order_of(&values), self.ids(name), name.to_string());
        let [hosts, seen, trees] = forms(&values);
        let (hosts, seen) = (in_brackets(call, quote!(#(#hosts),*)), in_brackets(call, quote!(#(#seen),*)));
        Ok(Value {
            host: quote_spanned!(call.span()=> #item.#name #hosts),
            witness: quote_spanned!(call.span()=> #item.#name #seen),
            tree: quote!(E::Id(#text, &[#(#trees),*])),
            before,
            order,
        })
    }

    /// An operation of a wave, for which its work-items wait.
    fn wave(&mut self, name: &syn::Ident, call: &ExprCall, with_lane: bool) -> syn::Result<Value> {
        let number = self.meeting(name)?;
        let mut values = self.expressions(&call.args)?;
        let before = self.in_order(&mut values);
        let (item, text) = (item(name.span()), name.to_string());
        let [hosts, seen, trees] = forms(&values);
        let host = quote_spanned!(call.span()=> #item.numbered(#number).#name(#(#hosts),*).await);
        let witness = quote_spanned!(call.span()=> __gpumem::Language::finished(#item.numbered(#number).#name(#(#seen),*)));
        let mut trees: Vec<TokenStream> = trees.into_iter().cloned().collect();
        if let (true, Some(lane)) = (with_lane, trees.get_mut(1)) {
            *lane = quote!(E::Call("rust::lane", &[#lane]));
        }
        Ok(Value { host, witness, before, tree: quote!(E::Call(#text, &[#(#trees),*])), order: Order::Acts })
    }

    /// Notes that work-items wait here. Gives the number of the place: all that one `macro_rules` writes stand at one place of the
    /// source.
    fn meeting(&mut self, name: &syn::Ident) -> syn::Result<u32> {
        self.meet(name)?;
        self.waits += 1;
        Ok(number_of(self.waits))
    }

    /// `wave_reduce(value, |a, b| ..)`.
    fn wave_reduce(&mut self, name: &syn::Ident, call: &ExprCall) -> syn::Result<Value> {
        let number = self.meeting(name)?;
        let (Some(value), Some(operation), 2) = (call.args.first(), call.args.get(1), call.args.len()) else {
            return error(call, "`wave_reduce` takes a value and a function, as `|a, b| a * b`");
        };
        let Value { host, witness, before, tree, .. } = self.expression(value)?;
        self.of_wave = true;
        self.reduces.get_or_insert(name.span());
        let operation = self.operation(operation, 2);
        self.of_wave = false;
        let operation = operation?;
        let (item, by_host, by_seen, by) =
            (item(name.span()), &operation.host, &operation.witness, &operation.tree);
        Ok(Value {
            host: quote_spanned!(call.span()=> #item.numbered(#number).#name(#host, #by_host).await),
            witness: quote_spanned!(call.span()=> __gpumem::Language::finished(#item.numbered(#number).#name(#witness, #by_seen))),
            before,
            tree: quote!(E::Call("wave_reduce", &[#tree, #by])),
            order: Order::Acts,
        })
    }

    /// `let name = shared::<T>([..]);` and its like; `None` if it is another declaration.
    pub(super) fn array_declaration(&mut self, pattern: &Pat, value: &Expr) -> syn::Result<Option<Code>> {
        let Expr::Call(call) = value else { return Ok(None) };
        let Expr::Path(path) = &*call.func else { return Ok(None) };
        let Some((segment, usage)) = array_word(path) else { return Ok(None) };
        let word = segment.ident.to_string();
        let Pat::Ident(name) = pattern else { return error(pattern, usage) };
        let Some(element) = element_type(segment) else { return error(call, usage) };
        let extents: Vec<Expr> = match call.args.first() {
            Some(Expr::Array(extents)) if word != "dynamic_shared" => extents.elems.iter().cloned().collect(),
            None if word == "dynamic_shared" => Vec::new(),
            _ => return error(call, usage),
        };
        if extents.is_empty() && word == "shared" {
            return error(name, "a shared array has one axis or more");
        }
        for extent in &extents {
            self.constant_extent(extent)?;
        }
        let (ident, span, item) = (&name.ident, call.span(), item(segment.ident.span()));
        if word == "local" {
            return self.local_array(name, element, &extents, span).map(Some);
        }
        if let Some(word) = &name.mutability {
            return error(word, "a shared array is written to without `mut`: it belongs to the group");
        }
        self.meet(&segment.ident)?;
        self.shares.get_or_insert(span);
        let count = extents.len();
        let (number, look) = self.look_at(ident);
        let text = self.names.declare(ident, VariableKind::Shared, number);
        if word == "dynamic_shared" {
            let tokens = quote_spanned!(span=> let #ident = #item.dynamic_shared::<#element>(););
            let tree = vec![quote!(S::DynamicShared(#text, #number))];
            return Ok(Some(Code { host: tokens.clone(), witness: quote!(#tokens #look), tree }));
        }
        // Known by its number: all arrays that one `macro_rules` declares stand at one place of the source.
        let this = number_of(self.shared.len());
        let tokens = quote_spanned!(span=> let #ident = #item.shared_at::<#element, #count>(#this, [#(const { #extents }),*]););
        let constants: Vec<TokenStream> = extents.iter().map(|extent| self.extent(extent)).collect();
        let tree = vec![quote!(S::Shared(#text, #number, &[#(#constants),*]))];
        self.shared.push((element.clone(), extents));
        Ok(Some(Code { host: tokens.clone(), witness: quote!(#tokens #look), tree }))
    }

    /// `let mut name = local::<T>([..]);`
    fn local_array(
        &mut self,
        name: &syn::PatIdent,
        element: &Type,
        extents: &[Expr],
        span: Span,
    ) -> syn::Result<Code> {
        if extents.is_empty() || extents.len() > 6 {
            return error(name, "a local array has one to six axes");
        }
        let mut zeros = quote_spanned!(span=> __gpumem::Language::zero::<#element>());
        for extent in extents.iter().rev() {
            zeros = quote_spanned!(span=> [#zeros; #extent]);
        }
        let rank = extents.len();
        let tokens = quote_spanned!(span=> let #name = __gpumem::Language::local_array::<#rank, _>(#zeros););
        let (number, look) = self.look_at(&name.ident);
        let kind = if name.mutability.is_some() { VariableKind::Mutable } else { VariableKind::Fixed };
        let text = self.names.declare(&name.ident, kind, number);
        Ok(Code {
            host: tokens.clone(),
            witness: quote!(#tokens #look),
            tree: vec![quote!(S::Zeros(#text, #number))],
        })
    }

    /// An extent as a constant of the type `usize`.
    fn extent(&mut self, extent: &Expr) -> TokenStream {
        self.constant(
            syn::parse_quote_spanned!(extent.span()=> __gpumem::Language::extent(const { #extent })),
        )
    }

    /// Refuses extents that only a launch knows.
    fn constant_extent(&self, extent: &Expr) -> syn::Result<()> {
        match self.variable_in(extent.to_token_stream()) {
            Some(name) => error(
                &name,
                format!(
                    "`{name}` is known at the launch, and the extents of an array are constants: use `dynamic_shared::<T>()`"
                ),
            ),
            None => Ok(()),
        }
    }

    fn variable_in(&self, tokens: TokenStream) -> Option<proc_macro2::Ident> {
        tokens.into_iter().find_map(|token| match token {
            TokenTree::Ident(name) if self.names.find(&name).is_some() => Some(name),
            TokenTree::Group(group) => self.variable_in(group.stream()),
            _ => None,
        })
    }
}

/// Whether this is an id, or the index of one's own element.
pub(super) fn is_id(call: &ExprCall) -> bool {
    let Expr::Path(path) = &*call.func else { return false };
    let word = path.path.get_ident().map(ToString::to_string).unwrap_or_default();
    word == "own" || IDS.contains(&word.as_str()) || WAVE_IDS.contains(&word.as_str())
}

/// A number of the expansion, as the host takes it.
fn number_of(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The word that declares an array, and how it is used.
fn array_word(path: &ExprPath) -> Option<(&PathSegment, &'static str)> {
    let (Some(segment), 1) = (path.path.segments.first(), path.path.segments.len()) else { return None };
    let usage = match segment.ident.to_string().as_str() {
        "shared" => SHARED,
        "local" => LOCAL,
        "dynamic_shared" => DYNAMIC,
        _ => return None,
    };
    Some((segment, usage))
}

/// `T` of `shared::<T>`.
fn element_type(segment: &syn::PathSegment) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    match (arguments.args.first(), arguments.args.len()) {
        (Some(GenericArgument::Type(ty)), 1) => Some(ty),
        _ => None,
    }
}
