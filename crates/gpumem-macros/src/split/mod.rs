//! Splits the body of a kernel at its barriers, into phases: loops over the work-items of a group, with nothing to wait for.
//!
//! A body is split only if all work-items of a group are known to come to the same barriers: the conditions and ranges
//! around a barrier are common to the group, and so are `break`, `continue` and `return`. Then the order in which
//! work-items run is one that the awaiting body could have, and both give the same. Any other body awaits.
//!
//! * A value that is common to the group is a variable outside the phases, and computed once.
//! * A value that a work-item keeps from one phase to another is in a `Private`: a phase reads it at its begin, and
//!   writes it at its end. So the statements in it stay as the author wrote them, and names mean what they mean there.
//! * A cheap value that does not change is computed again in each phase.
//!
//! Which variables are common is found by assuming it of all, and walking the body again until nothing contradicts.

mod common;
mod plan;
mod reductions;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use common::is_own;
use proc_macro2::{Ident, Span};
pub(crate) use reductions::may_differ;
use std::collections::{HashMap, HashSet};
use syn::{Block, Expr, Stmt};

/// Why a body is not split.
pub(crate) type Why = &'static str;
/// A kernel for which the body that awaits would not do either: the host calls the function once for all work-items of a wave.
pub(crate) const DIFFERS: Why = "the function of a `wave_reduce` uses values that differ among work-items";
/// The name of the macro call that takes the place of a phase among the statements of a split body.
pub(crate) const MARK: &str = "__gpumem_phase";
/// The names that a split body has beside those of the author begin so.
const OWN_NAMES: &str = "__gpumem_";

/// A body that is split.
pub(crate) struct Split {
    /// The statements outside the phases, with marks for the phases.
    pub block: Block,
    pub phases: Vec<Phase>,
    /// The numbers of the variables that are kept.
    pub kept: Vec<usize>,
}

/// A loop over the work-items.
#[derive(Default)]
pub(crate) struct Phase {
    /// Variables that are read at its begin.
    pub loads: Vec<(Ident, usize)>,
    /// The values that are computed again.
    pub again: Vec<Stmt>,
    pub statements: Vec<Stmt>,
    /// Variables that are written at its end.
    pub stores: Vec<(Ident, usize)>,
    /// The operation of waves after it.
    pub then: Option<Operation>,
}

/// An operation of waves, on kept variables.
pub(crate) struct Operation {
    pub name: Ident,
    pub value: usize,
    pub lane: Option<usize>,
    pub function: Option<Expr>,
    pub result: usize,
}

/// The variable that keeps the values of a binding.
pub(crate) fn private(number: usize) -> Ident {
    Ident::new(&format!("__p{number}"), Span::mixed_site())
}

/// All names in some statements, also those of fields and functions.
pub(crate) fn names_in(statements: &[Stmt]) -> HashSet<String> {
    let mut found = HashSet::new();
    statements.iter().for_each(|statement| common::names(statement, &mut found));
    found
}

/// A variable of the body, outside of what lies within one phase.
struct Binding {
    name: Ident,
    kind: Kind,
    mutable: bool,
    /// Its declaration, if that may stand in other phases too, and the variables in it.
    cheap: Option<(Stmt, Vec<(String, usize)>)>,
    /// The phase that declares it.
    phase: Option<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A parameter or a shared array: the same for all.
    Array,
    Value,
    /// Declared without a value.
    Later,
    /// A value for an operation of waves, or its result.
    Temporary,
}

/// Statements that will be a phase.
#[derive(Default)]
struct Run {
    statements: Vec<Stmt>,
    mentions: HashSet<String>,
    assigned: HashSet<String>,
    declared: HashSet<usize>,
    /// The variables that names stand for before it and after it.
    before: HashMap<String, usize>,
    after: HashMap<String, usize>,
    returns: bool,
    /// Whether a statement may end the launch.
    may_fault: bool,
    then: Option<Operation>,
}

/// One walk over a body.
#[derive(Default)]
struct Plan {
    bindings: Vec<Binding>,
    scopes: Vec<HashMap<String, usize>>,
    /// Variables that differ among work-items, as far as is known. Stays from one walk to the next.
    varying: HashSet<usize>,
    changed: bool,
    runs: Vec<Run>,
    /// The statements of the next phase.
    run: Run,
}

/// Splits a body whose parameters have these names.
pub(crate) fn split(block: &Block, parameters: &[(Ident, bool)]) -> Result<Split, Why> {
    if parameters.iter().any(|(_, mutable)| *mutable) {
        return Err("a parameter is `mut`");
    }
    let mut mentioned = HashSet::new();
    common::names(block, &mut mentioned);
    if mentioned.iter().any(|name| name.starts_with(OWN_NAMES)) {
        return Err("names that begin with `__gpumem_` are those of the split");
    }
    let mut varying = HashSet::new();
    loop {
        let mut plan = Plan { varying, ..Plan::default() };
        plan.enter();
        for (name, _) in parameters {
            plan.declare(name, Kind::Array, false, None);
        }
        let statements = plan.block(block, true);
        if !plan.changed {
            return plan.finish(Block { stmts: statements?, ..block.clone() });
        }
        varying = plan.varying;
    }
}
