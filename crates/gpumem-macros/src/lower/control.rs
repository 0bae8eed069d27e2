//! Statements that lead elsewhere: `if`, `match`, loops, `break`, `continue`, `return`.

use super::{Code, Loop, Lower, Order, Value, error, refuse};
use crate::{names::Key, operators::plain_operator, signature::Role};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, Label, Lifetime, Pat, spanned::Spanned, visit::Visit};

impl Lower {
    /// An expression whose value is not used.
    pub(super) fn statement(&mut self, e: &Expr) -> syn::Result<Code> {
        match e {
            Expr::If(branch) => self.if_statement(branch),
            Expr::Match(choice) => self.match_statement(choice),
            Expr::Block(block) if block.label.is_none() => {
                let Code { host, witness, tree } = self.block(&block.block);
                Ok(Code { host, witness, tree: vec![quote!(S::Block(&[#(#tree),*]))] })
            }
            Expr::While(repeated) => self.while_loop(repeated),
            Expr::Loop(endless) => self.endless(endless, None),
            Expr::ForLoop(counted) => self.for_loop(counted),
            Expr::Break(exit) => self.break_loop(exit),
            Expr::Continue(exit) => {
                let (word, label) = (exit.to_token_stream(), exit.label.as_ref());
                let jump = self.jump(e, label, quote!(S::Continue), |around| &around.next)?;
                Ok(Code { host: quote!(#word;), witness: quote!(#word;), tree: vec![jump] })
            }
            Expr::Return(exit) => match &exit.expr {
                Some(value) if self.role == Role::Function => {
                    let word = &exit.return_token;
                    let Value { host, witness, mut before, tree, .. } = self.expression(value)?;
                    before.push(quote!(S::Give(&#tree)));
                    Ok(Code { host: quote!(#word #host;), witness: quote!(#word #witness;), tree: before })
                }
                Some(value) => error(value, "a kernel returns nothing: it writes to its arrays"),
                None => Ok(Code { host: quote!(#e;), witness: quote!(#e;), tree: vec![quote!(S::Return)] }),
            },
            Expr::Assign(assign) => self.assign(assign),
            Expr::Binary(binary) => match plain_operator(&binary.op) {
                Some((text, plain)) => self.assign_with(binary, text, &plain),
                None => self.value_statement(e),
            },
            Expr::Macro(call) => self.statement_macro(&call.mac),
            Expr::Paren(inner) => self.statement(&inner.expr),
            Expr::Tuple(tuple) if tuple.elems.is_empty() => {
                Ok(Code { host: quote!(#e;), witness: quote!(#e;), tree: Vec::new() })
            }
            e => self.value_statement(e),
        }
    }

    fn value_statement(&mut self, e: &Expr) -> syn::Result<Code> {
        let Value { host, witness, mut before, tree, .. } = self.expression(e)?;
        before.push(quote!(S::Do(&#tree)));
        Ok(Code { host: quote!(#host;), witness: quote!(#witness;), tree: before })
    }

    fn if_statement(&mut self, branch: &syn::ExprIf) -> syn::Result<Code> {
        let Value { host, witness, mut before, tree, .. } = self.expression(&branch.cond)?;
        let (if_token, yes) = (&branch.if_token, self.block(&branch.then_branch));
        let no = match &branch.else_branch {
            None => Code::default(),
            Some((word, other)) => {
                let Code { host, witness, tree } = match &**other {
                    Expr::Block(block) => self.block(&block.block),
                    other => self.statement(other)?,
                };
                Code { host: quote!(#word #host), witness: quote!(#word #witness), tree }
            }
        };
        let (yes_host, yes_seen, yes_tree) = (yes.host, yes.witness, yes.tree);
        let (no_host, no_seen, no_tree) = (no.host, no.witness, no.tree);
        before.push(quote!(S::If(&#tree, &[#(#yes_tree),*], &[#(#no_tree),*])));
        Ok(Code {
            host: quote!(#if_token #host #yes_host #no_host),
            witness: quote!(#if_token #witness #yes_seen #no_seen),
            tree: before,
        })
    }

    fn match_statement(&mut self, choice: &syn::ExprMatch) -> syn::Result<Code> {
        let mut value = self.expression(&choice.expr)?;
        let mut subject = self.subject(&mut value, choice.expr.span());
        let (mut hosts, mut seen, mut arms) = (TokenStream::new(), TokenStream::new(), Vec::new());
        for arm in &choice.arms {
            self.names.enter();
            let condition = self.condition(&arm.pat, &mut subject)?;
            let (guard, condition) = self.guard(arm, condition)?;
            let body = match &*arm.body {
                Expr::Block(block) if block.label.is_none() => self.block(&block.block),
                body => {
                    let Code { host, witness, tree } = self.statement(body)?;
                    Code { host: quote!({ #host }), witness: quote!({ #witness }), tree }
                }
            };
            self.names.leave();
            let (pattern, [guard_host, guard_seen]) = (&arm.pat, guard);
            let (host, witness, tree) = (body.host, body.witness, body.tree);
            hosts.extend(quote!(#pattern #guard_host => #host));
            seen.extend(quote!(#pattern #guard_seen => #witness));
            arms.push((condition, tree));
        }
        let mut tree = value.before;
        tree.extend(chain(arms));
        let (word, host) = (&choice.match_token, value.host);
        let witness = subject.seen(&value.witness, choice.expr.span());
        let span = choice.brace_token.span.join();
        Ok(Code {
            host: quote_spanned!(span=> #word #host { #hosts }),
            witness: quote_spanned!(span=> #word #witness { #seen }),
            tree,
        })
    }

    /// The guard of an arm, for host and witness, and the condition of the pattern with it.
    #[allow(clippy::type_complexity)]
    pub(super) fn guard(
        &mut self,
        arm: &syn::Arm,
        condition: Option<TokenStream>,
    ) -> syn::Result<([TokenStream; 2], Option<TokenStream>)> {
        let Some((word, guard)) = &arm.guard else { return Ok((Default::default(), condition)) };
        let Value { host, witness, before, tree, order } = self.expression(guard)?;
        if !before.is_empty() {
            return error(guard, "a guard is one expression: compute the rest before the `match`");
        }
        if order == Order::Acts && has_cases(&arm.pat) {
            // Rust asks it again for each case that fits.
            return error(guard, "a guard beside `|` changes nothing: write an arm for each case");
        }
        let both = match condition {
            None => tree,
            Some(condition) => quote!(E::Compare("&&", &#condition, &#tree)),
        };
        Ok(([quote!(#word #host), quote!(#word #witness)], Some(both)))
    }

    /// Walks the body of a loop. Gives its forms, and the tree of the loop once `write` has made it of the body.
    pub(super) fn body(
        &mut self,
        label: Option<&Label>,
        value: Option<(String, usize)>,
        block: &syn::Block,
    ) -> Code {
        self.enter_loop(label, value);
        let mut code = self.block(block);
        self.leave_body(label, &mut code.tree);
        code
    }

    /// Begins a loop: from here on jumps may lead to it.
    fn enter_loop(&mut self, label: Option<&Label>, value: Option<(String, usize)>) {
        let (end, next) = (self.names.fresh("end"), self.names.fresh("next"));
        let label = label.map(|label| (Key::new(&label.name.ident), self.names.enter_label()));
        self.loops.push(Loop { label, end, next, value });
    }

    /// Ends what the loop repeats.
    fn leave_body(&mut self, label: Option<&Label>, tree: &mut Vec<TokenStream>) {
        let Some(around) = self.loops.last() else { return };
        if let (Some(label), Some((_, number))) = (label, &around.label) {
            self.names.leave_label(&label.name, *number);
        }
        if self.jumped.contains(&around.next) {
            // Its own block, so that no jump passes a declaration.
            let next = &around.next;
            *tree = vec![quote!(S::Block(&[#(#tree),*])), quote!(S::Label(#next))];
        }
    }

    /// Ends the loop that `body` began: puts the label after it, if a statement jumps there.
    pub(super) fn leave_loop(&mut self, tree: &mut Vec<TokenStream>) {
        if let Some(Loop { end, .. }) = self.loops.pop()
            && self.jumped.contains(&end)
        {
            tree.push(quote!(S::Label(#end)));
        }
    }

    fn while_loop(&mut self, repeated: &syn::ExprWhile) -> syn::Result<Code> {
        if let Expr::Let(condition) = &*repeated.cond {
            return refuse::expression(&Expr::Let(condition.clone()));
        }
        // A jump in the condition is one within the loop, as its statements are.
        let (label, word) = (&repeated.label, &repeated.while_token);
        self.enter_loop(label.as_ref(), None);
        let condition = match self.expression(&repeated.cond) {
            Ok(condition) => condition,
            Err(error) => {
                self.loops.pop();
                return Err(error);
            }
        };
        let Value { host, witness, before, tree, .. } = condition;
        let body = self.block(&repeated.body);
        let (body_host, body_seen, body) = (body.host, body.witness, body.tree);
        let is_plain = before.is_empty();
        let mut repeats = before;
        if !is_plain {
            repeats.push(quote!(S::If(&#tree, &[], &[S::Break])));
        }
        repeats.extend(body);
        self.leave_body(label.as_ref(), &mut repeats);
        let mut trees = vec![match is_plain {
            true => quote!(S::While(&#tree, &[#(#repeats),*])),
            false => quote!(S::Loop(&[#(#repeats),*])),
        }];
        self.leave_loop(&mut trees);
        Ok(Code {
            host: quote!(#label #word #host #body_host),
            witness: quote!(#label #word #witness #body_seen),
            tree: trees,
        })
    }

    /// `loop`, with the variable and the witness of its value if it has one.
    pub(super) fn endless(
        &mut self,
        endless: &syn::ExprLoop,
        value: Option<(String, usize)>,
    ) -> syn::Result<Code> {
        let body = self.body(endless.label.as_ref(), value, &endless.body);
        let (label, word) = (&endless.label, &endless.loop_token);
        let (host, witness, tree) = (body.host, body.witness, body.tree);
        let mut trees = vec![quote!(S::Loop(&[#(#tree),*]))];
        self.leave_loop(&mut trees);
        Ok(Code { host: quote!(#label #word #host), witness: quote!(#label #word #witness), tree: trees })
    }

    fn break_loop(&mut self, exit: &syn::ExprBreak) -> syn::Result<Code> {
        let (word, label) = (&exit.break_token, &exit.label);
        let e = Expr::Break(exit.clone());
        let jump = self.jump(&e, label.as_ref(), quote!(S::Break), |around| &around.end)?;
        let Some(value) = &exit.expr else {
            let tokens = quote!(#word #label;);
            return Ok(Code { host: tokens.clone(), witness: tokens, tree: vec![jump] });
        };
        let around = self.around(label.as_ref()).and_then(|around| around.value.clone());
        let Some((name, _)) = around else {
            return error(
                value,
                "this loop has no value: only `let x = loop { .. break value; .. };` has one",
            );
        };
        let Value { host, witness, mut before, tree, .. } = self.expression(value)?;
        before.push(quote!(S::Assign(&E::Var(#name), &#tree)));
        before.push(jump);
        Ok(Code { host: quote!(#word #label #host;), witness: quote!(#word #label #witness;), tree: before })
    }

    /// The loop that a label names, or the innermost.
    fn around(&self, label: Option<&Lifetime>) -> Option<&Loop> {
        let mut loops = self.loops.iter().rev();
        let Some(label) = label else { return loops.next() };
        let labelled = loops.filter_map(|around| around.label.as_ref().map(|(key, _)| (key, around)));
        Key::new(&label.ident).best(labelled)
    }

    /// The tree of a `break` or `continue`.
    fn jump(
        &mut self,
        e: &Expr,
        label: Option<&Lifetime>,
        plain: TokenStream,
        place: impl Fn(&Loop) -> &String,
    ) -> syn::Result<TokenStream> {
        let Some(around) = self.around(label) else {
            return match label {
                Some(label) => error(label, "there is no loop with this label around"),
                None => error(e, "there is no loop around"),
            };
        };
        if let (Some(label), Some((_, number))) = (label, &around.label) {
            self.names.jump(label, *number);
        }
        if self.loops.last().is_some_and(|last| std::ptr::eq(last, around)) {
            return Ok(plain);
        }
        let to = place(around).clone();
        let jump = quote!(S::Goto(#to));
        self.jumped.insert(to);
        Ok(jump)
    }
}

/// Whether there is a `|` in a pattern.
fn has_cases(pattern: &Pat) -> bool {
    struct Cases(bool);

    impl<'a> Visit<'a> for Cases {
        fn visit_pat_or(&mut self, _: &'a syn::PatOr) {
            self.0 = true;
        }
    }

    let mut found = Cases(false);
    found.visit_pat(pattern);
    found.0
}

/// One `if` within the other: the arms of a `match` in turn. An arm without a condition is the last one that counts.
pub(super) fn chain(arms: Vec<(Option<TokenStream>, Vec<TokenStream>)>) -> Vec<TokenStream> {
    let mut rest: Vec<TokenStream> = Vec::new();
    for (condition, body) in arms.into_iter().rev() {
        rest = match condition {
            None => body,
            Some(condition) => vec![quote!(S::If(&#condition, &[#(#body),*], &[#(#rest),*]))],
        };
    }
    rest
}
