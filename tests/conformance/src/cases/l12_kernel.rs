//! Kernels: one declaration, the same results as a plain loop on every device.

use super::tools::load;
use crate::{Case, Lab, Level, Stop, Verdict};
use gpumem_core::Backend;
use gpumem_host::{Host, HostOptions};
use gpumem_kernel::Kernel;
use gpumem_kernel_suite::{ShippedKernel, Visitor, visit};
use gpumem_runtime::Device;
use std::{
    any::TypeId,
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

/// One case for every kernel that ships.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    struct Cases<B: Backend>(Vec<Case<B>>);
    impl<B: Backend> Visitor for Cases<B> {
        fn visit<K: ShippedKernel>(&mut self) {
            self.0.push(Case::kernel::<K>());
        }
    }
    let mut cases = Cases(Vec::new());
    visit(&mut cases);
    cases.0
}

impl<B: Backend> Case<B> {
    /// The case of a kernel that ships, and the only way to one: the host's body (in waves of 32 and of 64, in check mode and side
    /// by side), the device under test and the plain reference must give the same bits for every problem.
    pub fn kernel<K: ShippedKernel>() -> Self {
        let case = Self::new(Level::Kernel, K::declaration().name(), agree::<K, B>);
        Self { compares_kernel: true, ..case }
    }
}

fn agree<K: ShippedKernel, B: Backend>(lab: &Lab<B>) -> Verdict {
    let problems = K::problems();
    if problems.is_empty() {
        return Err(Stop::Failed("a kernel without problems agrees with anything".to_owned()));
    }
    let expected: Vec<_> = problems.iter().map(K::reference).collect();
    agree_on_the_host::<K>(&problems, &expected)?;
    // From here on the reference and the host's body are one.
    let kernel = load(lab, &K::declaration())?;
    let what = "the device under test and the host's body disagree";
    answers_are::<K, _>(&kernel, lab.device(), &problems, &expected, what)
}

/// The half of the comparison that does not depend on the device under test: once in a process is enough.
fn agree_on_the_host<K: ShippedKernel>(problems: &[K::Problem], expected: &[Vec<K::Elem>]) -> Verdict {
    static AGREED: Mutex<BTreeSet<TypeId>> = Mutex::new(BTreeSet::new());
    let agreed = || AGREED.lock().unwrap_or_else(PoisonError::into_inner);
    if agreed().contains(&TypeId::of::<K>()) {
        return Ok(());
    }
    for wave_size in [32, 64] {
        let device = Device::<Host>::from_raw(Host::open_with(&HostOptions::new().wave_size(wave_size))?);
        for check in [false, true] {
            let kernel = K::declaration().race_checks(check).load(&device)?;
            let what = format!("the host's body in waves of {wave_size} and the plain reference disagree");
            answers_are::<K, _>(&kernel, &device, problems, expected, &what)?;
        }
    }
    agreed().insert(TypeId::of::<K>());
    Ok(())
}

/// Runs every problem on a device, and compares bit by bit.
fn answers_are<K: ShippedKernel, B: Backend>(
    kernel: &Kernel<K::Parameters, B>,
    device: &Device<B>,
    problems: &[K::Problem],
    expected: &[Vec<K::Elem>],
    what: &str,
) -> Verdict {
    let stream = device.stream()?;
    for (problem, expected) in problems.iter().zip(expected) {
        // An answer of no elements waits for nothing, and a fault would stay untold.
        let answer = K::run(kernel, &stream, problem).and_then(|found| stream.synchronize().map(|()| found));
        let found = match answer {
            Ok(found) => found,
            Err(error) => return Err(Stop::Failed(format!("{what}: {problem:?}: {error}"))),
        };
        if found.len() != expected.len() {
            let (found, expected) = (found.len(), expected.len());
            let text = format!("{what}: {problem:?}: {found} elements where {expected} are right");
            return Err(Stop::Failed(text));
        }
        let mut pairs = found.iter().zip(expected).enumerate();
        let differs = |(_, (found, right)): &(_, _)| {
            bytemuck::bytes_of::<K::Elem>(*found) != bytemuck::bytes_of(*right)
        };
        if let Some((at, (found, right))) = pairs.find(differs) {
            let text = format!("{what}: {problem:?}: element {at} is {found:?} where {right:?} is right");
            return Err(Stop::Failed(text));
        }
    }
    Ok(())
}
