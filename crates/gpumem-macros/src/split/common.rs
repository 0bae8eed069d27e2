//! Properties of expressions: which have one value for all work-items of a group, and which are cheap enough to be
//! computed again after a barrier.

use super::{Binding, Plan};
use crate::{operators::plain_operator, wave::WAVE};
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::HashSet;
use syn::{
    Expr, ExprCall, Ident, Lit, Stmt, Token,
    punctuated::Punctuated,
    visit::{self, Visit},
};

/// Functions whose value is the same for all work-items of a group, if the arguments are.
const COMMON: [&str; 6] = ["group_id", "group_size", "groups", "global_size", "group_linear", "wave_size"];
/// Words with a value for each work-item, which does not change.
const OWN: [&str; 6] = ["local_id", "global_id", "local_linear", "wave_id", "lane", "wave_items"];

/// Whether a word has a value for each work-item.
pub(crate) fn is_own(word: &str) -> bool {
    word == "own" || OWN.contains(&word)
}

/// The name of the function that a call names without a path.
fn word(call: &ExprCall) -> Option<&Ident> {
    match &*call.func {
        Expr::Path(path) => {
            path.path.segments.first().filter(|_| path.path.segments.len() == 1).map(|s| &s.ident)
        }
        _ => None,
    }
}

/// Whether work-items wait where a word stands.
fn waits(word: &str) -> bool {
    ["barrier", "wavebarrier", "wave_reduce"].contains(&word) || WAVE.iter().any(|(known, _)| *known == word)
}

/// Whether an expression is a barrier, of the group or of waves.
pub(super) fn is_barrier(e: &Expr) -> bool {
    matches!(e, Expr::Call(call) if word(call).is_some_and(|word| word == "barrier" || word == "wavebarrier"))
}

/// An operation of a wave: its name, its arguments, and whether the second one is a lane.
pub(super) fn wave_operation(e: &Expr) -> Option<(&Ident, Vec<&Expr>, bool)> {
    let Expr::Call(call) = e else { return None };
    let name = word(call)?;
    let arguments: Vec<&Expr> = call.args.iter().collect();
    if name == "wave_reduce" && arguments.len() == 2 {
        return Some((name, arguments, false));
    }
    let (_, with_lane) = WAVE.iter().find(|(known, _)| name == known)?;
    (arguments.len() == 1 + usize::from(*with_lane)).then_some((name, arguments, *with_lane))
}

/// Whether `let` declares an array that work-items share.
pub(super) fn is_shared_array(e: &Expr) -> bool {
    matches!(e, Expr::Call(call) if word(call).is_some_and(|word| word == "shared" || word == "dynamic_shared"))
}

/// The findings about a part of a body.
#[derive(Default)]
pub(super) struct Found {
    /// Work-items wait for each other in it.
    pub meets: bool,
    /// It leaves the kernel.
    pub returns: bool,
    /// It leaves a loop that is around it.
    pub exits: bool,
    /// The variables that it assigns to, and those that others of the same name may hide.
    pub assigned: HashSet<String>,
    /// The labels of the loops around the current statement, inside the part.
    labels: Vec<Option<String>>,
}

impl Found {
    pub(super) fn in_statement(statement: &Stmt) -> Self {
        let mut found = Self::default();
        found.visit_stmt(statement);
        found
    }

    pub(super) fn in_expression(e: &Expr) -> Self {
        let mut found = Self::default();
        found.visit_expr(e);
        found
    }

    fn exit(&mut self, label: Option<&syn::Lifetime>) {
        self.exits |= match label {
            None => self.labels.is_empty(),
            Some(label) => !self.labels.contains(&Some(label.ident.to_string())),
        };
    }

    fn within(&mut self, label: Option<&syn::Label>, visit: impl FnOnce(&mut Self)) {
        self.labels.push(label.map(|label| label.name.ident.to_string()));
        visit(self);
        self.labels.pop();
    }
}

/// The variable that a place belongs to.
fn root(place: &Expr) -> Option<&Ident> {
    match place {
        Expr::Path(path) => path.path.get_ident(),
        Expr::Field(field) => root(&field.base),
        Expr::Index(index) => root(&index.expr),
        Expr::Paren(inner) => root(&inner.expr),
        Expr::Group(inner) => root(&inner.expr),
        _ => None,
    }
}

