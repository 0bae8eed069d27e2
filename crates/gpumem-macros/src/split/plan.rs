//! Plans the phases: which values are kept, and which are computed again.

use super::{Kind, Phase, Plan, Run, Split, Why};
use std::collections::{BTreeSet, HashSet};
use syn::{Block, Stmt};

impl Plan {
    /// The variables of other phases that a phase needs at its begin.
    fn needs(&self, number: usize, run: &Run) -> BTreeSet<usize> {
        let found = run.mentions.iter().filter_map(|name| run.before.get(name)).copied();
        found.filter(|found| self.is_needed(*found, number)).collect()
    }

    fn is_needed(&self, binding: usize, phase: usize) -> bool {
        !self.is_common_binding(binding)
            && self.bindings.get(binding).is_some_and(|binding| binding.phase != Some(phase))
    }

    /// Tells whether a phase may compute a variable again: the names in its declaration have the same meaning there.
    fn is_again(&self, binding: usize, run: &Run) -> bool {
        let Some((_, uses)) = self.bindings.get(binding).and_then(|binding| binding.cheap.as_ref()) else {
            return false;
        };
        uses.iter().all(|(name, used)| {
            run.before.get(name) == Some(used) && (self.is_common_binding(*used) || self.is_again(*used, run))
        })
    }

    /// Adds the variables that a variable is computed from to those that a phase needs.
    fn add_uses(&self, binding: usize, kept: &BTreeSet<usize>, needs: &mut BTreeSet<usize>) {
        let Some((_, uses)) = self.bindings.get(binding).and_then(|binding| binding.cheap.as_ref()) else {
            return;
        };
        for (_, used) in uses {
            if !self.is_common_binding(*used) && needs.insert(*used) && !kept.contains(used) {
                self.add_uses(*used, kept, needs);
            }
        }
    }

    pub(super) fn finish(mut self, block: Block) -> Result<Split, Why> {
        let runs = std::mem::take(&mut self.runs);
        let all_needs: Vec<BTreeSet<usize>> =
            runs.iter().enumerate().map(|(number, run)| self.needs(number, run)).collect();
        let mut kept = BTreeSet::new();
        for (run, needs) in runs.iter().zip(&all_needs) {
            kept.extend(needs.iter().copied().filter(|binding| !self.is_again(*binding, run)));
            if let Some(operation) = &run.then {
                kept.extend([operation.value, operation.result].into_iter().chain(operation.lane));
            }
        }
        let is_later =
            |binding: &usize| self.bindings.get(*binding).is_none_or(|binding| binding.kind == Kind::Later);
        if kept.iter().any(is_later) {
            return Err("a variable without a value is kept across a barrier");
        }
        let mut phases = Vec::new();
        for (run, mut needs) in runs.into_iter().zip(all_needs) {
            for binding in needs.clone() {
                if !kept.contains(&binding) {
                    self.add_uses(binding, &kept, &mut needs);
                }
            }
            phases.push(self.phase(run, &needs, &kept));
        }
        Ok(Split { block, phases, kept: kept.into_iter().collect() })
    }

    fn phase(&self, run: Run, needs: &BTreeSet<usize>, kept: &BTreeSet<usize>) -> Phase {
        let mut phase = Phase::default();
        for number in needs {
            let Some(binding) = self.bindings.get(*number) else { continue };
            match &binding.cheap {
                _ if kept.contains(number) => phase.loads.push((binding.name.clone(), *number)),
                Some((statement, _)) => phase.again.push(statement.clone()),
                None => {}
            }
        }
        let touched: HashSet<usize> =
            run.assigned.iter().filter_map(|name| run.after.get(name)).copied().collect();
        for number in kept {
            let Some(binding) = self.bindings.get(*number) else { continue };
            let is_visible = run.after.get(&binding.name.to_string()) == Some(number);
            if is_visible && (run.declared.contains(number) || touched.contains(number)) {
                phase.stores.push((binding.name.clone(), *number));
            }
        }
        let statements: Vec<Stmt> = run.statements;
        Phase { statements, then: run.then, ..phase }
    }
}
