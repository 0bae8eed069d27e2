//! Positions in 32 bits where their values are known to fit: GPUs compute 64 bits in several instructions.

use super::{Body, expression::function, finite::any, name::variable};
use crate::codegen::{E, S};
use std::collections::HashMap;

/// The greatest value of each variable of type `usize` that is printed as a `u32`. Names are unique in a function.
pub(super) type NarrowVariables = HashMap<&'static str, u32>;

/// The greatest value of an id or a size, on every device.
fn most_of_id(name: &str) -> Option<u32> {
    match name {
        "local_id" | "local_linear" => Some(1023),
        "group_size" => Some(1024),
        "wave_id" | "lane" => Some(63),
        "wave_size" | "wave_items" => Some(64),
        "group_id" | "groups" => Some(u32::MAX),
        _ => None,
    }
}

/// Whether an id or a size is never 0.
fn is_positive_id(name: &str) -> bool {
    matches!(name, "global_size" | "group_size" | "groups" | "wave_size" | "wave_items")
}

impl Body<'_> {
    /// Finds the variables of these statements that fit 32 bits.
    pub(super) fn find_narrow(&mut self, all: &[S], list: &[S]) {
        for statement in list {
            match statement {
                S::Let(name, ty, mutable, [value])
                    if self.is_size_type(*ty) && (!mutable || never_grows(name, all)) =>
                {
                    self.insert(name, self.most(value));
                }
                S::For(name, ty, [from, to], step, body) => {
                    if self.is_size_type(*ty) {
                        self.insert(name, self.most_of_range(from, to, step));
                    }
                    self.find_narrow(all, body);
                }
                S::If(_, yes, no) => {
                    self.find_narrow(all, yes);
                    self.find_narrow(all, no);
                }
                S::Loop(body) | S::While(_, body) | S::Block(body) | S::Steps(_, _, _, _, _, body) => {
                    self.find_narrow(all, body);
                }
                _ => {}
            }
        }
    }

    fn insert(&mut self, name: &'static str, most: Option<u32>) {
        if let Some(most) = most {
            self.narrow.insert(name, most);
        }
    }

    fn is_size_type(&self, ty: usize) -> bool {
        self.type_at(ty).name == "u64"
    }

    /// The greatest value of a counter, if it stays within 32 bits also when it passes the end by a step.
    fn most_of_range(&self, from: &E, to: &E, step: &[E]) -> Option<u32> {
        self.most(from)?;
        let end = self.most(to)?;
        let step = match step {
            [] => 1,
            [step, ..] if self.is_positive(step) => self.most(step)?,
            _ => return None,
        };
        end.checked_add(step)?;
        Some(end)
    }

    /// Whether a value of type `usize` is known not to be 0.
    pub(super) fn is_positive(&self, e: &E) -> bool {
        match e {
            E::Id(name, _) => is_positive_id(name),
            _ => self.number(e).is_some_and(|number| number > 0),
        }
    }

    /// The value of an integer expression that is constant.
    pub(super) fn number(&self, e: &E) -> Option<u64> {
        match e {
            E::Literal(digits, _) | E::Suffixed(digits, _) => digits.parse().ok(),
            E::Constant(number) => {
                let constant = self.constants.get(*number)?;
                let digits = constant.literal.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                (constant.info.name == "u64").then(|| digits.parse().ok())?
            }
            E::Arithmetic("*", ty, a, b) if self.is_size_type(*ty) => {
                self.number(a)?.checked_mul(self.number(b)?)
            }
            E::Arithmetic("+", ty, a, b) if self.is_size_type(*ty) => {
                self.number(a)?.checked_add(self.number(b)?)
            }
            _ => None,
        }
    }

    /// The greatest value of an expression of type `usize` that can be computed in 32 bits.
    pub(super) fn most(&self, e: &E) -> Option<u32> {
        match e {
            E::Var(name) => self.narrow.get(name).copied(),
            E::Literal(_, ty) if self.is_size_type(*ty) => self.number(e)?.try_into().ok(),
            E::Suffixed(_, "u64") | E::Constant(_) => self.number(e)?.try_into().ok(),
            E::Position(at, ty) if self.is_size_type(*ty) => self.most(at),
            E::Id(name, _) => most_of_id(name),
            E::Cast(from, to, _) if self.is_size_type(*to) && self.type_at(*from).name == "u32" => {
                Some(u32::MAX)
            }
            E::Arithmetic(operator, ty, a, b) if self.is_size_type(*ty) => {
                let left = self.most(a)?;
                match *operator {
                    "+" => left.checked_add(self.most(b)?),
                    "*" => left.checked_mul(self.most(b)?),
                    "/" if self.is_positive(b) => self.most(b).map(|_| left),
                    "%" if self.is_positive(b) => Some(left.min(self.most(b)? - 1)),
                    "&" => Some(left.min(self.most(b)?)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// An expression that fits 32 bits, computed in them.
    pub(super) fn narrow(&self, e: &E) -> String {
        match e {
            E::Var(name) => variable(name),
            E::Position(at, _) => self.narrow(at),
            E::Id(name, arguments) => self.id(name, arguments),
            E::Cast(_, _, value) => self.expression(value),
            E::Arithmetic(operator @ ("/" | "%"), _, a, b) => {
                format!("rust::{}({}, {})", function(operator), self.narrow(a), self.narrow(b))
            }
            E::Arithmetic(operator, _, a, b) => {
                format!("{} {operator} {}", self.narrow_operand(a), self.narrow_operand(b))
            }
            e => format!("{}u", self.number(e).unwrap_or_default()),
        }
    }

    /// As [`narrow`](Self::narrow), beside any operator.
    pub(super) fn narrow_operand(&self, e: &E) -> String {
        match e {
            E::Position(at, _) => self.narrow_operand(at),
            E::Arithmetic(..) | E::Cast(..) => format!("({})", self.narrow(e)),
            e => self.narrow(e),
        }
    }
}

/// Whether a variable is only assigned what is at most its value.
fn never_grows(name: &str, list: &[S]) -> bool {
    !any(list, &|statement| match statement {
        S::Assign(E::Var(place), _) => *place == name,
        S::AssignWith(operator, _, E::Var(place), _) => {
            *place == name && !matches!(*operator, "/" | "%" | ">>" | "&")
        }
        _ => false,
    })
}
