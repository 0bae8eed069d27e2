//! Reading and writing places: variables, fields of tuples, elements of arrays.

use super::{
    Code, Lower, Order, Value, calls, error,
    expressions::operand,
    local, order_of,
    parts::{Part, leads_to_part},
    witness,
};
use crate::names::{VariableKind, member_name};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{BinOp, Expr, ExprIndex, spanned::Spanned};

/// The array of an index expression, as an argument of `Load` and `Store`.
pub(super) struct Array {
    pub host: TokenStream,
    pub witness: TokenStream,
    pub before: Vec<TokenStream>,
    pub tree: TokenStream,
    /// The number of the witness of its type.
    pub ty: usize,
    /// Its name, or that of a field, if it belongs to the work-item: writing borrows it.
    pub local: Option<TokenStream>,
    /// The element that it is a part of.
    part: Option<Part>,
    order: Order,
}

/// An index, or several in brackets.
pub(super) struct Position {
    pub host: TokenStream,
    pub witness: TokenStream,
    /// The indices.
    pub trees: Vec<TokenStream>,
}

impl Lower {
    /// `x[i]` as a value.
    pub(super) fn load(&mut self, index: &ExprIndex) -> syn::Result<Value> {
        let mut array = self.array(&index.expr)?;
        let (mut values, write) = self.position(&index.index)?;
        let order = order_of(&values);
        let acts = order == Order::Acts || values.iter().any(|(value, _)| !value.before.is_empty());
        let mut before = std::mem::take(&mut array.before);
        match &array.part {
            // The element is read after all indices.
            Some(part) if acts && part.order != Order::Fixed => {
                return error(&index.index, "compute the index before: `let i = ..;`");
            }
            // The array comes before the index.
            None if acts && array.order != Order::Fixed => self.keep(&mut array, &mut before),
            _ => {}
        }
        before.extend(self.in_order(&mut values));
        let at = write(&values);
        let (mut host, witness) =
            (element(index, &array.host, &at.host), element(index, &array.witness, &at.witness));
        self.part = match array.part {
            Some(part) => {
                let part = part.index(&at.host, order, index.span());
                host = part.read(index.span());
                Some(part)
            }
            None if self.shared_array(&index.expr).is_some() => {
                let (before, steps) = (TokenStream::new(), TokenStream::new());
                Some(Part { array: array.host.clone(), at: at.host.clone(), before, steps, order })
            }
            None => None,
        };
        let (tree, ty, trees) = (&array.tree, array.ty, &at.trees);
        let tree = quote!(E::Index(&#tree, #ty, &[#(#trees),*]));
        Ok(Value {
            host,
            witness,
            before,
            tree,
            order: if order > Order::Reads { order } else { Order::Reads },
        })
    }

    /// The indexed array.
    pub(super) fn array(&mut self, e: &Expr) -> syn::Result<Array> {
        if let Expr::Paren(inner) = e {
            return self.array(&inner.expr);
        }
        if let Expr::Path(path) = e
            && let Some(name) = path.path.get_ident()
            && let Some(variable) = self.names.find(name)
        {
            let (text, ty) = (&variable.name, variable.ty);
            let is_parameter = variable.kind == VariableKind::ArrayParameter;
            let local = self.shared_array(e).is_none().then(|| quote!(#name));
            let tokens = if is_parameter { quote!(#name) } else { quote_spanned!(name.span()=> &#name) };
            let tree = quote!(E::Var(#text));
            return Ok(Array {
                host: tokens.clone(),
                witness: tokens,
                before: Vec::new(),
                tree,
                ty,
                local,
                part: None,
                order: Order::Fixed,
            });
        }
        let mut value = self.expression(e)?;
        let part = self.part.take().filter(|_| leads_to_part(e));
        let mut before = Vec::new();
        if value.order == Order::Acts {
            // Before the index, and before all that stands beside the element.
            self.move_to_variable(&mut value, e.span(), &mut before);
        }
        let Value { host, witness: seen, before: earlier, tree, order } = value;
        before.extend(earlier);
        let ty = self.watch(e.span());
        let watcher = witness(ty, e.span());
        let host = quote_spanned!(e.span()=> &#host);
        let seen = quote_spanned!(e.span()=> #watcher.of(&#seen));
        Ok(Array { host, witness: seen, before, tree, ty, local: None, part, order })
    }

    /// The array whose element is written: a variable, or a field of one. Any other is a value. The host would write to a copy of it,
    /// and C++ to the variable that it comes from.
    pub(super) fn stored(&mut self, e: &Expr) -> syn::Result<Array> {
        if let Expr::Path(_) = e {
            return self.array(e);
        }
        let (tokens, tree, _) = self.place(e)?;
        let ty = self.watch(e.span());
        let watcher = witness(ty, e.span());
        Ok(Array {
            host: quote_spanned!(e.span()=> &#tokens),
            witness: quote_spanned!(e.span()=> #watcher.of(&#tokens)),
            before: Vec::new(),
            tree,
            ty,
            local: Some(tokens),
            part: None,
            order: Order::Reads,
        })
    }

    /// Moves an array that is a value to a variable of C++.
    fn keep(&mut self, array: &mut Array, before: &mut Vec<TokenStream>) {
        let (name, ty, tree) = (self.names.fresh("value"), array.ty, &array.tree);
        before.push(quote!(S::Let(#name, #ty, false, &[#tree])));
        array.tree = quote!(E::Var(#name));
    }

    /// The indices between the brackets: their values, and how they are put together again.
    #[allow(clippy::type_complexity)]
    pub(super) fn position(
        &mut self,
        e: &Expr,
    ) -> syn::Result<(Vec<(Value, Span)>, impl Fn(&[(Value, Span)]) -> Position + use<>)> {
        let (list, elements): (bool, Vec<&Expr>) = match e {
            Expr::Array(array) => (true, array.elems.iter().collect()),
            e => (false, vec![e]),
        };
        let (mut values, mut ty) = (Vec::new(), None);
        for element in elements {
            let mut value = match element {
                Expr::Lit(literal) => self.literal_of(literal, "usize")?,
                element => self.expression(element)?,
            };
            // It may be an array of indices, which only its witness knows.
            match element {
                _ if list => {}
                Expr::Path(path) => {
                    let name = path.path.get_ident();
                    ty = name.and_then(|name| self.names.find(name)).map(|variable| variable.ty);
                }
                element if may_be_array(element) => {
                    let (number, witness) = self.seen(&value.witness, element.span());
                    (ty, value.witness) = (Some(number), witness);
                }
                _ => {}
            }
            values.push((value, element.span()));
        }
        let span = e.span();
        let write = move |values: &[(Value, Span)]| {
            let (hosts, seen): (Vec<_>, Vec<_>) =
                values.iter().map(|(value, _)| (&value.host, &value.witness)).unzip();
            let trees = values.iter().map(|(Value { tree, .. }, _)| match ty {
                Some(ty) => quote!(E::Position(&#tree, #ty)),
                None => tree.clone(),
            });
            let trees = trees.collect();
            match list {
                true => Position {
                    host: quote_spanned!(span=> [#(#hosts),*]),
                    witness: quote_spanned!(span=> [#(#seen),*]),
                    trees,
                },
                false => Position { host: quote!(#(#hosts)*), witness: quote!(#(#seen)*), trees },
            }
        };
        Ok((values, write))
    }

    /// `place = value;`
    pub(super) fn assign(&mut self, assign: &syn::ExprAssign) -> syn::Result<Code> {
        if let Some(code) = self.store_part(&assign.left, &assign.right, None, assign.span())? {
            return Ok(code);
        }
        match &*assign.left {
            Expr::Index(index) => self.store(index, &assign.right, None, assign.span()),
            Expr::Infer(_) => {
                let Value { host, witness, mut before, tree, .. } = self.expression(&assign.right)?;
                before.push(quote!(S::Do(&#tree)));
                Ok(Code { host: quote!(let _ = #host;), witness: quote!(let _ = #witness;), tree: before })
            }
            Expr::Tuple(tuple) => error(tuple, "write one assignment for each variable"),
            place => {
                let (tokens, tree, later) = self.place(place)?;
                let Value { host, mut witness, mut before, tree: value, .. } =
                    self.expression(&assign.right)?;
                if let Some(number) = later {
                    // The first value of a variable tells its type.
                    let watcher = super::witness(number, assign.right.span());
                    witness = quote_spanned!(assign.right.span()=> #watcher.see(#witness));
                }
                before.push(quote!(S::Assign(&#tree, &#value)));
                Ok(Code {
                    host: quote!(#tokens = #host;),
                    witness: quote!(#tokens = #witness;),
                    tree: before,
                })
            }
        }
    }

    /// `place op= value;`
    pub(super) fn assign_with(
        &mut self,
        binary: &syn::ExprBinary,
        text: &str,
        plain: &BinOp,
    ) -> syn::Result<Code> {
        let with = Some((text, plain));
        if let Some(code) = self.store_part(&binary.left, &binary.right, with, binary.span())? {
            return Ok(code);
        }
        if let Expr::Index(index) = &*binary.left {
            return self.store(index, &binary.right, Some((text, plain)), binary.span());
        }
        let (tokens, tree, _) = self.place(&binary.left)?;
        let Value { host, witness: seen, mut before, tree: value, .. } = self.expression(&binary.right)?;
        let (op, number) = (&binary.op, self.watch(binary.left.span()));
        let watcher = witness(number, binary.left.span());
        before.push(quote!(S::AssignWith(#text, #number, &#tree, &#value)));
        let (place, seen) = (operand(&tokens, binary.left.span()), operand(&seen, binary.right.span()));
        let look = quote_spanned!(binary.left.span()=> let _ = #watcher.of(&#place););
        Ok(Code { host: quote!(#tokens #op #host;), witness: quote!(#tokens #op #seen; #look), tree: before })
    }

    /// A variable or a field of one: its tokens, its tree, and its witness if its first value is still to come.
    fn place(&mut self, e: &Expr) -> syn::Result<(TokenStream, TokenStream, Option<usize>)> {
        match e {
            Expr::Path(path) => {
                let Some(variable) = path.path.get_ident().and_then(|name| self.names.find(name)) else {
                    // rustc says that there is no such variable, or that it is a constant.
                    return Ok((path.to_token_stream(), quote!(E::Text("")), None));
                };
                let (text, later) = (&variable.name, variable.kind == VariableKind::Later);
                Ok((path.to_token_stream(), quote!(E::Var(#text)), later.then_some(variable.ty)))
            }
            Expr::Field(field) => {
                if let Expr::Path(path) = &*field.base
                    && path.path.get_ident().and_then(|name| self.names.find(name)).is_none()
                {
                    // Of a constant, Rust would change a copy.
                    return error(path, "a kernel assigns to fields of its own variables only");
                }
                let (tokens, tree, _) = self.place(&field.base)?;
                let (member, name) = (&field.member, member_name(&field.member));
                Ok((quote!(#tokens.#member), quote!(E::Field(&#tree, #name)), None))
            }
            Expr::Paren(inner) => self.place(&inner.expr),
            e => error(e, "a kernel cannot assign to this"),
        }
    }

    /// `x[i] = value;`, `x[i] op= value;`. As in Rust, the value is computed before the index.
    fn store(
        &mut self,
        index: &ExprIndex,
        value: &Expr,
        with: Option<(&str, &BinOp)>,
        span: Span,
    ) -> syn::Result<Code> {
        let right_span = value.span();
        let right = (self.expression(value)?, right_span);
        let array = self.stored(&index.expr)?;
        let (positions, write) = self.position(&index.index)?;
        let mut values = vec![right];
        values.extend(positions);
        let has_statements = values.iter().any(|(value, _)| !value.before.is_empty());
        let mut before = array.before;
        before.extend(self.in_order(&mut values));
        // The call borrows a local array: expressions that read it come before. What a value changes, the index sees.
        let acts = order_of(&values) == Order::Acts || has_statements;
        let reads = array.local.is_some() && order_of(&values) != Order::Fixed;
        let Some(((value, _), positions)) = values.split_first() else {
            return error(index, "nothing to store");
        };
        let at = write(positions);
        let (tree, ty, trees, value_tree) = (&array.tree, array.ty, &at.trees, &value.tree);
        let place = quote!(E::Index(&#tree, #ty, &[#(#trees),*]));
        let [kept, at_name, new_name] =
            ["__value", "__at", "__new"].map(|name| Ident::new(name, local(span)));
        let Some((text, op)) = with else {
            let forms = [(&array.host, &at.host, &value.host), (&array.witness, &at.witness, &value.witness)];
            let [host, seen] = forms.map(|(array_form, at, value)| {
                let (function, array) = storing(index, array_form, &array.local);
                match (acts, reads) {
                    (_, true) => quote_spanned!(span=> {
                        let #kept = #value;
                        let #at_name = #at;
                        #function(#array, #at_name, #kept)
                    };),
                    (true, false) => {
                        quote_spanned!(span=> { let #kept = #value; #function(#array, #at, #kept) };)
                    }
                    (false, false) => quote_spanned!(span=> #function(#array, #at, #value);),
                }
            });
            before.push(quote!(S::Assign(&#place, &#value_tree)));
            // The witness of the array has seen it where it is read only.
            let look = array.local.as_ref().map(|_| &array.witness).into_iter();
            let witness = quote_spanned!(index.span()=> #(let _ = #look;)* #seen);
            return Ok(Code { host, witness, tree: before });
        };
        let number = self.watch(span);
        let watcher = witness(number, span);
        let old = |array: &TokenStream| quote_spanned!(index.span()=> __gpumem::Load::load(#array, #at_name));
        let write_back = |array_form: &TokenStream,
                          at: &TokenStream,
                          value: &TokenStream,
                          see: Option<TokenStream>| {
            let (function, target) = storing(index, array_form, &array.local);
            let old = old(array_form);
            let new = match see {
                None => quote_spanned!(op.span()=> #old #op #kept),
                Some(see) => {
                    let (old, kept) = (operand(&old, index.span()), operand(&quote!(#kept), right_span));
                    let new = quote_spanned!(op.span()=> #old #op #kept);
                    quote_spanned!(span=> #see.see(#new))
                }
            };
            quote_spanned!(span=> { let #kept = #value; let #at_name = #at; let #new_name = #new; #function(#target, #at_name, #new_name) };)
        };
        let host = write_back(&array.host, &at.host, &value.host, None);
        let seen = write_back(&array.witness, &at.witness, &value.witness, Some(quote!(#watcher)));
        before.push(quote!(S::AssignWith(#text, #number, &#place, &#value_tree)));
        Ok(Code { host, witness: seen, tree: before })
    }
}

/// Whether an index may be an array of indices: no literal, no operation, no id.
fn may_be_array(index: &Expr) -> bool {
    match index {
        Expr::Block(_) | Expr::If(_) | Expr::Match(_) | Expr::Loop(_) | Expr::Field(_) | Expr::Index(_) => {
            true
        }
        Expr::Paren(inner) => may_be_array(&inner.expr),
        Expr::Call(call) => !calls::is_id(call),
        _ => false,
    }
}

/// The call that reads an element.
fn element(index: &ExprIndex, array: &TokenStream, at: &TokenStream) -> TokenStream {
    quote_spanned!(index.span()=> __gpumem::Load::load(#array, #at))
}

/// The function that writes an element, and the array as it takes it.
fn storing(
    index: &ExprIndex,
    array: &TokenStream,
    local: &Option<TokenStream>,
) -> (TokenStream, TokenStream) {
    let span = index.span();
    match local {
        Some(place) => (
            quote_spanned!(span=> __gpumem::StoreLocal::store_local),
            quote_spanned!(index.expr.span()=> &mut #place),
        ),
        None => (quote_spanned!(span=> __gpumem::Store::store), array.clone()),
    }
}
