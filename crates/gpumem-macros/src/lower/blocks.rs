//! Blocks and their statements.

use super::{Code, Lower, Order, Value, error, local, refuse};
use crate::{names::VariableKind, split::MARK};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Block, Expr, Local, Pat, Stmt, spanned::Spanned};

/// The forms of a block that has a value: between braces in Rust; in the tree statements and an expression. Without an
/// expression, the block never comes to its end.
pub(crate) struct ValueBlock {
    pub host: TokenStream,
    pub witness: TokenStream,
    pub before: Vec<TokenStream>,
    pub value: Option<Value>,
}

impl Lower {
    /// A block whose value is not used: `{ .. }` in Rust, a list of statements in the tree.
    pub(crate) fn block(&mut self, block: &Block) -> Code {
        self.names.enter();
        let Code { host, witness, tree } = self.statements(&block.stmts);
        self.names.leave();
        let span = block.brace_token.span.join();
        Code { host: quote_spanned!(span=> { #host }), witness: quote_spanned!(span=> { #witness }), tree }
    }

    /// The body of a function that gives a value.
    pub(crate) fn giving_block(&mut self, block: &Block) -> syn::Result<Code> {
        let ValueBlock { host, witness, before: mut tree, value } = self.value_block(block)?;
        if let Some(value) = value {
            let value = value.tree;
            tree.push(quote!(S::Give(&#value)));
        }
        Ok(Code { host, witness, tree })
    }

    pub(super) fn statements(&mut self, statements: &[Stmt]) -> Code {
        let mut all = Code::default();
        for statement in statements {
            let mut line = Vec::new();
            self.tell_line(statement.span(), &mut line);
            self.part = None;
            match self.any_statement(statement) {
                Ok(code) => {
                    all.host.extend(code.host);
                    all.witness.extend(code.witness);
                    if !code.tree.is_empty() {
                        all.tree.append(&mut line);
                        all.tree.extend(code.tree);
                    }
                }
                // The next statements are looked at all the same, so that all errors come in one run.
                Err(error) => self.errors.push(error),
            }
        }
        all
    }

    /// A block as a value.
    pub(super) fn value_block(&mut self, block: &Block) -> syn::Result<ValueBlock> {
        let (last, first) = match block.stmts.split_last() {
            Some((Stmt::Expr(last, None), first)) => (last, first),
            Some((Stmt::Expr(Expr::Return(_) | Expr::Break(_) | Expr::Continue(_), _), _)) => {
                let Code { host, witness, tree } = self.block(block);
                return Ok(ValueBlock { host, witness, before: tree, value: None });
            }
            _ => return error(block, "this block has no value: its last line is a statement"),
        };
        self.names.enter();
        let Code { host, witness, tree: mut before } = self.statements(first);
        let outcome = if matches!(last, Expr::Return(_) | Expr::Break(_) | Expr::Continue(_)) {
            let code = self.statement(last)?;
            before.extend(code.tree);
            let (last_host, last_witness) = (code.host, code.witness);
            ValueBlock {
                host: quote!({ #host #last_host }),
                witness: quote!({ #witness #last_witness }),
                before,
                value: None,
            }
        } else {
            let mut value = self.expression(last)?;
            before.append(&mut value.before);
            let span = block.brace_token.span.join();
            let (last_host, last_witness) = (&value.host, &value.witness);
            ValueBlock {
                host: quote_spanned!(span=> { #host #last_host }),
                witness: quote_spanned!(span=> { #witness #last_witness }),
                before,
                value: Some(value),
            }
        };
        self.names.leave();
        Ok(outcome)
    }

    fn any_statement(&mut self, statement: &Stmt) -> syn::Result<Code> {
        match statement {
            Stmt::Local(local) => self.local(local),
            Stmt::Expr(expression, _) => self.statement(expression),
            Stmt::Item(item) => error(item, refuse::ITEM),
            Stmt::Macro(call) => self.statement_macro(&call.mac),
        }
    }

    /// `assert!(condition, ..)`: the one macro that a kernel can see through.
    pub(super) fn statement_macro(&mut self, call: &syn::Macro) -> syn::Result<Code> {
        if call.path.is_ident(MARK) && self.is_split {
            return self.marked(call);
        }
        if !call.path.is_ident("assert") {
            return error(call, refuse::MACRO);
        }
        let mut arguments =
            call.parse_body_with(syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated)?;
        arguments.iter_mut().for_each(crate::groups::take_from_argument);
        let Some(condition) = arguments.first() else { return error(call, "`assert!` takes a condition") };
        let value = self.expression(condition)?;
        let Value { host, witness, before, tree, .. } = value;
        let mut all = before;
        all.push(quote!(S::Do(&E::Call("rust::asserted", &[#tree]))));
        let (mut rest, mut seen) = (TokenStream::new(), TokenStream::new());
        if arguments.len() == 1 {
            // As the user has written it, without what the host makes of it.
            let text = call.tokens.to_string();
            let text = format!("assertion failed: {}", text.trim_end().trim_end_matches(','));
            rest.extend(quote!("{}", #text));
        }
        for (number, argument) in arguments.iter().skip(1).enumerate() {
            let (name, value) = match argument {
                text if number == 0 => {
                    rest.extend(quote!(#text));
                    continue;
                }
                Expr::Assign(named) => {
                    let name = &named.left;
                    (quote!(#name =), &*named.right)
                }
                value => (TokenStream::new(), value),
            };
            // The host alone tells it.
            let Value { host, witness, before, order, .. } = self.expression(value)?;
            if order == Order::Acts || !before.is_empty() {
                return error(value, "compute what the message of an `assert!` tells before: `let x = ..;`");
            }
            rest.extend(quote!(, #name #host));
            seen.extend(quote_spanned!(value.span()=> let _ = #witness;));
        }
        // In a function of its own: the words of the message, which may be macros of the user's, lead to nowhere else.
        let fail = quote_spanned!(call.span()=> __gpumem::Language::fail(|| __gpumem::Language::message(__gpumem::rust::format_args!(#rest))));
        // Lints do not see this as the user's `if`.
        let span = local(call.span());
        Ok(Code {
            host: quote_spanned!(span=> if #host {} else { #fail }),
            witness: quote_spanned!(span=> if #witness {} else { #seen }),
            tree: all,
        })
    }

    /// `let`.
    fn local(&mut self, local: &Local) -> syn::Result<Code> {
        let (pattern, annotation) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(&typed.ty)),
            pattern => (pattern, None),
        };
        let Some(init) = &local.init else { return self.later(pattern, annotation.map(|ty| &**ty)) };
        if let Some((word, _)) = &init.diverge {
            return error(word, "kernels have no `let .. else`: there is nothing that a pattern could miss");
        }
        if let Some(code) = self.array_declaration(pattern, &init.expr)? {
            return Ok(code);
        }
        let annotation = annotation.map(|ty| quote!(: #ty));
        self.bind(pattern, annotation.as_ref(), &init.expr)
    }

    /// `let x;`, whose value comes later.
    fn later(&mut self, pattern: &Pat, annotation: Option<&syn::Type>) -> syn::Result<Code> {
        let Pat::Ident(name) = pattern else {
            return error(pattern, "a `let` without a value has one name");
        };
        let number = self.watch(name.ident.span());
        let tree = self.names.declare(&name.ident, VariableKind::Later, number);
        let annotation = annotation.map(|ty| quote!(: #ty));
        let tokens = quote_spanned!(name.span()=> let #name #annotation;);
        Ok(Code {
            host: tokens.clone(),
            witness: tokens,
            tree: vec![quote!(S::Let(#tree, #number, true, &[]))],
        })
    }
}
