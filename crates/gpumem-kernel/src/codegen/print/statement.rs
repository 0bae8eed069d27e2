//! Statements.

use super::{
    Body,
    expression::{function, is_plain},
    name::variable,
};
use crate::codegen::{E, Form, S};
use std::fmt::Write;

/// Writes into a text, which does not fail.
macro_rules! put {
    ($out:expr, $($format:tt)*) => {{
        let _ = writeln!($out, $($format)*);
    }};
}

impl Body<'_> {
    pub(super) fn statements(&self, out: &mut String, list: &[S], depth: usize) {
        for statement in list {
            self.statement(out, statement, depth);
        }
    }

    /// A block after a head on the same line.
    fn block(&self, out: &mut String, list: &[S], depth: usize) {
        out.push_str(" {\n");
        self.statements(out, list, depth + 1);
        let _ = write!(out, "{}}}", "    ".repeat(depth));
    }

    /// A loop that may have no end.
    fn unbounded_loop(&self, out: &mut String, head: &str, body: &[S], depth: usize) {
        let none = if self.result == "void" { "" } else { " {}" };
        let _ = writeln!(out, "{head} {{\n{}if (rust::never()) return{none};", "    ".repeat(depth + 1));
        self.statements(out, body, depth + 1);
        put!(out, "{}}}", "    ".repeat(depth));
    }

    fn statement(&self, out: &mut String, statement: &S, depth: usize) {
        if let S::Line(line) = statement {
            return put!(out, "#line {line}");
        }
        out.push_str(&"    ".repeat(depth));
        match statement {
            S::Line(_) => {}
            S::Let(name, ty, mutable, [value, ..]) => {
                let constant = if *mutable { "" } else { "const " };
                let (ty, value) = (self.type_of_variable(name, *ty), self.initial(value));
                put!(out, "{constant}{ty} {} = {value};", variable(name));
            }
            S::Let(name, ty, _, []) => put!(out, "{} {};", self.type_at(*ty).name, variable(name)),
            S::Zeros(name, ty) => put!(out, "{} {} = {{}};", self.type_at(*ty).name, variable(name)),
            S::Shared(name, ty, extents) => {
                let extents: Vec<String> = extents.iter().map(|extent| self.expression(extent)).collect();
                let (name, ty) = (variable(name), &self.type_at(*ty).name);
                // Not by the prelude's macro, whose argument a type with a comma is not.
                put!(out, "__shared__ ::gpumem::array<{ty}, {}> {name};", extents.join(", "));
            }
            S::DynamicShared(name, ty) => {
                let (name, ty) = (variable(name), &self.type_at(*ty).name);
                put!(out, "GPUMEM_DYNAMIC_SHARED(u8, {name}memory);");
                put!(
                    out,
                    "{}const rust::dynamic<{ty}> {name} = {{({ty}*){name}memory, dynamic_shared_bytes() / sizeof({ty})}};",
                    "    ".repeat(depth)
                );
            }
            S::Unused(name) => put!(out, "(void){};", variable(name)),
            S::Assign(place, value) => put!(out, "{} = {};", self.place(place), self.expression(value)),
            S::AssignWith(operator, ty, place, value) => self.assign_with(out, operator, *ty, place, value),
            S::Do(call @ (E::Call(..) | E::Invoke(..))) => put!(out, "{};", self.expression(call)),
            S::Do(value) => put!(out, "(void)({});", self.expression(value)),
            S::If(condition, yes, no) => self.branch(out, condition, yes, no, depth),
            S::Loop(body) => self.unbounded_loop(out, "for (;;)", body, depth),
            S::While(condition, body) if self.ends(condition, body) => {
                let _ = write!(out, "while ({})", self.expression(condition));
                self.block(out, body, depth);
                out.push('\n');
            }
            S::While(condition, body) => {
                self.unbounded_loop(out, &format!("while ({})", self.expression(condition)), body, depth);
            }
            S::For(name, ty, [from, to], [step, ..], body)
                if self.narrow.contains_key(name)
                    || self.type_at(*ty).name == "u64" && is_size(to) && self.is_step(step) =>
            {
                let (name, ty) = (variable(name), self.type_of_variable(name, *ty));
                let (from, to, step) = (self.initial(from), self.initial(to), self.initial(step));
                let _ = write!(out, "for ({ty} {name} = {from}, {name}end = {to}, {name}step = {step}; ");
                let _ = write!(out, "{name} < {name}end; {name} += {name}step)");
                self.block(out, body, depth);
                out.push('\n');
            }
            S::For(name, ty, [from, to], step, body) => {
                let (name, ty) = (variable(name), self.type_of_variable(name, *ty));
                let (from, to) = (self.initial(from), self.initial(to));
                // One loop over the steps, and around it nothing: a head that is read as C++ programmers write it.
                let step = step.first().map(|step| format!("rust::step({})", self.expression(step)));
                let (more, next) = match &step {
                    None => (String::new(), format!("++{name}")),
                    Some(step) => (
                        format!("u64 {name}step = {step}; "),
                        format!("{name} = rust::next({name}, {name}step, {name}end)"),
                    ),
                };
                if step.is_some() {
                    put!(out, "{{");
                    put!(out, "{}const {more}", "    ".repeat(depth + 1));
                    out.push_str(&"    ".repeat(depth + 1));
                }
                let inner = depth + usize::from(step.is_some());
                let _ =
                    write!(out, "for ({ty} {name} = {from}, {name}end = {to}; {name} < {name}end; {next})");
                self.block(out, body, inner);
                out.push('\n');
                if step.is_some() {
                    put!(out, "{}}}", "    ".repeat(depth));
                }
            }
            S::Steps(name, ty, [from, to], [inclusive, reversed], step, body) => {
                let (name, ty) = (variable(name), &self.type_at(*ty).name);
                let (from, to, step) = (self.expression(from), self.expression(to), self.expression(step));
                let _ = write!(
                    out,
                    "for (rust::steps<{ty}> {name}steps({from}, {to}, {inclusive}, {reversed}, {step}); {name}steps.next();) {{\n\
                     {}const {ty} {name} = {name}steps.at;\n",
                    "    ".repeat(depth + 1)
                );
                self.statements(out, body, depth + 1);
                put!(out, "{}}}", "    ".repeat(depth));
            }
            S::Block(body) => {
                out.push('{');
                out.push('\n');
                self.statements(out, body, depth + 1);
                put!(out, "{}}}", "    ".repeat(depth));
            }
            S::Break => put!(out, "break;"),
            S::Continue => put!(out, "continue;"),
            S::Return => put!(out, "return;"),
            S::Give(value) => put!(out, "return {};", self.initial(value)),
            S::Goto(label) => put!(out, "goto {};", variable(label)),
            S::Label(label) => put!(out, "{}:;", variable(label)),
        }
    }

    fn branch(&self, out: &mut String, condition: &E, yes: &[S], no: &[S], depth: usize) {
        let _ = write!(out, "if ({})", self.expression(condition));
        self.block(out, yes, depth);
        match no {
            [] => out.push('\n'),
            [S::If(condition, yes, no)] => {
                out.push_str(" else ");
                self.branch(out, condition, yes, no, depth);
            }
            no => {
                out.push_str(" else");
                self.block(out, no, depth);
                out.push('\n');
            }
        }
    }

    /// The type of a variable as it is declared.
    fn type_of_variable(&self, name: &str, ty: usize) -> &str {
        if self.narrow.contains_key(name) { "u32" } else { &self.type_at(ty).name }
    }

    /// What is assigned to.
    fn place(&self, place: &E) -> String {
        match place {
            E::Var(name) => variable(name),
            place => self.expression(place),
        }
    }

    /// Whether the value is at least 1 and below 2^63: a counter below a size does not wrap with it.
    fn is_step(&self, step: &E) -> bool {
        self.is_positive(step) && self.number(step).is_none_or(|step| step < 1 << 63)
    }

    fn assign_with(&self, out: &mut String, operator: &str, ty: usize, place: &E, value: &E) {
        let info = self.type_at(ty);
        let target = self.place(place);
        let promoted = matches!(operator, "&" | "|" | "^") && info.form != Form::Half;
        if is_plain(operator, info) || promoted {
            return put!(out, "{target} {operator}= {};", self.expression(value));
        }
        if matches!(place, E::Var(_)) {
            return put!(out, "{target} = {};", self.arithmetic(operator, ty, place, value));
        }
        // The place is looked up once.
        let (function, value) = (function(operator), self.expression(value));
        put!(out, "rust::{function}_to({target}, {value});");
    }
}

/// Whether the value is below 2^63: the length of an array, or the size of a launch.
fn is_size(value: &E) -> bool {
    matches!(value, E::Extent(..) | E::Call("rust::len", _) | E::Id(..))
}