/// The place that an expression assigns to, the value, and whether it has an operator.
pub(super) fn assignment(e: &Expr) -> Option<(&Expr, &Expr, bool)> {
    match e {
        Expr::Assign(assign) => Some((&assign.left, &assign.right, false)),
        Expr::Binary(binary) => plain_operator(&binary.op).map(|_| (&*binary.left, &*binary.right, true)),
        _ => None,
    }
}

impl<'a> Visit<'a> for Found {
    fn visit_macro(&mut self, call: &'a syn::Macro) {
        // `assert!`, whose arguments are expressions as others: they return, assign and wait.
        let arguments = call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
        let Ok(arguments) = arguments else {
            // No kernel has it. What it does is not known.
            (self.meets, self.returns, self.exits) = (true, true, true);
            return;
        };
        for (number, argument) in arguments.into_iter().enumerate() {
            let mut inner = Self { labels: std::mem::take(&mut self.labels), ..Self::default() };
            match &argument {
                // The name is one of the message.
                Expr::Assign(named) if number > 0 => inner.visit_expr(&named.right),
                argument => inner.visit_expr(argument),
            }
            self.labels = inner.labels;
            self.meets |= inner.meets;
            self.returns |= inner.returns;
            self.exits |= inner.exits;
            self.assigned.extend(inner.assigned);
        }
    }

    fn visit_expr(&mut self, e: &'a Expr) {
        match e {
            Expr::Call(call) => self.meets |= word(call).is_some_and(|word| waits(&word.to_string())),
            Expr::Return(_) => self.returns = true,
            Expr::Break(exit) => self.exit(exit.label.as_ref()),
            Expr::Continue(exit) => self.exit(exit.label.as_ref()),
            _ => {}
        }
        if let Some((place, ..)) = assignment(e)
            && let Some(name) = root(place)
        {
            self.assigned.insert(name.to_string());
        }
        match e {
            Expr::While(repeated) => {
                // A `break` in the condition leaves the loop itself.
                self.within(repeated.label.as_ref(), |found| visit::visit_expr_while(found, repeated));
            }
            Expr::Loop(endless) => {
                self.within(endless.label.as_ref(), |found| visit::visit_expr_loop(found, endless));
            }
            Expr::ForLoop(counted) => {
                self.visit_expr(&counted.expr);
                self.within(counted.label.as_ref(), |found| found.visit_block(&counted.body));
            }
            e => visit::visit_expr(self, e),
        }
    }
}

/// Whether an expression says its type. Otherwise each phase that computes it again could infer another.
pub(super) fn has_type(e: &Expr) -> bool {
    use syn::BinOp::{Add, BitAnd, BitOr, BitXor, Div, Mul, Rem, Shl, Shr, Sub};
    match e {
        Expr::Lit(syn::ExprLit { lit: Lit::Int(number), .. }) => !number.suffix().is_empty(),
        Expr::Lit(syn::ExprLit { lit: Lit::Float(number), .. }) => !number.suffix().is_empty(),
        Expr::Paren(inner) => has_type(&inner.expr),
        Expr::Binary(binary) => match binary.op {
            Shl(_) | Shr(_) => has_type(&binary.left),
            Add(_) | Sub(_) | Mul(_) | Div(_) | Rem(_) | BitAnd(_) | BitOr(_) | BitXor(_) => {
                has_type(&binary.left) || has_type(&binary.right)
            }
            _ => true,
        },
        _ => true,
    }
}

/// All names in a part of a body, also those of fields and functions, and the words of texts: the message of an `assert!` has names
/// between braces.
pub(super) fn names(tokens: &impl ToTokens, found: &mut HashSet<String>) {
    fn walk(tokens: TokenStream, found: &mut HashSet<String>) {
        for tree in tokens {
            match tree {
                TokenTree::Ident(name) => {
                    found.insert(name.to_string());
                }
                TokenTree::Group(group) => walk(group.stream(), found),
                TokenTree::Literal(text) => {
                    let text = text.to_string();
                    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
                    found.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
                }
                TokenTree::Punct(_) => {}
            }
        }
    }
    walk(tokens.to_token_stream(), found);
}

