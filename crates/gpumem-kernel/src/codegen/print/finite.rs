//! Loops that are known to end, which need no way out.

use super::Body;
use crate::codegen::{E, Form, S};

impl Body<'_> {
    /// Whether `while condition { body }` ends: by `i < n` with `i += 1`, or by `i > 0` with `i /= 2` or `i >>= 1`, in each turn, and
    /// without another assignment to either.
    pub(super) fn ends(&self, condition: &E, body: &[S]) -> bool {
        match condition {
            E::Compare("&&", a, b) => self.ends(a, body) || self.ends(b, body),
            E::Compare("<", E::Var(i), n) => {
                is_unchanged(n, body) && self.counts(i, body, |operator, by| (operator, by) == ("+", 1))
            }
            // Fewer than any type has bits, and a number in every type.
            E::Compare(">", E::Var(i), zero) if self.number(zero) == Some(0) => {
                self.counts(i, body, |operator, by| {
                    operator == "/" && (2..128).contains(&by) || operator == ">>" && (1..8).contains(&by)
                })
            }
            _ => false,
        }
    }

    /// Whether every turn changes this integer so, and nothing else does.
    fn counts(&self, i: &str, body: &[S], is: impl Fn(&str, u64) -> bool) -> bool {
        let skips = any(body, &|statement| matches!(statement, S::Continue | S::Goto(_)));
        let is_turn = |statement: &&S| match statement {
            S::AssignWith(operator, ty, E::Var(place), by) => {
                *place == i
                    && matches!(self.type_at(*ty).form, Form::Wrapping | Form::Integer)
                    && self.number(by).is_some_and(|by| is(operator, by))
            }
            _ => false,
        };
        let others: Vec<S> = body.iter().filter(|statement| !is_turn(statement)).copied().collect();
        !skips && others.len() + 1 == body.len() && !changes(i, &others)
    }
}

/// Whether an expression has one value in all turns.
fn is_unchanged(e: &E, body: &[S]) -> bool {
    match e {
        E::Var(name) => !changes(name, body),
        E::Cast(_, _, a) => is_unchanged(a, body),
        E::Arithmetic(_, _, a, b) => is_unchanged(a, body) && is_unchanged(b, body),
        e => matches!(
            e,
            E::Literal(..)
                | E::Suffixed(..)
                | E::Constant(_)
                | E::Id(..)
                | E::Extent(..)
                | E::Call("rust::len", _)
        ),
    }
}

fn changes(name: &str, list: &[S]) -> bool {
    any(list, &|statement| match statement {
        S::Assign(E::Var(place), _) | S::AssignWith(_, _, E::Var(place), _) => *place == name,
        _ => false,
    })
}

/// Whether there is such a statement among these, or within one of them.
pub(super) fn any(list: &[S], is: &impl Fn(&S) -> bool) -> bool {
    list.iter().any(|statement| {
        is(statement)
            || match statement {
                S::For(_, _, _, _, body)
                | S::Loop(body)
                | S::While(_, body)
                | S::Block(body)
                | S::Steps(_, _, _, _, _, body) => any(body, is),
                S::If(_, yes, no) => any(yes, is) || any(no, is),
                _ => false,
            }
    })
}
