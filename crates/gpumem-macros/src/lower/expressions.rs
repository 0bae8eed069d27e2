//! Expressions: literals, names, operators, casts, tuples, arrays.

use super::{Lower, Order, Value, error, forms, order_of, own, parts::leads_to_part, refuse, sides, witness};
use crate::{
    names::{Variable, VariableKind, member_name, text_of},
    operators::plain_operator,
};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{BinOp, Expr, Lit, UnOp, spanned::Spanned};

impl Lower {
    /// An expression that has a value.
    pub(super) fn expression(&mut self, e: &Expr) -> syn::Result<Value> {
        match e {
            Expr::Lit(literal) => self.literal(literal),
            Expr::Path(path) => self.single(e, path),
            Expr::Paren(inner) => {
                let value = self.expression(&inner.expr)?;
                let (host, witness) = (&value.host, &value.witness);
                let span = inner.paren_token.span.join();
                Ok(Value {
                    host: quote_spanned!(span=> (#host)),
                    witness: quote_spanned!(span=> (#witness)),
                    ..value
                })
            }
            Expr::Binary(binary) => self.binary(binary),
            Expr::Unary(unary) => self.unary(unary),
            Expr::Cast(cast) => self.cast(cast),
            Expr::Tuple(tuple) if !tuple.elems.is_empty() => {
                self.list(e.span(), tuple.elems.iter(), |values| quote!((#(#values,)*)))
            }
            Expr::Array(array) => self.list(e.span(), array.elems.iter(), |values| quote!([#(#values),*])),
            Expr::Repeat(repeat) => self.repeat(repeat),
            Expr::Index(index) => self.load(index),
            Expr::Field(field) => self.field(field),
            Expr::If(branch) => self.if_value(branch),
            Expr::Match(choice) => self.match_value(choice),
            Expr::Block(block) if block.label.is_none() => self.block_value(block),
            Expr::Loop(endless) => self.loop_value(endless),
            Expr::Const(_) => {
                // Its type is inferred where it stands, as that of a literal.
                let host = e.to_token_stream();
                let (number, witness) = self.seen(&host, e.span());
                self.constants.push((e.clone(), Some(number)));
                let constant = self.constants.len() - 1;
                let (before, tree) = (Vec::new(), quote!(E::Constant(#constant)));
                Ok(Value { host, witness, before, tree, order: Order::Fixed })
            }
            Expr::Call(call) => self.call(call),
            Expr::MethodCall(call) => self.method(call),
            Expr::Struct(record) => self.record(record),
            e => refuse::expression(e),
        }
    }

    fn literal(&mut self, literal: &syn::ExprLit) -> syn::Result<Value> {
        let host = literal.to_token_stream();
        let digits = match &literal.lit {
            Lit::Bool(value) => {
                let text = value.value.to_string();
                return Ok(Value::plain(host, quote!(E::Text(#text)), Order::Fixed));
            }
            Lit::Int(number) => number.base10_digits(),
            Lit::Float(number) => number.base10_digits(),
            _ => return refuse::expression(&Expr::Lit(literal.clone())),
        };
        if let Some(name) = suffix(&literal.lit) {
            return Ok(Value::plain(host, quote!(E::Suffixed(#digits, #name)), Order::Fixed));
        }
        let (number, witness) = self.seen(&host, literal.span());
        let tree = quote!(E::Literal(#digits, #number));
        Ok(Value { host, witness, before: Vec::new(), tree, order: Order::Fixed })
    }

    /// A number where only one type may stand: rustc is asked once, and says once that it is another.
    pub(super) fn literal_of(&mut self, literal: &syn::ExprLit, ty: &str) -> syn::Result<Value> {
        let digits = match &literal.lit {
            Lit::Int(number) if number.suffix().is_empty() => number.base10_digits(),
            Lit::Float(number) if number.suffix().is_empty() => number.base10_digits(),
            _ => return self.literal(literal),
        };
        let name = suffix_name(ty);
        Ok(Value::plain(literal.to_token_stream(), quote!(E::Suffixed(#digits, #name)), Order::Fixed))
    }

    /// A variable of one value, or a constant. An array is no value: variables, tuples and branches would hide which one it is, and
    /// that the order of what is done with it can be seen.
    fn single(&mut self, e: &Expr, path: &syn::ExprPath) -> syn::Result<Value> {
        let mut value = self.path(path);
        match self.shared_array(e).map(|variable| variable.kind) {
            None => {}
            // Its type may be an array's, which rustc knows: no reference is a `DeviceType`.
            Some(VariableKind::Unknown) => {
                (_, value.witness) = self.seen(&value.witness, path.span());
            }
            Some(_) => {
                let name = path.to_token_stream();
                return error(
                    path,
                    format!("`{name}` is an array: a kernel uses its elements, as `{name}[i]`"),
                );
            }
        }
        Ok(value)
    }

    /// The array of memory that work-items share which an expression is, or may be: the variable that it names. No other
    /// expression is one.
    pub(super) fn shared_array(&self, e: &Expr) -> Option<&Variable> {
        use VariableKind::{ArrayParameter, Shared, Unknown};
        let Expr::Path(path) = e else { return None };
        let variable = path.path.get_ident().and_then(|name| self.names.find(name));
        variable.filter(|variable| matches!(variable.kind, ArrayParameter | Shared | Unknown))
    }

    /// A variable, or a constant.
    pub(super) fn path(&mut self, path: &syn::ExprPath) -> Value {
        let tokens = path.to_token_stream();
        let variable = path.path.get_ident().and_then(|name| self.names.find(name));
        let Some(variable) = variable else {
            let tree = self.constant(Expr::Path(path.clone()));
            return Value::plain(tokens, tree, Order::Fixed);
        };
        let order = match variable.kind {
            VariableKind::Mutable | VariableKind::Later => Order::Reads,
            _ => Order::Fixed,
        };
        let name = &variable.name;
        Value::plain(tokens, quote!(E::Var(#name)), order)
    }

    /// A constant, evaluated when the kernel is declared.
    pub(super) fn constant(&mut self, value: Expr) -> TokenStream {
        let text = text_of(value.to_token_stream());
        let is_known = |(known, seen): &(Expr, Option<usize>)| {
            // A macro may be another value in each place: `line!()`.
            seen.is_none() && !text.contains('!') && text_of(known.to_token_stream()) == text
        };
        let number = self.constants.iter().position(is_known).unwrap_or_else(|| {
            self.constants.push((value, None));
            self.constants.len() - 1
        });
        quote!(E::Constant(#number))
    }

    fn binary(&mut self, binary: &syn::ExprBinary) -> syn::Result<Value> {
        let op = &binary.op;
        let text = op.to_token_stream().to_string();
        if matches!(op, BinOp::And(_) | BinOp::Or(_)) {
            return self.logic(binary, &text);
        }
        if plain_operator(op).is_some() {
            return error(binary, "an assignment is a statement of its own");
        }
        let left = (self.expression(&binary.left)?, binary.left.span());
        let right = (self.expression(&binary.right)?, binary.right.span());
        let mut values = [left, right];
        let before = self.in_order(&mut values);
        let (order, [(a, _), (b, _)]) = (order_of(&values), &values);
        let (host_a, host_b, seen_a, seen_b, tree_a, tree_b) =
            (&a.host, &b.host, &a.witness, &b.witness, &a.tree, &b.tree);
        let host = quote!(#host_a #op #host_b);
        let compares = matches!(
            op,
            BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_)
        );
        let (seen_a, seen_b) = match op {
            BinOp::Eq(_) | BinOp::Ne(_) => {
                self.compared.push(binary.span());
                let [left, right] = sides(self.compared.len() - 1, binary.span());
                (
                    comparable(&left, seen_a, binary.left.span()),
                    comparable(&right, seen_b, binary.right.span()),
                )
            }
            _ => (operand(seen_a, binary.left.span()), operand(seen_b, binary.right.span())),
        };
        let result = quote!(#seen_a #op #seen_b);
        let (witness, tree) = if compares {
            (result, quote!(E::Compare(#text, &#tree_a, &#tree_b)))
        } else {
            let (number, witness) = self.seen(&result, binary.span());
            (witness, quote!(E::Arithmetic(#text, #number, &#tree_a, &#tree_b)))
        };
        Ok(Value { host, witness, before, tree, order })
    }

    /// `&&` and `||`, whose right side is computed only if it decides.
    fn logic(&mut self, binary: &syn::ExprBinary, text: &str) -> syn::Result<Value> {
        let op = &binary.op;
        let (left, right) = (self.expression(&binary.left)?, self.expression(&binary.right)?);
        let order = if left.order > right.order { left.order } else { right.order };
        let (host_a, host_b, seen_a, seen_b) = (&left.host, &right.host, &left.witness, &right.witness);
        let host = quote!(#host_a #op #host_b);
        let result = quote!(#seen_a #op #seen_b);
        let (mut before, tree_a, tree_b) = (left.before, &left.tree, &right.tree);
        if right.before.is_empty() {
            let tree = quote!(E::Compare(#text, &#tree_a, &#tree_b));
            return Ok(Value { host, witness: result, before, tree, order });
        }
        let (number, witness) = self.seen(&result, binary.span());
        let (name, rest) = (self.names.fresh("value"), &right.before);
        let goes_on =
            if text == "&&" { quote!(E::Var(#name)) } else { quote!(E::Not(#number, &E::Var(#name))) };
        before.push(quote!(S::Let(#name, #number, true, &[#tree_a])));
        before.push(quote!(S::If(&#goes_on, &[#(#rest,)* S::Assign(&E::Var(#name), &#tree_b)], &[])));
        Ok(Value { host, witness, before, tree: quote!(E::Var(#name)), order: Order::Fixed })
    }

    fn unary(&mut self, unary: &syn::ExprUnary) -> syn::Result<Value> {
        let op = &unary.op;
        let constructor = match op {
            UnOp::Neg(_) => quote!(Negate),
            UnOp::Not(_) => quote!(Not),
            _ => return error(unary, "kernels have no references: a name stands for a value"),
        };
        if let (UnOp::Neg(_), Expr::Lit(literal)) = (op, &*unary.expr)
            && let Lit::Int(int) = &literal.lit
        {
            // As one literal: the least number has no positive one.
            let host = unary.to_token_stream();
            let (number, witness) = self.seen(&host, unary.span());
            let digits = int.base10_digits();
            let tree = quote!(E::Negate(#number, &E::Literal(#digits, #number)));
            return Ok(Value { host, witness, before: Vec::new(), tree, order: Order::Fixed });
        }
        let value = self.expression(&unary.expr)?;
        let (host, seen, tree) = (&value.host, &value.witness, &value.tree);
        let host = quote!(#op #host);
        let seen = operand(seen, unary.expr.span());
        let (number, witness) = self.seen(&quote!(#op #seen), unary.span());
        let tree = quote!(E::#constructor(#number, &#tree));
        Ok(Value { host, witness, tree, ..value })
    }

    /// rustc gives a literal under a cast the type that it is cast to, where that is a number of its kind: `0xffff_ffff as u64` is of
    /// 64 bits. The witness hides the cast from the literal, so the literal is written with that type here. What else a cast can look
    /// into is hidden from it on the host, too.
    fn cast(&mut self, cast: &syn::ExprCast) -> syn::Result<Value> {
        let mut operand = (*cast.expr).clone();
        let is_hidden = !give_type(&mut operand, &cast.ty) && is_seen_by_cast(&operand);
        // An argument stands without them.
        while let (true, Expr::Paren(inner)) = (is_hidden, &operand) {
            operand = (*inner.expr).clone();
        }
        let value = self.expression(&operand)?;
        let (host, word, ty, tree) = (&value.host, &cast.as_token, &cast.ty, &value.tree);
        let host = match is_hidden {
            true => quote_spanned!(cast.expr.span()=> __gpumem::Language::cast_operand(#host) #word #ty),
            false => quote!(#host #word #ty),
        };
        let (from, seen) = self.seen(&value.witness, cast.expr.span());
        let (to, witness) = self.seen(&quote!(#seen #word #ty), cast.span());
        let tree = quote!(E::Cast(#from, #to, &#tree));
        Ok(Value { host, witness, tree, ..value })
    }

    /// A tuple, or an array.
    fn list<'e>(
        &mut self,
        span: Span,
        elements: impl Iterator<Item = &'e Expr>,
        write: impl Fn(&[&TokenStream]) -> TokenStream,
    ) -> syn::Result<Value> {
        let mut values = self.expressions(elements)?;
        let before = self.in_order(&mut values);
        let order = order_of(&values);
        let [host, seen, trees] = forms(&values);
        let (host, (number, witness)) = (write(&host), self.seen(&write(&seen), span));
        let tree = quote!(E::List(#number, &[#(#trees),*]));
        Ok(Value { host, witness, before, tree, order })
    }

    /// `[value; count]`.
    fn repeat(&mut self, repeat: &syn::ExprRepeat) -> syn::Result<Value> {
        let value = self.expression(&repeat.expr)?;
        let (host, seen, tree, len) = (&value.host, &value.witness, &value.tree, &repeat.len);
        let host = quote!([#host; #len]);
        let (number, witness) = self.seen(&quote!([#seen; #len]), repeat.span());
        let tree = quote!(E::Filled(#number, &#tree));
        Ok(Value { host, witness, tree, ..value })
    }

    /// A field of a tuple.
    fn field(&mut self, field: &syn::ExprField) -> syn::Result<Value> {
        let value = self.expression(&field.base)?;
        let part = self.part.take().filter(|_| leads_to_part(&field.base));
        let (host, seen, tree, member) = (&value.host, &value.witness, &value.tree, &field.member);
        let name = member_name(member);
        let (mut host, witness) = (quote!(#host.#member), quote!(#seen.#member));
        if let Some(part) = part {
            let part = part.field(member);
            host = part.read(field.span());
            self.part = Some(part);
        }
        let tree = quote!(E::Field(&#tree, #name));
        Ok(Value { host, witness, tree, ..value })
    }

    /// Lets a witness look at a variable that has just been declared.
    pub(crate) fn look_at(&mut self, name: &syn::Ident) -> (usize, TokenStream) {
        self.look_at_type(name, &quote!(&#name))
    }

    /// Lets the witness of a variable look at this reference, which has its type.
    pub(crate) fn look_at_type(
        &mut self,
        name: &syn::Ident,
        reference: &TokenStream,
    ) -> (usize, TokenStream) {
        let number = self.watch(name.span());
        let watcher = witness(number, name.span());
        (number, quote_spanned!(name.span()=> let _ = #watcher.of(#reference);))
    }
}

/// A value that stands beside an operator, in the copy for rustc: a number, so that the operator is that of the language and not
/// one of the user's.
pub(super) fn operand(seen: &TokenStream, span: Span) -> TokenStream {
    quote_spanned!(span=> (__gpumem::Language::operand(#seen)))
}

/// The same beside `==` and `!=`, where a witness sees it.
fn comparable(side: &proc_macro2::Ident, seen: &TokenStream, span: Span) -> TokenStream {
    quote_spanned!(span=> (#side.see(__gpumem::Language::comparable(#seen))))
}

/// The type in C++ that the suffix of a literal names.
fn suffix(literal: &Lit) -> Option<&'static str> {
    match literal {
        Lit::Int(number) if !number.suffix().is_empty() => Some(suffix_name(number.suffix())),
        Lit::Float(number) if !number.suffix().is_empty() => Some(suffix_name(number.suffix())),
        _ => None,
    }
    .filter(|name| !name.is_empty())
}

/// The name of a Rust type in C++; `None` if kernels do not have it.
fn suffix_name(ty: &str) -> &'static str {
    match ty {
        "f32" => "float",
        "f64" => "double",
        "u8" => "u8",
        "i8" => "i8",
        "u16" => "u16",
        "i16" => "i16",
        "u32" => "u32",
        "i32" => "i32",
        "u64" | "usize" => "u64",
        "i64" | "isize" => "i64",
        _ => "",
    }
}

/// Writes a literal, also in parentheses and behind `-` and `!`, with the type that it is cast to. Whether it is one of that kind.
fn give_type(e: &mut Expr, ty: &syn::Type) -> bool {
    match e {
        Expr::Paren(inner) => give_type(&mut inner.expr, ty),
        Expr::Group(inner) => give_type(&mut inner.expr, ty),
        Expr::Unary(unary) => give_type(&mut unary.expr, ty),
        Expr::Lit(literal) => {
            let name = ty.to_token_stream().to_string();
            let is_float = match suffix_name(&name) {
                "" => return false,
                kind => matches!(kind, "float" | "double"),
            };
            let digits = match &literal.lit {
                Lit::Int(number) if number.suffix().is_empty() && !is_float => number.to_string(),
                Lit::Float(number) if number.suffix().is_empty() && is_float => number.to_string(),
                _ => return false,
            };
            // `1.` is a float, and `1.f32` is none.
            let zero = if digits.ends_with('.') { "0" } else { "" };
            let text = format!("{digits}{zero}{name}");
            // As the macro's own: rustc and clippy do not call the cast needless.
            let span = own(literal.lit.span());
            literal.lit = match literal.lit {
                Lit::Int(_) => syn::LitInt::new(&text, span).into(),
                _ => syn::LitFloat::new(&text, span).into(),
            };
            true
        }
        _ => false,
    }
}

/// Whether rustc looks through this for a literal that a cast gives its type to.
fn is_seen_by_cast(e: &Expr) -> bool {
    match e {
        Expr::Paren(inner) => is_seen_by_cast(&inner.expr),
        Expr::Group(inner) => is_seen_by_cast(&inner.expr),
        Expr::Unary(unary) => is_seen_by_cast(&unary.expr),
        Expr::Lit(_) | Expr::If(_) | Expr::Match(_) | Expr::Block(_) | Expr::Loop(_) | Expr::Const(_) => true,
        _ => false,
    }
}
