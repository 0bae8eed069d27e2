//! `for` over ranges.

use super::{Code, Lower, Value, error, forms};
use crate::names::VariableKind;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, ExprForLoop, ExprRange, Pat, RangeLimits, spanned::Spanned};

const RANGES: &str = "a loop of a kernel goes over a range: `a..b`, `a..=b`, `(a..b).step_by(n)`, `(a..b).rev()`, `(a..b).rev().step_by(n)`";

/// The head of a `for`.
struct Head<'e> {
    range: &'e ExprRange,
    reversed: bool,
    step: Option<&'e Expr>,
}

fn head(e: &Expr) -> syn::Result<Head<'_>> {
    match e {
        Expr::Paren(inner) => head(&inner.expr),
        Expr::Group(inner) => head(&inner.expr),
        Expr::Range(range) => Ok(Head { range, reversed: false, step: None }),
        Expr::MethodCall(call) => {
            let inner = head(&call.receiver)?;
            match (call.method.to_string().as_str(), call.args.first()) {
                ("rev", None) if inner.step.is_none() => Ok(Head { reversed: !inner.reversed, ..inner }),
                ("step_by", Some(step)) if inner.step.is_none() => Ok(Head { step: Some(step), ..inner }),
                _ => error(&call.method, RANGES),
            }
        }
        e => error(e, RANGES),
    }
}

impl Lower {
    pub(super) fn for_loop(&mut self, counted: &ExprForLoop) -> syn::Result<Code> {
        let Head { range, reversed, step } = head(&counted.expr)?;
        let (Some(from), Some(to)) = (&range.start, &range.end) else { return error(range, RANGES) };
        let inclusive = matches!(range.limits, RangeLimits::Closed(_));
        let mut values = vec![(self.expression(from)?, from.span()), (self.expression(to)?, to.span())];
        if let Some(step) = step {
            values.push((self.expression(step)?, step.span()));
        }
        let mut tree = self.in_order(&mut values);
        let [hosts, seen, _] = forms(&values);
        let (host, witness) = (written(&counted.expr, &hosts), written(&counted.expr, &seen));

        self.names.enter();
        let (name, look, number) = match &*counted.pat {
            Pat::Ident(name)
                if name.mutability.is_none() && name.by_ref.is_none() && name.subpat.is_none() =>
            {
                let (number, look) = self.look_at(&name.ident);
                (self.names.declare(&name.ident, VariableKind::Fixed, number), look, number)
            }
            Pat::Wild(wild) => {
                let number = self.watch(wild.span());
                let watcher = super::witness(number, from.span());
                let witness = seen[0];
                // The range has the type of its start, which the witness looks at once more.
                let look = quote_spanned!(from.span()=> let _ = || #watcher.see(#witness););
                (self.names.fresh("turn"), look, number)
            }
            pattern => {
                return error(pattern, "the variable of a `for` is a name that does not change, or `_`");
            }
        };
        let body = self.body(counted.label.as_ref(), None, &counted.body);
        self.names.leave();

        let trees: Vec<&TokenStream> = values.iter().map(|(Value { tree, .. }, _)| tree).collect();
        let (from, to, body_tree) = (trees[0], trees[1], &body.tree);
        tree.push(match (inclusive || reversed, trees.get(2)) {
            (false, None) => quote!(S::For(#name, #number, [&#from, &#to], &[], &[#(#body_tree),*])),
            (false, Some(step)) => quote!(S::For(#name, #number, [&#from, &#to], &[#step], &[#(#body_tree),*])),
            (true, step) => {
                let step = step.map_or(quote!(E::Text("1")), |step| quote!(#step));
                quote!(S::Steps(#name, #number, [&#from, &#to], [#inclusive, #reversed], &#step, &[#(#body_tree),*]))
            }
        });
        self.leave_loop(&mut tree);
        let (label, word, pattern, in_word) =
            (&counted.label, &counted.for_token, &counted.pat, &counted.in_token);
        let (body_host, body_seen) = (&body.host, &body.witness);
        Ok(Code {
            host: quote!(#label #word #pattern #in_word #host #body_host),
            witness: quote!(#label #word #pattern #in_word #witness { #look #body_seen }),
            tree,
        })
    }
}

/// The head with other values in it.
fn written(e: &Expr, values: &[&TokenStream]) -> TokenStream {
    match e {
        Expr::Paren(inner) => {
            let inner = written(&inner.expr, values);
            quote_spanned!(e.span()=> (#inner))
        }
        Expr::Group(inner) => written(&inner.expr, values),
        Expr::Range(range) => {
            let (limits, from, to) = (&range.limits, values[0], values[1]);
            quote!(#from #limits #to)
        }
        Expr::MethodCall(call) => {
            let mut receiver = &*call.receiver;
            // An argument needs no parentheses, of which rustc would warn.
            while let Expr::Paren(inner) = receiver {
                receiver = &inner.expr;
            }
            let (receiver, method) = (written(receiver, values), &call.method);
            let step = if method == "step_by" { values.get(2) } else { None }.into_iter();
            // By a path, as the methods of numbers.
            quote_spanned!(e.span()=> __gpumem::Language::#method(#receiver #(, #step)*))
        }
        e => e.to_token_stream(),
    }
}
