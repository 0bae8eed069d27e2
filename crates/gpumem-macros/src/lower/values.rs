//! `if`, `match`, `loop` and blocks as values. C++ has only `c ? x : y`: larger ones go through a variable, which every
//! branch assigns to.

use super::{Code, Lower, Order, Value, blocks::ValueBlock, control::chain, error};
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, spanned::Spanned};

impl Lower {
    pub(super) fn if_value(&mut self, branch: &syn::ExprIf) -> syn::Result<Value> {
        let condition = self.expression(&branch.cond)?;
        let yes = self.value_block(&branch.then_branch)?;
        let Some((else_token, other)) = &branch.else_branch else {
            return error(branch, "an `if` with a value has an `else`");
        };
        let no = self.branch_value(other)?;
        let (word, host, seen) = (&branch.if_token, &condition.host, &condition.witness);
        let (yes_host, yes_seen, no_host, no_seen) = (&yes.host, &yes.witness, &no.host, &no.witness);
        let host = quote!(#word #host #yes_host #else_token #no_host);
        let result = quote_spanned!(branch.span()=> #word #seen #yes_seen #else_token #no_seen);
        let tree = &condition.tree;
        if let (Some(a), Some(b)) = (&yes.value, &no.value)
            && yes.before.is_empty()
            && no.before.is_empty()
        {
            let orders = [condition.order, a.order, b.order];
            let order =
                orders.into_iter().fold(Order::Fixed, |most, order| if order > most { order } else { most });
            let (a, b) = (&a.tree, &b.tree);
            let tree = quote!(E::Conditional(&#tree, &#a, &#b));
            // Parentheses, because an `if` at the beginning of a statement is one.
            return Ok(Value { host, witness: quote!((#result)), before: condition.before, tree, order });
        }
        let (name, mut value) = self.variable(host, result, branch.span(), condition.before);
        let (yes, no) = (yes.assigned(&name), no.assigned(&name));
        value.before.push(quote!(S::If(&#tree, &[#(#yes),*], &[#(#no),*])));
        Ok(value)
    }

    /// The code after `else`, or in an arm.
    fn branch_value(&mut self, e: &Expr) -> syn::Result<ValueBlock> {
        match e {
            Expr::Block(block) if block.label.is_none() => self.value_block(&block.block),
            Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => {
                let Code { host, witness, tree } = self.statement(e)?;
                Ok(ValueBlock {
                    host: quote!({ #host }),
                    witness: quote!({ #witness }),
                    before: tree,
                    value: None,
                })
            }
            e => {
                let mut value = self.expression(e)?;
                let before = std::mem::take(&mut value.before);
                let (host, witness) = (value.host.clone(), &value.witness);
                // In braces, because it follows an `else`.
                let witness = quote!({ #witness });
                Ok(ValueBlock { host, witness, before, value: Some(value) })
            }
        }
    }

    pub(super) fn match_value(&mut self, choice: &syn::ExprMatch) -> syn::Result<Value> {
        let mut matched = self.expression(&choice.expr)?;
        let mut subject = self.subject(&mut matched, choice.expr.span());
        let (mut hosts, mut seen, mut arms) = (TokenStream::new(), TokenStream::new(), Vec::new());
        for arm in &choice.arms {
            self.names.enter();
            let condition = self.condition(&arm.pat, &mut subject)?;
            let (guard, condition) = self.guard(arm, condition)?;
            let body = self.branch_value(&arm.body)?;
            self.names.leave();
            let (pattern, [guard_host, guard_seen]) = (&arm.pat, guard);
            let (host, witness) = (&body.host, &body.witness);
            hosts.extend(quote!(#pattern #guard_host => #host,));
            seen.extend(quote!(#pattern #guard_seen => #witness,));
            arms.push((condition, body));
        }
        let (word, host) = (&choice.match_token, &matched.host);
        let witness = subject.seen(&matched.witness, choice.expr.span());
        let span = choice.brace_token.span.join();
        let host = quote_spanned!(span=> #word #host { #hosts });
        let result = quote_spanned!(span=> #word #witness { #seen });
        // The last arm takes the remaining values: rustc has checked that every value has an arm.
        if let Some((condition, _)) = arms.last_mut() {
            *condition = None;
        }
        let (name, mut value) = self.variable(host, result, choice.span(), matched.before);
        let arms = arms.into_iter().map(|(condition, body)| (condition, body.assigned(&name))).collect();
        value.before.extend(chain(arms));
        Ok(value)
    }

    pub(super) fn block_value(&mut self, block: &syn::ExprBlock) -> syn::Result<Value> {
        let ValueBlock { host, witness, before, value } = self.value_block(&block.block)?;
        let Some(inner) = value else { return error(block, "this block never comes to its end") };
        if before.is_empty() {
            return Ok(Value { host, witness: quote!((#witness)), before, ..inner });
        }
        let (name, mut value) = self.variable(host, witness, block.span(), Vec::new());
        let tree = &inner.tree;
        value.before.push(quote!(S::Block(&[#(#before,)* S::Assign(&E::Var(#name), &#tree)])));
        Ok(value)
    }

    pub(super) fn loop_value(&mut self, endless: &syn::ExprLoop) -> syn::Result<Value> {
        let number = self.watch(endless.span());
        let name = self.names.fresh("value");
        let Code { host, witness, tree } = self.endless(endless, Some((name.clone(), number)))?;
        let watcher = super::witness(number, endless.span());
        let mut before = vec![quote!(S::Let(#name, #number, true, &[]))];
        before.extend(tree);
        let witness = quote_spanned!(endless.span()=> #watcher.see(#witness));
        Ok(Value { host, witness, before, tree: quote!(E::Var(#name)), order: Order::Fixed })
    }

    /// A value that branches assign to: its name, and its forms with the declaration.
    fn variable(
        &mut self,
        host: TokenStream,
        result: TokenStream,
        span: Span,
        mut before: Vec<TokenStream>,
    ) -> (String, Value) {
        let (number, witness) = self.seen(&result, span);
        let name = self.names.fresh("value");
        before.push(quote!(S::Let(#name, #number, true, &[])));
        let tree = quote!(E::Var(#name));
        (name, Value { host, witness, before, tree, order: Order::Fixed })
    }
}

impl ValueBlock {
    /// Its statements, the last of which assigns the value.
    fn assigned(self, name: &str) -> Vec<TokenStream> {
        let mut before = self.before;
        if let Some(value) = self.value {
            let tree = value.tree;
            before.push(quote!(S::Assign(&E::Var(#name), &#tree)));
        }
        before
    }
}
