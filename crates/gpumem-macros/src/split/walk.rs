//! Walks over a body: assigns statements to phases, or leaves them outside.

use super::{
    DIFFERS, Kind, MARK, Operation, Plan, Run, Why,
    common::{Found, assignment, has_type, is_barrier, is_shared_array, may_fault, names, wave_operation},
    reductions::captured,
};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use std::collections::{HashMap, HashSet};
use syn::{
    Block, Expr, Local, Pat, Stmt, parse_quote, parse_quote_spanned,
    spanned::Spanned,
    visit::{self, Visit},
};

const VARYING: Why = "work-items may part around a barrier";
const LEAVES: Why = "a work-item may leave before a barrier";
const NESTED: Why = "work-items wait within an expression";

/// The names that a pattern declares, and whether they may change.
#[derive(Default)]
pub(super) struct Declared(pub(super) Vec<(Ident, bool)>);

impl<'a> Visit<'a> for Declared {
    fn visit_pat_ident(&mut self, name: &'a syn::PatIdent) {
        self.0.push((name.ident.clone(), name.mutability.is_some()));
        visit::visit_pat_ident(self, name);
    }
}

/// The one name of a `let`, whether it may change, and its value.
pub(super) fn plain_let(local: &Local) -> Option<(&Ident, bool, &Expr)> {
    let pattern = match &local.pat {
        Pat::Type(typed) => &*typed.pat,
        pattern => pattern,
    };
    let (Pat::Ident(name), Some(init)) = (pattern, &local.init) else { return None };
    Some((&name.ident, name.mutability.is_some(), &init.expr))
}

