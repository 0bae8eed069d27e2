//! Parts of elements: `a[i].x`, `a[i].place[k]`, `a[i][j]`.
//!
//! Work-items may use different fields of one record at the same time. So the host reads and writes only the part that is
//! named, as a GPU does, by its place in the element.

use super::{Code, Lower, Order, error, expressions::operand, local, order_of, witness};
use crate::names::member_name;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{BinOp, Expr, ExprIndex, Member, spanned::Spanned};

/// A part of an element of an array that work-items share, as the host reads it.
pub(super) struct Part {
    /// The array and the index.
    pub array: TokenStream,
    pub at: TokenStream,
    /// Variables that the steps use.
    pub before: TokenStream,
    /// `.x`, `[k]`.
    pub steps: TokenStream,
    /// That of the indices so far.
    pub order: Order,
}

/// A step from an element to a part of it.
enum Step<'e> {
    Field(&'e Member),
    Index(&'e Expr),
}

impl Part {
    /// Reads it.
    pub(super) fn read(&self, span: Span) -> TokenStream {
        let Self { array, at, before, steps, .. } = self;
        let [place, at_name] = ["__place", "__at"].map(|name| Ident::new(name, local(span)));
        let whole = whole(&place);
        let part =
            quote_spanned!(span=> __gpumem::Load::load_part(#array, #at_name, |#place| &mut #whole #steps));
        let block = quote_spanned!(span=> {
            let #at_name = #at;
            #before
            #part
        });
        // In parentheses, because a block at the beginning of a statement is one. Lints do not ask for these to go.
        quote_spanned!(local(span)=> (#block))
    }

    /// Goes on to a field.
    pub(super) fn field(mut self, member: &Member) -> Self {
        let steps = &self.steps;
        self.steps = quote!(#steps.#member);
        self
    }

    /// Goes on to an element of an array in it.
    pub(super) fn index(mut self, index: &TokenStream, order: Order, span: Span) -> Self {
        self.order = if order > self.order { order } else { self.order };
        let name = Ident::new(&format!("__k{}", self.before.clone().into_iter().count()), local(span));
        self.before.extend(quote_spanned!(span=> let #name: usize = #index;));
        let steps = &self.steps;
        self.steps = quote!(#steps[#name]);
        self
    }
}

/// The element behind its reference. Not by the reference alone, so that rustc's errors about its parts name its type.
fn whole(place: &Ident) -> TokenStream {
    quote_spanned!(place.span()=> (*#place))
}

/// Tells whether an expression may be a part of an element: otherwise the notes about the last one do not apply.
pub(super) fn leads_to_part(e: &Expr) -> bool {
    matches!(e, Expr::Index(_) | Expr::Field(_))
}

/// The element of `a[i].x`, and the steps to the part.
fn steps(e: &Expr) -> Option<(&ExprIndex, Vec<Step<'_>>)> {
    let (base, step) = match e {
        Expr::Field(field) => (&*field.base, Step::Field(&field.member)),
        Expr::Index(index) => (&*index.expr, Step::Index(&index.index)),
        _ => return None,
    };
    let (root, mut all) = match steps(base) {
        Some(found) => found,
        None => match (e, base) {
            (Expr::Index(root), base) if is_variable(base) => return Some((root, Vec::new())),
            _ => return None,
        },
    };
    all.push(step);
    Some((root, all))
}

/// Tells whether an expression is a name, or a field of one.
fn is_variable(e: &Expr) -> bool {
    match e {
        Expr::Path(_) => true,
        Expr::Field(field) => is_variable(&field.base),
        _ => false,
    }
}

impl Lower {
    /// `a[i].x = value;`, `a[i].x op= value;`; `None` if the place is no part of an element.
    pub(super) fn store_part(
        &mut self,
        place: &Expr,
        value: &Expr,
        with: Option<(&str, &BinOp)>,
        span: Span,
    ) -> syn::Result<Option<Code>> {
        let Some((root, steps)) = steps(place).filter(|(_, steps)| !steps.is_empty()) else {
            return Ok(None);
        };
        let right = (self.expression(value)?, value.span());
        let array = self.stored(&root.expr)?;
        let (positions, write) = self.position(&root.index)?;
        let count = 1 + positions.len();
        let mut values = vec![right];
        values.extend(positions);
        for step in &steps {
            if let Step::Index(index) = step {
                if matches!(index, Expr::Array(_)) {
                    return error(index, "an array in an element has one axis: write `a[i].place[j]`");
                }
                values.push((self.expression(index)?, index.span()));
            }
        }
        let mut before = array.before.clone();
        before.extend(self.in_order(&mut values));
        if order_of(&values) == Order::Acts
            && values.iter().skip(1).any(|(value, _)| value.order == Order::Acts)
        {
            return error(root, "compute the index before: `let i = ..;`");
        }
        let Some(((value, _), rest)) = values.split_first() else { return error(root, "nothing to store") };
        let at = write(rest.get(..count - 1).unwrap_or_default());
        let mut indices = rest.iter().skip(count - 1).map(|(value, _)| value);

        let [kept, at_name, new, element, pointer] =
            ["__value", "__at", "__new", "__element", "__place"].map(|name| Ident::new(name, local(span)));
        let (mut lets, mut path, mut looks) = (TokenStream::new(), TokenStream::new(), TokenStream::new());
        let mut seen_lets = TokenStream::new();
        let (array_tree, array_ty, trees) = (&array.tree, array.ty, &at.trees);
        let mut tree = quote!(E::Index(&#array_tree, #array_ty, &[#(#trees),*]));
        for (number, step) in steps.iter().enumerate() {
            match step {
                Step::Field(member) => {
                    let name = member_name(member);
                    path.extend(quote!(.#member));
                    tree = quote!(E::Field(&#tree, #name));
                }
                Step::Index(index) => {
                    let Some(index_value) = indices.next() else { continue };
                    let name = Ident::new(&format!("__k{number}"), local(index.span()));
                    let (host, seen, index_tree) =
                        (&index_value.host, &index_value.witness, &index_value.tree);
                    lets.extend(quote_spanned!(index.span()=> let #name: usize = #host;));
                    seen_lets.extend(quote_spanned!(index.span()=> let #name: usize = #seen;));
                    let ty = self.watch(index.span());
                    let watcher = witness(ty, index.span());
                    looks.extend(quote_spanned!(index.span()=> let _ = #watcher.of(&#element #path);));
                    path.extend(quote!([#name]));
                    tree = quote!(E::Index(&#tree, #ty, &[#index_tree]));
                }
            }
        }
        let number = self.watch(span);
        let watcher = witness(number, span);
        let (array_host, array_seen) = (&array.host, &array.witness);
        let (at_host, at_seen, host_value, seen_value) = (&at.host, &at.witness, &value.host, &value.witness);
        let whole = whole(&pointer);
        let part = quote_spanned!(span=> |#pointer| &mut #whole #path);
        let old = quote_spanned!(span=> __gpumem::Load::load_part(#array_host, #at_name, #part));
        let store = match &array.local {
            Some(base) => {
                quote_spanned!(span=> __gpumem::StoreLocal::store_local_part(&mut #base, #at_name, #part, #new))
            }
            None => quote_spanned!(span=> __gpumem::Store::store_part(#array_host, #at_name, #part, #new)),
        };
        let compute = match with {
            None => quote!(#kept),
            Some((_, op)) => quote_spanned!(op.span()=> #old #op #kept),
        };
        let host = quote_spanned!(span=> {
            let #kept = #host_value;
            let #at_name = #at_host;
            #lets
            let #new = #compute;
            #store
        };);
        let store_whole = match &array.local {
            Some(base) => {
                quote_spanned!(root.span()=> __gpumem::StoreLocal::store_local(&mut #base, #at_name, #element))
            }
            None => quote_spanned!(root.span()=> __gpumem::Store::store(#array_seen, #at_name, #element)),
        };
        let change = match with {
            None => quote_spanned!(span=> #element #path = #kept;),
            Some((_, op)) => {
                let (old, kept) = (operand(&quote!(#element #path), span), operand(&quote!(#kept), span));
                quote_spanned!(op.span()=> #element #path = #old #op #kept;)
            }
        };
        let seen = quote_spanned!(span=> {
            let #kept = #seen_value;
            let #at_name = #at_seen;
            #seen_lets
            let mut #element = __gpumem::Load::load(#array_seen, #at_name);
            #looks
            #change
            let _ = #watcher.of(&#element #path);
            #store_whole
        };);
        let value_tree = &value.tree;
        before.push(match with {
            None => quote!(S::Assign(&#tree, &#value_tree)),
            Some((text, _)) => quote!(S::AssignWith(#text, #number, &#tree, &#value_tree)),
        });
        Ok(Some(Code { host, witness: seen, tree: before }))
    }
}
