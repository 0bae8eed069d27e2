//! The benches, one file for each subject.

mod copies;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
mod files;
mod graphs;
mod harness;
mod interchange;
mod kernels;
mod memory;
mod ops;
mod ordering;
mod pocl;
mod replay;
mod rmm;
mod spilling;
mod split;
#[cfg(any(test, feature = "cuda"))]
mod transfers;
mod views;

use crate::Bench;

/// All benches for the device of that name, in the order in which they run.
pub fn all(device: &str) -> Vec<Bench> {
    let mut benches = Vec::new();
    benches.extend(harness::all());
    benches.extend(views::all());
    benches.extend(copies::all());
    benches.extend(ordering::all());
    benches.extend(memory::all());
    benches.extend(rmm::all());
    benches.extend(replay::all());
    benches.extend(interchange::all());
    benches.extend(kernels::all());
    benches.extend(split::all());
    benches.extend(graphs::all());
    benches.extend(pocl::all());
    benches.extend(ops::of(device));
    benches.extend(files::of(device));
    benches.extend(spilling::of(device));
    #[cfg(feature = "cuda")]
    if device.split(':').next() == Some("cuda") {
        benches.extend(cuda::all());
        benches.extend(transfers::of::<gpumem_cuda::Cuda>(device, transfers::FULL));
    }
    benches
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_need_no_quotes_in_a_shell() {
        let mut seen = BTreeSet::new();
        for name in all("cuda:0").into_iter().map(|bench| bench.name) {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_:".contains(c);
            assert!(name.chars().all(is_plain), "{name}");
            assert!(seen.insert(name.clone()), "{name} is there twice");
        }
    }
}