/// `let (a, b) = (c, d);` as one `let` for each, where none of the names is in a value.
fn taken_apart(local: &Local) -> Option<Vec<Stmt>> {
    let (Pat::Tuple(pattern), Some(init)) = (&local.pat, &local.init) else { return None };
    let Expr::Tuple(values) = &*init.expr else { return None };
    let mut mentioned = HashSet::new();
    names(values, &mut mentioned);
    let fits = pattern.elems.len() == values.elems.len()
        && pattern
            .elems
            .iter()
            .all(|part| matches!(part, Pat::Ident(name) if !mentioned.contains(&name.ident.to_string())));
    let lets = pattern.elems.iter().zip(&values.elems);
    fits.then(|| lets.map(|(name, value)| parse_quote_spanned!(name.span()=> let #name = #value;)).collect())
}

/// The statement that takes the place of a phase, or that ends the group.
fn mark(what: TokenStream) -> Stmt {
    let name = Ident::new(MARK, Span::call_site());
    parse_quote!(#name!(#what);)
}

impl Plan {
    pub(super) fn enter(&mut self) {
        self.scopes.push(HashMap::new());
    }

    pub(super) fn find(&self, name: &impl ToString) -> Option<usize> {
        let name = name.to_string();
        self.scopes.iter().rev().find_map(|scope| scope.get(&name)).copied()
    }

    /// The variables that names refer to here.
    fn visible(&self) -> HashMap<String, usize> {
        self.scopes.iter().flatten().map(|(name, binding)| (name.clone(), *binding)).collect()
    }

    pub(super) fn declare(
        &mut self,
        name: &Ident,
        kind: Kind,
        mutable: bool,
        cheap: Option<(Stmt, Vec<(String, usize)>)>,
    ) -> usize {
        let number = self.bindings.len();
        self.bindings.push(super::Binding { name: name.clone(), kind, mutable, cheap, phase: None });
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_string(), number);
        }
        number
    }

    pub(super) fn is_common_binding(&self, number: usize) -> bool {
        match self.bindings.get(number).map(|binding| binding.kind) {
            Some(Kind::Array) => true,
            Some(Kind::Value) => !self.varying.contains(&number),
            _ => false,
        }
    }

    fn varies(&mut self, number: usize) {
        if self.bindings.get(number).is_none_or(|binding| binding.kind == Kind::Value) {
            self.changed |= self.varying.insert(number);
        }
    }

    pub(super) fn block(&mut self, block: &Block, tail: bool) -> Result<Vec<Stmt>, Why> {
        self.enter();
        let mut out = Vec::new();
        for (index, statement) in block.stmts.iter().enumerate() {
            let rest = block.stmts.get(index + 1..).unwrap_or_default();
            let meets = rest.iter().any(|statement| Found::in_statement(statement).meets);
            self.statement(statement, [tail && !meets, tail && rest.is_empty()], &mut out)?;
        }
        self.flush(true, None, &mut out)?;
        self.scopes.pop();
        Ok(out)
    }

    /// Ends the phase. `is_end` says that nothing comes after it that a work-item must not do once it has returned.
    fn flush(&mut self, is_end: bool, then: Option<Operation>, out: &mut Vec<Stmt>) -> Result<(), Why> {
        if self.run.statements.is_empty() && then.is_none() {
            return Ok(());
        }
        if self.run.returns && !is_end {
            return Err(LEAVES);
        }
        let run = std::mem::take(&mut self.run);
        let number = self.runs.len();
        for binding in &run.declared {
            if let Some(binding) = self.bindings.get_mut(*binding) {
                binding.phase = Some(number);
            }
        }
        self.runs.push(Run { after: self.visible(), then, ..run });
        out.push(mark(quote!(#number)));
        Ok(())
    }

    /// `tails`: whether nothing waits after the statement in the whole body, and whether nothing comes after it at all.
    fn statement(&mut self, statement: &Stmt, tails: [bool; 2], out: &mut Vec<Stmt>) -> Result<(), Why> {
        let found = Found::in_statement(statement);
        if !(found.meets || found.exits || found.returns && !tails[0]) {
            return self.plain(statement, &found, out);
        }
        match statement {
            Stmt::Local(local) => {
                let Some((name, operation)) =
                    plain_let(local).and_then(|(name, _, value)| Some((name, wave_operation(value)?)))
                else {
                    return Err(NESTED);
                };
                let result = self.operation(operation, name.span(), out)?;
                let mut local = local.clone();
                if let Some(init) = &mut local.init {
                    *init.expr = parse_quote!(#result);
                }
                let statement = Stmt::Local(local);
                self.plain(&statement, &Found::in_statement(&statement), out)
            }
            Stmt::Expr(e, _) => self.structure(e, tails[1], out),
            _ => Err(NESTED),
        }
    }

    /// A statement in which work-items wait, or which leaves the enclosing loop or body.
    fn structure(&mut self, e: &Expr, tail: bool, out: &mut Vec<Stmt>) -> Result<(), Why> {
        if is_barrier(e) {
            return self.flush(false, None, out);
        }
        if let Some((place, value, with_operator)) = assignment(e) {
            let (Some(operation), Expr::Path(_), false) = (wave_operation(value), place, with_operator)
            else {
                return Err(NESTED);
            };
            let result = self.operation(operation, value.span(), out)?;
            let statement: Stmt = parse_quote_spanned!(e.span()=> #place = #result;);
            return self.plain(&statement, &Found::in_statement(&statement), out);
        }
        let heads: Vec<&Expr> = match e {
            Expr::If(branch) => vec![&branch.cond],
            Expr::While(repeated) => vec![&repeated.cond],
            Expr::ForLoop(counted) => range(&counted.expr)?,
            _ => Vec::new(),
        };
        if heads.iter().any(|head| Found::in_expression(head).meets) {
            return Err(NESTED);
        }
        if !heads.iter().all(|head| self.is_common(head)) {
            return Err(if Found::in_expression(e).meets { VARYING } else { LEAVES });
        }
        self.flush(false, None, out)?;
        let mut e = e.clone();
        match &mut e {
            Expr::If(branch) => {
                branch.then_branch.stmts = self.block(&branch.then_branch, tail)?;
                if let Some((_, other)) = &mut branch.else_branch {
                    let mut inner = Vec::new();
                    match &mut **other {
                        Expr::Block(block) => inner = self.block(&block.block, tail)?,
                        other => self.structure_or_plain(other, tail, &mut inner)?,
                    }
                    **other = parse_quote!({ #(#inner)* });
                }
            }
            Expr::Block(block) if block.label.is_none() => {
                block.block.stmts = self.block(&block.block, tail)?
            }
            Expr::While(repeated) => repeated.body.stmts = self.block(&repeated.body, false)?,
            Expr::Loop(endless) => endless.body.stmts = self.block(&endless.body, false)?,
            Expr::ForLoop(counted) => {
                self.enter();
                if let Pat::Ident(name) = &*counted.pat {
                    let number = self.declare(&name.ident, Kind::Value, false, None);
                    if !self.is_common_binding(number) {
                        return Err(VARYING);
                    }
                }
                counted.body.stmts = self.block(&counted.body, false)?;
                self.scopes.pop();
            }
            Expr::Break(syn::ExprBreak { expr: None, .. }) | Expr::Continue(_) => {}
            Expr::Return(_) => {
                out.push(mark(quote!(return)));
                return Ok(());
            }
            _ => return Err(NESTED),
        }
        out.push(Stmt::Expr(e, Some(Default::default())));
        Ok(())
    }

    /// An `if` after `else`.
    fn structure_or_plain(&mut self, e: &Expr, tail: bool, out: &mut Vec<Stmt>) -> Result<(), Why> {
        self.enter();
        let statement = Stmt::Expr(e.clone(), None);
        self.statement(&statement, [tail, tail], out)?;
        self.flush(true, None, out)?;
        self.scopes.pop();
        Ok(())
    }

    /// Ends the phase with an operation of waves. Gives the name of its result.
    fn operation(
        &mut self,
        (name, arguments, with_lane): (&Ident, Vec<&Expr>, bool),
        span: Span,
        out: &mut Vec<Stmt>,
    ) -> Result<Ident, Why> {
        if arguments.iter().any(|argument| Found::in_expression(argument).meets) {
            return Err(NESTED);
        }
        let (Some(value), second) = (arguments.first(), arguments.get(1)) else { return Err(NESTED) };
        let is_condition = ["wave_ballot", "wave_any", "wave_all"].iter().any(|known| name == known);
        let value = self.temporary(value, if is_condition { quote!(: bool) } else { quote!() }, span);
        let lane = second.filter(|_| with_lane).map(|lane| self.temporary(lane, quote!(: usize), span));
        let function = second.filter(|_| !with_lane).map(|function| (*function).clone());
        let used = function.as_ref().map(captured).unwrap_or_default();
        if used.iter().filter_map(|name| self.find(name)).any(|found| !self.is_common_binding(found)) {
            return Err(DIFFERS);
        }
        let result_name = Ident::new(&format!("__gpumem_result{}", self.bindings.len()), span);
        let result = self.declare(&result_name, Kind::Temporary, false, None);
        self.flush(false, Some(Operation { name: name.clone(), value, lane, function, result }), out)?;
        Ok(result_name)
    }

    /// Keeps a value for an operation of waves.
    fn temporary(&mut self, value: &Expr, ty: TokenStream, span: Span) -> usize {
        let name = Ident::new(&format!("__gpumem_value{}", self.bindings.len()), span);
        let statement: Stmt = parse_quote_spanned!(value.span()=> let #name #ty = #value;);
        self.push(&statement, &Found::in_statement(&statement));
        let number = self.declare(&name, Kind::Temporary, false, None);
        self.run.declared.insert(number);
        number
    }

    /// Adds a statement to the phase.
    fn push(&mut self, statement: &Stmt, found: &Found) {
        for name in &found.assigned {
            if let Some(binding) = self.find(name) {
                self.varies(binding);
            }
        }
        if self.run.statements.is_empty() {
            self.run.before = self.visible();
        }
        names(statement, &mut self.run.mentions);
        self.run.assigned.extend(found.assigned.iter().cloned());
        self.run.returns |= found.returns;
        let is_harmless = matches!(statement, Stmt::Local(local)
            if plain_let(local).is_some_and(|(_, _, value)| !may_fault(value)));
        self.run.may_fault |= !is_harmless;
        self.run.statements.push(statement.clone());
    }

    /// A statement in which nothing waits: a part of the phase, or computed once for the group.
    fn plain(&mut self, statement: &Stmt, found: &Found, out: &mut Vec<Stmt>) -> Result<(), Why> {
        let may_be_common = !self.run.returns && !found.returns;
        if let Stmt::Expr(e, _) = statement
            && let Some((Expr::Path(place), value, _)) = assignment(e)
            && let Some(binding) = place.path.get_ident().and_then(|name| self.find(name))
            && self.is_common_binding(binding)
            && may_be_common
            && self.is_common(value)
        {
            self.flush(false, None, out)?;
            out.push(statement.clone());
            return Ok(());
        }
        let Stmt::Local(local) = statement else {
            self.push(statement, found);
            return Ok(());
        };
        if let Some(lets) = taken_apart(local) {
            return lets.iter().try_for_each(|one| self.plain(one, &Found::in_statement(one), out));
        }
        let number = self.bindings.len();
        if let Some((name, mutable, value)) = plain_let(local) {
            let is_array = is_shared_array(value);
            if is_array || may_be_common && !self.varying.contains(&number) && self.is_common(value) {
                // It comes before the phase, whose statements may mean the variable that it hides, or fault first.
                let hides = !self.run.statements.is_empty() && self.find(name).is_some();
                if hides || !is_array && self.run.may_fault && may_fault(value) {
                    self.flush(false, None, out)?;
                }
                let kind = if is_array { Kind::Array } else { Kind::Value };
                self.declare(name, kind, mutable, None);
                out.push(statement.clone());
                return Ok(());
            }
        }
        self.own(local, statement, found, out)
    }

    /// A `let` with a value for each work-item.
    fn own(
        &mut self,
        local: &Local,
        statement: &Stmt,
        found: &Found,
        out: &mut Vec<Stmt>,
    ) -> Result<(), Why> {
        let mut declared = Declared::default();
        declared.visit_pat(&local.pat);
        for (name, _) in &declared.0 {
            let Some(hidden) = self.find(name) else { continue };
            if found.assigned.contains(&name.to_string()) {
                return Err("a variable is assigned to in the `let` that hides it");
            }
            if self.run.assigned.contains(&name.to_string()) && !self.run.declared.contains(&hidden) {
                // The variable that it hides is written at the end of the phase, where the name must mean that one.
                self.flush(false, None, out)?;
            }
        }
        let (mut uses, mut mentioned) = (Vec::new(), HashSet::new());
        names(statement, &mut mentioned);
        let is_typed =
            |value| (matches!(local.pat, Pat::Type(_)) || has_type(value)) && !mentioned.contains("_");
        let cheap = plain_let(local)
            .filter(|(_, mutable, value)| !mutable && is_typed(value) && self.is_cheap(value, &mut uses))
            .map(|_| (statement.clone(), uses));
        self.push(statement, found);
        let kind = if local.init.is_none() { Kind::Later } else { Kind::Value };
        let alone = declared.0.len() == 1;
        for (name, mutable) in declared.0 {
            let number = self.declare(&name, kind, mutable, cheap.clone().filter(|_| alone));
            self.varies(number);
            self.run.declared.insert(number);
        }
        Ok(())
    }
}

/// The expressions in the head of a `for`.
fn range(e: &Expr) -> Result<Vec<&Expr>, Why> {
    match e {
        Expr::Paren(inner) => range(&inner.expr),
        Expr::Group(inner) => range(&inner.expr),
        Expr::Range(range) => Ok(range.start.iter().chain(&range.end).map(|bound| &**bound).collect()),
        Expr::MethodCall(call) => {
            let mut all = range(&call.receiver)?;
            all.extend(&call.args);
            Ok(all)
        }
        _ => Err(NESTED),
    }
}
