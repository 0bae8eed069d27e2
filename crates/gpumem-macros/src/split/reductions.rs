//! The functions of `wave_reduce`. A GPU calls one for each work-item, and the host one for all of a wave: so they use nothing that
//! differs among work-items.

use super::{
    Plan,
    common::is_shared_array,
    walk::{Declared, plain_let},
};
use proc_macro2::Ident;
use std::collections::HashSet;
use syn::{
    Block, Expr,
    visit::{self, Visit},
};

/// The variables that an expression uses.
#[derive(Default)]
struct Used(HashSet<String>);

impl<'a> Visit<'a> for Used {
    fn visit_expr_path(&mut self, path: &'a syn::ExprPath) {
        self.0.extend(path.path.get_ident().map(ToString::to_string));
    }
}

fn used(e: &Expr) -> HashSet<String> {
    let mut used = Used::default();
    used.visit_expr(e);
    used.0
}

/// Those that a function uses beside its own.
pub(super) fn captured(function: &Expr) -> HashSet<String> {
    let mut captured = used(function);
    if let Expr::Closure(closure) = function {
        let mut own = Declared::default();
        closure.inputs.iter().for_each(|input| own.visit_pat(input));
        captured.retain(|name| own.0.iter().all(|(own, _)| own != name));
    }
    captured
}

/// Whether such a function may use what differs, in a body that is not split: there no variable is known to be common but those that
/// nothing changes. `alike` are the letters that stand for several variables.
pub(crate) fn may_differ(block: &Block, parameters: &[(Ident, bool)], alike: &HashSet<String>) -> bool {
    let mut found = Variables { differ: alike.clone(), ..Variables::default() };
    found.differ.extend(parameters.iter().filter(|(_, mutable)| *mutable).map(|(name, _)| name.to_string()));
    found.visit_block(block);
    let Variables { mut differ, mut common, functions } = found;
    while let Some(at) = common.iter().position(|(_, value)| !used(value).is_disjoint(&differ)) {
        differ.insert(common.swap_remove(at).0);
    }
    functions
        .iter()
        .any(|function| !captured(function).is_disjoint(&differ) || !used(function).is_disjoint(alike))
}

/// The variables of a body, by their letters.
#[derive(Default)]
struct Variables<'a> {
    differ: HashSet<String>,
    /// Those that are common if all are that their values are made of.
    common: Vec<(String, &'a Expr)>,
    functions: Vec<&'a Expr>,
}

impl<'a> Visit<'a> for Variables<'a> {
    fn visit_pat_ident(&mut self, name: &'a syn::PatIdent) {
        self.differ.insert(name.ident.to_string());
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        match plain_let(local) {
            Some((name, false, value)) if is_shared_array(value) || Plan::default().is_common(value) => {
                self.common.push((name.to_string(), value));
            }
            _ => visit::visit_local(self, local),
        }
    }

    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        match (&*call.func, call.args.first(), call.args.get(1)) {
            (Expr::Path(word), Some(value), Some(function)) if word.path.is_ident("wave_reduce") => {
                self.visit_expr(value);
                self.functions.push(function);
            }
            _ => visit::visit_expr_call(self, call),
        }
    }
}
