//! Every function of the prelude, on every device: the host's bodies in waves of 32 and of 64, and the device under test
//! in its own, each against plain loops.

mod atomics;
mod groups;
mod numbers;
mod waves;

use super::tools::load;
use crate::{Case, Lab, Level, Stop, Verdict};
use gpumem_core::{Backend, Barrier, Element, LaunchConfig};
use gpumem_host::{Host, HostOptions};
use gpumem_kernel::{Kernel, KernelDef, Slice, SliceMut};
use gpumem_runtime::Device;
use std::fmt::Debug;

/// The parameters of every probe: elements to read, and elements to write.
type Parameters<P> = (Slice<<P as Probe>::In>, SliceMut<<P as Probe>::Out>);

/// A kernel that uses one part of the prelude, and its expected result.
trait Probe: 'static {
    /// An element of the input.
    type In: Element;
    /// An element of the output.
    type Out: Element + Debug;

    /// The sizes of the launches.
    fn launches() -> Vec<LaunchConfig> {
        [[7, 5, 3], [64, 1, 1], [1, 1, 1], [33, 2, 1], [256, 1, 1]].map(one_group).into()
    }

    /// The kernel.
    fn declaration() -> KernelDef<Parameters<Self>>
    where
        Self: Sized;

    /// The input of a launch.
    fn input(items: usize) -> Vec<Self::In>;

    /// The output before the launch.
    fn before(items: usize) -> Vec<Self::Out>;

    /// The output after it, on a device with waves of that size.
    fn after(input: &[Self::In], dims: &LaunchConfig, wave: usize) -> Vec<Self::Out>;

    /// Removes differences between right answers, such as the order of atomic operations.
    fn normalise(output: &mut [Self::Out]) {
        let _ = output;
    }
}

/// One group of that size.
fn one_group(group_size: [u32; 3]) -> LaunchConfig {
    LaunchConfig { groups: [1; 3], group_size, shared_bytes: 0 }
}

/// Work-items of a launch.
fn items_of(dims: &LaunchConfig) -> usize {
    dims.groups.iter().chain(&dims.group_size).map(|length| *length as usize).product()
}

/// Reproducible numbers without a pattern.
fn random(count: usize) -> impl Iterator<Item = u64> {
    (1..=count as u64).map(|at| {
        let mixed = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 27)
    })
}

pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    let mut cases = groups::cases();
    cases.extend(waves::cases());
    cases.extend(atomics::cases());
    cases.extend(numbers::cases());
    cases
}

/// The case of a probe, which has its kernel's name.
fn case<P: Probe, B: Backend>() -> Case<B> {
    let name = format!("prelude_{}", P::declaration().name());
    Case::new(Level::Kernel, &name, everywhere::<P, B>)
}

fn everywhere<P: Probe, B: Backend>(lab: &Lab<B>) -> Verdict {
    for wave in [32, 64] {
        let device = Device::<Host>::from_raw(Host::open_with(&HostOptions::new().wave_size(wave))?);
        let kernel = P::declaration().race_checks(true).load(&device)?;
        answers::<P, _>(&kernel, &device, &format!("the body in waves of {wave}"))?;
    }
    let kernel = load(lab, &P::declaration())?;
    answers::<P, _>(&kernel, lab.device(), "the device under test")
}

fn answers<P: Probe, B: Backend>(
    kernel: &Kernel<Parameters<P>, B>,
    device: &Device<B>,
    what: &str,
) -> Verdict {
    let wave = device.barrier().wave_size() as usize;
    let stream = device.stream()?;
    for dims in P::launches() {
        let items = items_of(&dims);
        let input = P::input(items);
        let x = stream.to_device(&input)?;
        let mut y = stream.to_device(&P::before(items))?;
        kernel.launch(&stream, &dims, (&x, &mut y))?;
        let mut found = stream.copy_to_host(&y)?.view()?.to_vec();
        let mut expected = P::after(&input, &dims, wave);
        P::normalise(&mut found);
        P::normalise(&mut expected);
        assert_eq!(found.len(), expected.len(), "the probe itself");
        let pairs = found.iter().zip(&expected);
        let differs =
            |(found, expected): (&P::Out, &P::Out)| bytemuck::bytes_of(found) != bytemuck::bytes_of(expected);
        let wrong: Vec<usize> =
            pairs.enumerate().filter(|(_, pair)| differs(*pair)).map(|(at, _)| at).collect();
        if let Some(at) = wrong.first() {
            return Err(Stop::Failed(format!(
                "{what}: {dims:?}: {} of {} elements differ; {at} is {:?} where {:?} is right",
                wrong.len(),
                found.len(),
                found[*at],
                expected[*at]
            )));
        }
    }
    Ok(())
}