impl Plan {
    /// Whether all work-items of the group have the value in common.
    pub(super) fn is_common(&self, e: &Expr) -> bool {
        match e {
            Expr::Lit(_) | Expr::Const(_) => true,
            Expr::Path(path) => match path.path.get_ident().and_then(|name| self.find(name)) {
                Some(binding) => self.is_common_binding(binding),
                None => true,
            },
            Expr::Paren(inner) => self.is_common(&inner.expr),
            Expr::Group(inner) => self.is_common(&inner.expr),
            Expr::Unary(unary) => self.is_common(&unary.expr),
            Expr::Cast(cast) => self.is_common(&cast.expr),
            Expr::Binary(binary) => {
                assignment(e).is_none() && self.is_common(&binary.left) && self.is_common(&binary.right)
            }
            Expr::Call(call) => {
                word(call).is_some_and(|word| COMMON.iter().any(|known| word == known))
                    && call.args.iter().all(|argument| self.is_common(argument))
            }
            Expr::MethodCall(call) => {
                let method = call.method.to_string();
                (["len", "extent", "is_empty"].contains(&method.as_str())
                    || crate::number_methods::is_method_of_numbers(&method))
                    && self.is_common(&call.receiver)
                    && call.args.iter().all(|argument| self.is_common(argument))
            }
            _ => false,
        }
    }

    /// Whether an expression gives the same again, at little cost. Its variables are added to `uses`.
    pub(super) fn is_cheap(&self, e: &Expr, uses: &mut Vec<(String, usize)>) -> bool {
        match e {
            Expr::Lit(_) => true,
            Expr::Path(path) => match path.path.get_ident().and_then(|name| Some((name, self.find(name)?))) {
                Some((name, binding)) => {
                    uses.push((name.to_string(), binding));
                    let Some(Binding { mutable, cheap, .. }) = self.bindings.get(binding) else {
                        return false;
                    };
                    !mutable && (self.is_common_binding(binding) || cheap.is_some())
                }
                None => true,
            },
            Expr::Paren(inner) => self.is_cheap(&inner.expr, uses),
            Expr::Cast(cast) => self.is_cheap(&cast.expr, uses),
            Expr::Binary(binary) => {
                let slow = matches!(binary.op, syn::BinOp::Div(_) | syn::BinOp::Rem(_));
                !slow
                    && assignment(e).is_none()
                    && self.is_cheap(&binary.left, uses)
                    && self.is_cheap(&binary.right, uses)
            }
            Expr::Call(call) => {
                word(call).is_some_and(|word| COMMON.iter().chain(&OWN).any(|known| word == known))
                    && call.args.iter().all(|argument| self.is_cheap(argument, uses))
            }
            Expr::MethodCall(call) => {
                (call.method == "len" || call.method == "extent")
                    && self.is_cheap(&call.receiver, uses)
                    && call.args.iter().all(|argument| self.is_cheap(argument, uses))
            }
            _ => false,
        }
    }
}

/// Whether an expression may end the launch: by an index, a division, a number that is too large. Values without are ids, sizes, and
/// what is made of bits.
pub(super) fn may_fault(e: &Expr) -> bool {
    use syn::BinOp as Op;
    match e {
        Expr::Lit(_) | Expr::Path(_) | Expr::Const(_) => false,
        Expr::Paren(inner) => may_fault(&inner.expr),
        Expr::Group(inner) => may_fault(&inner.expr),
        Expr::Cast(cast) => may_fault(&cast.expr),
        Expr::Unary(unary) => !matches!(unary.op, syn::UnOp::Not(_)) || may_fault(&unary.expr),
        Expr::Binary(binary) => {
            let is_of_bits =
                matches!(binary.op, Op::BitAnd(_) | Op::BitOr(_) | Op::BitXor(_) | Op::And(_) | Op::Or(_));
            let compares =
                matches!(binary.op, Op::Eq(_) | Op::Ne(_) | Op::Lt(_) | Op::Le(_) | Op::Gt(_) | Op::Ge(_));
            let divides = matches!(binary.op, Op::Div(_) | Op::Rem(_)) && is_divisor(&binary.right);
            !(is_of_bits || compares || divides) || may_fault(&binary.left) || may_fault(&binary.right)
        }
        Expr::Call(call) => {
            !word(call).is_some_and(|word| COMMON.iter().chain(&OWN).any(|known| word == known))
                || call.args.iter().any(may_fault)
        }
        Expr::MethodCall(call) => {
            !["len", "extent", "is_empty"].iter().any(|known| call.method == known)
                || may_fault(&call.receiver)
                || call.args.iter().any(may_fault)
        }
        _ => true,
    }
}

/// Whether it is a number by which every number can be divided.
fn is_divisor(e: &Expr) -> bool {
    matches!(e, Expr::Lit(literal) if matches!(&literal.lit, syn::Lit::Int(number)
        if number.base10_parse::<u128>().is_ok_and(|number| number > 0)))
}
