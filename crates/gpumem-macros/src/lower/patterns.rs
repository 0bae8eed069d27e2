//! Patterns: of `let`, and of the arms of a `match`.

use super::{Code, Lower, Value, error, forms, local, witness};
use crate::names::VariableKind;
use crate::names::member_name;
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, Pat, spanned::Spanned};

const PATTERNS: &str = "kernels know the patterns `name`, `_`, `(a, b)` and `Point { x, y }`";
const REST: &str = "write `_` for each part that is not used";

impl Lower {
    /// `let pattern = value;`
    pub(super) fn bind(
        &mut self,
        pattern: &Pat,
        annotation: Option<&TokenStream>,
        value: &Expr,
    ) -> syn::Result<Code> {
        if let (Pat::Tuple(parts), Expr::Tuple(values)) = (pattern, value)
            && parts.elems.len() == values.elems.len()
        {
            return self.bind_parts(parts, annotation, values);
        }
        let mut value_forms = self.expression(value)?;
        let mut before = Vec::new();
        if matches!(pattern, Pat::Tuple(_) | Pat::Struct(_)) {
            self.move_to_variable(&mut value_forms, value.span(), &mut before);
        }
        let Value { host, witness: mut seen, before: mut earlier, tree, .. } = value_forms;
        before.append(&mut earlier);
        let head = |value: &TokenStream| quote_spanned!(pattern.span()=> let #pattern #annotation = #value;);
        let host = head(&host);
        seen = head(&seen);
        self.bound(pattern, &tree, &mut before, &mut seen)?;
        Ok(Code { host, witness: seen, tree: before })
    }

    /// `let (a, b) = (c, d);`, without a tuple in C++. All values come first: the names may shadow variables in the
    /// values.
    fn bind_parts(
        &mut self,
        pattern: &syn::PatTuple,
        annotation: Option<&TokenStream>,
        tuple: &syn::ExprTuple,
    ) -> syn::Result<Code> {
        let mut values = self.expressions(&tuple.elems)?;
        let mut before = self.in_order(&mut values);
        for (part, (value, span)) in pattern.elems.iter().zip(&mut values) {
            if matches!(part, Pat::Tuple(_) | Pat::Struct(_)) {
                self.move_to_variable(value, *span, &mut before);
            }
        }
        let [host, seen, _] = forms(&values);
        let host = quote_spanned!(pattern.span()=> let #pattern #annotation = (#(#host,)*););
        let mut seen = quote_spanned!(pattern.span()=> let #pattern #annotation = (#(#seen,)*););
        for (part, (value, _)) in pattern.elems.iter().zip(&values) {
            self.bound(part, &value.tree, &mut before, &mut seen)?;
        }
        Ok(Code { host, witness: seen, tree: before })
    }

    /// Declares the names of a pattern, whose value is `tree`.
    fn bound(
        &mut self,
        pattern: &Pat,
        tree: &TokenStream,
        before: &mut Vec<TokenStream>,
        seen: &mut TokenStream,
    ) -> syn::Result<()> {
        match pattern {
            Pat::Ident(name) => {
                let mutable = name.mutability.is_some();
                self.plain_name(name)?;
                let number = self.watch(name.ident.span());
                let kind = if mutable { VariableKind::Mutable } else { VariableKind::Fixed };
                let text = self.names.declare(&name.ident, kind, number);
                let (watcher, ident) = (witness(number, name.span()), &name.ident);
                seen.extend(quote_spanned!(name.span()=> let _ = #watcher.of(&#ident);));
                before.push(quote!(S::Let(#text, #number, #mutable, &[#tree])));
                if name.ident.to_string().starts_with('_') {
                    before.push(quote!(S::Unused(#text)));
                }
                Ok(())
            }
            Pat::Wild(_) => {
                before.push(quote!(S::Do(&#tree)));
                Ok(())
            }
            Pat::Tuple(tuple) => {
                for (index, part) in tuple.elems.iter().enumerate() {
                    if matches!(part, Pat::Wild(_)) {
                        continue;
                    }
                    let field = index.to_string();
                    self.bound(part, &quote!(E::Field(&#tree, #field)), before, seen)?;
                }
                Ok(())
            }
            Pat::Struct(record) => {
                for field in &record.fields {
                    let name = member_name(&field.member);
                    if !matches!(*field.pat, Pat::Wild(_)) {
                        self.bound(&field.pat, &quote!(E::Field(&#tree, #name)), before, seen)?;
                    }
                }
                Ok(())
            }
            Pat::Rest(rest) => error(rest, REST),
            _ => error(pattern, PATTERNS),
        }
    }

    fn plain_name(&self, name: &syn::PatIdent) -> syn::Result<()> {
        if let Some(word) = &name.by_ref {
            return error(word, "kernels have no references: a name stands for a value");
        }
        match &name.subpat {
            Some((_, pattern)) => {
                error(pattern, "kernels have no `name @ pattern`: bind the name, and test it in a guard")
            }
            None => Ok(()),
        }
    }

    /// The condition under which the subject of a `match` fits a pattern; `None` if it always does. A name in the pattern
    /// stands for the subject from then on.
    pub(super) fn condition(
        &mut self,
        pattern: &Pat,
        subject: &mut Subject,
    ) -> syn::Result<Option<TokenStream>> {
        let name = &subject.name;
        let tree = quote!(E::Var(#name));
        Ok(match pattern {
            Pat::Wild(_) => None,
            Pat::Ident(ident) if is_variable(&ident.ident) => {
                self.plain_name(ident)?;
                if let Some(word) = &ident.mutability {
                    return error(word, "a name in a `match` does not change: write `let mut` in its arm");
                }
                self.names.bind(&ident.ident, name.clone(), VariableKind::Fixed, subject.ty);
                None
            }
            Pat::Ident(ident) => {
                let ident = &ident.ident;
                Some(self.equal(&syn::parse_quote!(#ident), subject)?)
            }
            Pat::Path(path) => Some(self.equal(&Expr::Path(path.clone()), subject)?),
            Pat::Lit(literal) => Some(self.equal(&Expr::Lit(literal.clone()), subject)?),
            Pat::Paren(inner) => self.condition(&inner.pat, subject)?,
            Pat::Or(or) => {
                let mut any: Option<TokenStream> = None;
                let mut first = None;
                for case in &or.cases {
                    let before = self.names.visible();
                    if matches!(case, Pat::Ident(ident) if is_variable(&ident.ident)) {
                        return error(
                            case,
                            "a name in `|` matches everything: write `_` for all other values",
                        );
                    }
                    let condition = self.condition(case, subject)?;
                    // What a name stands for is known before it is known which case fits.
                    let places = self.names.places_since(before);
                    if first.get_or_insert_with(|| places.clone()) != &places {
                        return error(
                            case,
                            "a name in `|` stands for the same part in each case: write an arm for each",
                        );
                    }
                    let Some(condition) = condition else { return Ok(None) };
                    any = Some(match any {
                        None => condition,
                        Some(any) => quote!(E::Compare("||", &#any, &#condition)),
                    });
                }
                any
            }
            Pat::Range(range) => {
                let mut all = None;
                let until = if matches!(range.limits, syn::RangeLimits::Closed(_)) { "<=" } else { "<" };
                for (operator, bound) in [(">=", &range.start), (until, &range.end)] {
                    let Some(bound) = bound else { continue };
                    let bound = self.bound_of(bound, subject)?;
                    all = both(all, Some(quote!(E::Compare(#operator, &#tree, &#bound))));
                }
                all
            }
            Pat::Tuple(tuple) => {
                let mut all = None;
                for (index, part) in tuple.elems.iter().enumerate() {
                    let member = syn::Member::from(index);
                    all = both(all, self.condition_of_part(part, &member, subject)?);
                }
                all
            }
            Pat::Struct(record) => {
                // `Mode::B {}` of an enum has no fields to compare.
                let span = record.path.span();
                let (path, whole) = (&subject.path, subject_name(span));
                let look = quote_spanned!(local(span)=> __gpumem::Language::is_record(&#whole #path););
                subject.looks.extend(look);
                let mut all = None;
                for field in &record.fields {
                    all = both(all, self.condition_of_part(&field.pat, &field.member, subject)?);
                }
                all
            }
            Pat::Rest(rest) => return error(rest, REST),
            _ => {
                return error(
                    pattern,
                    "a `match` of a kernel knows numbers, constants, enums without fields, ranges, tuples, records, `|`, names and `_`",
                );
            }
        })
    }

    /// The condition under which a field of the subject fits a pattern.
    fn condition_of_part(
        &mut self,
        pattern: &Pat,
        member: &syn::Member,
        subject: &mut Subject,
    ) -> syn::Result<Option<TokenStream>> {
        if matches!(pattern, Pat::Wild(_)) {
            return Ok(None);
        }
        let span = pattern.span();
        let ty = self.watch(span);
        let (watcher, path, whole) = (witness(ty, span), &subject.path, subject_name(span));
        let path = quote!(#path.#member);
        subject.looks.extend(quote_spanned!(span=> let _ = #watcher.of(&#whole #path);));
        let name = format!("{}.{}", subject.name, member_name(member));
        let mut part = Subject { name, ty, path, looks: TokenStream::new() };
        let condition = self.condition(pattern, &mut part)?;
        subject.looks.extend(part.looks);
        Ok(condition)
    }

    /// The condition that the subject is this literal or constant, which device code compares.
    fn equal(&mut self, value: &Expr, subject: &mut Subject) -> syn::Result<TokenStream> {
        if let Expr::Path(_) = value {
            subject
                .looks
                .extend(quote_spanned!(value.span()=> let _ = __gpumem::Language::comparable(#value);));
        }
        let (name, value) = (&subject.name, self.bound_of(value, subject)?);
        Ok(quote!(E::Compare("==", &E::Var(#name), &#value)))
    }

    /// A literal or a constant of a pattern. A number has the type of the subject.
    fn bound_of(&mut self, value: &Expr, subject: &Subject) -> syn::Result<TokenStream> {
        let ty = subject.ty;
        match value {
            Expr::Path(_) | Expr::Const(_) => Ok(self.constant(value.clone())),
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Bool(value), .. }) => {
                let text = value.value.to_string();
                Ok(quote!(E::Text(#text)))
            }
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(int), .. }) => {
                let digits = int.base10_digits();
                Ok(quote!(E::Literal(#digits, #ty)))
            }
            Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_), expr, .. }) => {
                let inner = self.bound_of(expr, subject)?;
                Ok(quote!(E::Negate(#ty, &#inner)))
            }
            value => error(value, "a `match` of a kernel compares integers and `bool`"),
        }
    }

    /// Keeps the subject of a `match` in a variable of C++, so that it can be named several times.
    pub(super) fn subject(&mut self, value: &mut Value, span: Span) -> Subject {
        let (ty, seen) = self.seen(&value.witness, span);
        let (name, tree) = (self.names.fresh("value"), &value.tree);
        value.before.push(quote!(S::Let(#name, #ty, false, &[#tree])));
        value.witness = seen;
        Subject { name, ty, path: TokenStream::new(), looks: TokenStream::new() }
    }
}

/// Both of two conditions, where there are two.
fn both(all: Option<TokenStream>, next: Option<TokenStream>) -> Option<TokenStream> {
    match (all, next) {
        (Some(all), Some(next)) => Some(quote!(E::Compare("&&", &#all, &#next))),
        (all, next) => all.or(next),
    }
}

/// The subject in the copy for rustc.
fn subject_name(span: Span) -> proc_macro2::Ident {
    proc_macro2::Ident::new("__subject", local(span))
}

/// The subject of a `match`: a variable of C++, and its witness.
pub(super) struct Subject {
    name: String,
    ty: usize,
    /// How a part is reached from the whole subject.
    path: TokenStream,
    /// Lets the witnesses of parts see them.
    looks: TokenStream,
}

impl Subject {
    /// The subject in the copy for rustc, whose parts the witnesses have seen.
    pub(super) fn seen(&self, value: &TokenStream, span: Span) -> TokenStream {
        let (name, looks) = (subject_name(span), &self.looks);
        match looks.is_empty() {
            true => value.clone(),
            false => quote_spanned!(span=> { let #name = #value; #looks #name }),
        }
    }
}

/// Whether a name in a pattern is a variable, by the custom that constants are written in capitals.
fn is_variable(name: &syn::Ident) -> bool {
    name.to_string().chars().any(char::is_lowercase)
}
