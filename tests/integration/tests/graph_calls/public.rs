//! The public calls, as the lists in `xtask/api` have them.

use std::collections::BTreeSet;

const LISTS: [&str; 4] = [
    include_str!("../../../../xtask/api/gpumem-runtime.txt"),
    include_str!("../../../../xtask/api/gpumem-kernel.txt"),
    include_str!("../../../../xtask/api/gpumem-ops.txt"),
    include_str!("../../../../xtask/api/gpumem-collectives.txt"),
];
/// What has devices, streams or arrays to work with.
const OF: [&str; 26] = [
    "Stream",
    "Device",
    "ArrayBase",
    "HostArray",
    "UninitArray",
    "UninitHostArray",
    "IpcArray",
    "Event",
    "Graph",
    "GraphMemory",
    "Scope",
    "SpillManager",
    "Spillable",
    "Kernel",
    "KernelDef",
    "UntypedKernel",
    "UntypedKernelDef",
    "UntypedArguments",
    "ArrayOps",
    "OnStream",
    "Philox",
    "Communicator",
    "CommunicatorId",
    "Operations",
    "gpumem_runtime",
    "gpumem_ops",
];

/// The path of a function, without parameters of types and what follows: `gpumem_runtime::Stream::fill`.
fn path(line: &str) -> Option<String> {
    let line = line.strip_prefix("pub ")?;
    let signature = line.strip_prefix("unsafe ").unwrap_or(line).strip_prefix("fn ")?;
    let mut depth = 0;
    let mut path = String::new();
    for letter in signature.chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            '(' if depth == 0 => break,
            _ if depth == 0 => path.push(letter),
            _ => {}
        }
    }
    Some(path)
}

/// All of them, by the type and the name: `Stream::fill`. Not those of traits of other crates, as `Clone`.
pub(crate) fn calls() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for list in LISTS {
        let mut is_of_trait = false;
        for line in list.lines() {
            if line.starts_with("impl") {
                is_of_trait =
                    line.contains(" for ") && !line.contains("ArrayOps<S, D> for gpumem_ops::OnStream");
            } else if !line.starts_with("pub fn") && !line.starts_with("pub unsafe fn") {
                is_of_trait &= line.starts_with("pub type") || line.starts_with("pub const");
            }
            let Some(path) = path(line) else { continue };
            let mut parts = path.rsplit("::");
            let (Some(name), Some(of)) = (parts.next(), parts.next()) else { continue };
            let is_function = of.starts_with("gpumem_");
            if OF.contains(&of) && (is_function || !is_of_trait) {
                all.insert(format!("{of}::{name}"));
            }
        }
    }
    all
}
