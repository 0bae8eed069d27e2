//! What a `macro_rules` passes as one expression or one type stays one.
//!
//! Such a fragment comes in invisible brackets, and no printed token says where it ends: `$e * 2` of `1 + 2` would be
//! `1 + 2 * 2`. So it gets parentheses, or none where it needs none.

use proc_macro2::Span;
use syn::{
    Expr, ExprParen, ItemFn, Type,
    spanned::Spanned,
    token,
    visit_mut::{self, VisitMut},
};

/// The expression without invisible brackets around it.
fn visible(e: Expr) -> Expr {
    let Expr::Group(group) = e else { return e };
    let inner = visible(*group.expr);
    match inner {
        Expr::Array(_)
        | Expr::Block(_)
        | Expr::Call(_)
        | Expr::Field(_)
        | Expr::Index(_)
        | Expr::Lit(_)
        | Expr::MethodCall(_)
        | Expr::Paren(_)
        | Expr::Path(_)
        | Expr::Tuple(_) => inner,
        inner => {
            // A place of the macro's: lints do not ask for the parentheses to go.
            let span = Span::mixed_site().located_at(inner.span());
            Expr::Paren(ExprParen {
                attrs: Vec::new(),
                paren_token: token::Paren(span),
                expr: Box::new(inner),
            })
        }
    }
}

/// Whether this is a name or a part of what one names, between whatever brackets.
fn is_place(e: &Expr) -> bool {
    match e {
        Expr::Paren(inner) => is_place(&inner.expr),
        Expr::Group(inner) => is_place(&inner.expr),
        Expr::Field(field) => is_place(&field.base),
        Expr::Index(index) => is_place(&index.expr),
        Expr::Path(_) => true,
        _ => false,
    }
}

struct Take;

impl VisitMut for Take {
    fn visit_expr_mut(&mut self, e: &mut Expr) {
        if matches!(e, Expr::Group(_)) {
            let group = std::mem::replace(e, Expr::Verbatim(Default::default()));
            *e = visible(group);
        }
        while let Expr::Paren(place) = e
            && is_place(&place.expr)
        {
            *e = std::mem::replace(&mut *place.expr, Expr::Verbatim(Default::default()));
        }
        visit_mut::visit_expr_mut(self, e);
    }

    fn visit_type_mut(&mut self, ty: &mut Type) {
        while let Type::Group(group) = ty {
            *ty = std::mem::replace(&mut *group.elem, Type::Verbatim(Default::default()));
        }
        visit_mut::visit_type_mut(self, ty);
    }
}

/// Takes invisible brackets from all expressions and types of a function, and all brackets from places: `(a)[i]` is `a[i]`.
pub(crate) fn take_from(function: &mut ItemFn) {
    visit_mut::visit_item_fn_mut(&mut Take, function);
}

/// The same for an expression within a macro's arguments, which the function has as tokens.
pub(crate) fn take_from_argument(e: &mut Expr) {
    Take.visit_expr_mut(e);
}
