//! Kernels on a simulated GPU, and the failure if it, the host's body and the reference disagree.

use crate::alone;
use gpumem_conformance::{Case, RanOn, Report, Selection, Suite, all};
use gpumem_core::{Backend, Result};
use gpumem_host::Host;
use gpumem_kernel::{Entry, Kernel, KernelDef, WorkItemIds};
use gpumem_kernel_suite::{Saxpy, Shipped, ShippedKernel, saxpy};
use gpumem_runtime::{Device, PinnedArray, Stream};
use host_double::{Programs, ThirdParty, ThirdPartyDevice};
use ndarray::Ix1;

type Gpu = ThirdParty;

/// The suite's cases of kernels, or these, on a GPU that has been given these bodies for the sources.
fn run(wave_size: u32, bodies: Vec<(String, Entry)>, cases: Option<Vec<Case<Gpu>>>) -> Report {
    let _alone = alone();
    let body = |(name, entry): (String, Entry)| (name, entry.function().clone());
    let programs: Programs = bodies.into_iter().map(body).collect();
    let suite = Suite::<Gpu>::new("double", RanOn::Host)
        .open_with(move |_| ThirdPartyDevice::gpu(wave_size, programs.clone()).map(Device::from_raw));
    let suite = if let Some(cases) = cases { suite.cases(cases) } else { suite };
    let filters =
        gpumem_kernel_suite::all().iter().map(|kernel| format!("12_kernel::{}", kernel.name)).collect();
    suite.run(&Selection { filters, exact: true, ..Selection::default() }, |_, _| {})
}

/// The kernels as a correct compiler translates them.
fn compiled(wave_size: u32) -> Vec<(String, Entry)> {
    let body = |kernel: Shipped| (kernel.name.clone(), kernel.entry(wave_size, 48 << 10, false).unwrap());
    gpumem_kernel_suite::all().into_iter().map(body).collect()
}

#[test]
fn every_kernel_that_ships_has_a_case_and_agrees_on_a_gpu_of_either_wave_size() {
    let names: Vec<_> = gpumem_kernel_suite::all().iter().map(|kernel| kernel.name.clone()).collect();
    assert_eq!(names.len(), 11, "{names:?}");
    for wave_size in [32, 64] {
        let report = run(wave_size, compiled(wave_size), None);
        assert_eq!(report.failures, [""; 0], "waves of {wave_size}");
        let passed: Vec<_> =
            report.outcomes.iter().map(|(name, _)| name.replace("12_kernel::", "")).collect();
        assert_eq!((passed, report.passed), (names.clone(), names.len()));
    }
}

#[test]
fn a_device_source_that_computes_something_else_fails() {
    // SAFETY: each work-item uses its own elements.
    let other = unsafe { KernelDef::<saxpy::Parameters>::new("saxpy_") }.host_loop(
        |ids: &WorkItemIds<'_>, (x, y, a): &saxpy::Parameters| {
            let i = ids.global_id(0);
            // Off by one, and in the last group only.
            let factor = if i > 4990 { a + 1.0 } else { *a };
            if i < y.len() {
                y.set(ids.own(), factor * x.get(i) + y.get(ids.own()));
            }
        },
    );
    let mut bodies = compiled(32);
    bodies.retain(|(name, _)| name != "saxpy_");
    bodies.push(("saxpy_".to_owned(), other.entry(32, 48 << 10).unwrap()));
    let report = run(32, bodies, None);
    assert_eq!((report.failed, report.passed), (1, 10), "{:?}", report.failures);
    let failure = &report.failures[0];
    assert!(failure.starts_with("12_kernel::saxpy"), "{failure}");
    assert!(failure.contains("the device under test and the host's body disagree"), "{failure}");
    assert!(failure.contains("len: 5000") && failure.contains("element 4991"), "{failure}");
}

/// The shipped saxpy, with one part replaced.
macro_rules! planted {
    ($name:ident, $declaration:expr, $reference:expr, $problems:expr) => {
        struct $name;
        impl ShippedKernel for $name {
            type Parameters = saxpy::Parameters;
            type Problem = <Saxpy as ShippedKernel>::Problem;
            type Elem = f32;
            type Shape = Ix1;

            fn declaration() -> KernelDef<saxpy::Parameters> {
                $declaration
            }
            fn problems() -> Vec<Self::Problem> {
                $problems
            }
            fn reference(problem: &Self::Problem) -> Vec<f32> {
                $reference(Saxpy::reference(problem))
            }
            fn enqueue<B: Backend>(
                kernel: &Kernel<saxpy::Parameters, B>,
                stream: &Stream<B>,
                problem: &Self::Problem,
            ) -> Result<PinnedArray<f32, Ix1, B>> {
                Saxpy::enqueue(kernel, stream, problem)
            }
        }
    };
}

/// A kernel with no other body: one without `unsafe` takes no other.
fn with_body(
    body: impl Fn(&WorkItemIds<'_>, &saxpy::Parameters) + Send + Sync + 'static,
) -> KernelDef<saxpy::Parameters> {
    // SAFETY: each work-item uses its own elements.
    unsafe { KernelDef::new("saxpy_") }.host_loop(body)
}

planted!(WrongBody, with_body(|_, _| {}), |right| right, Saxpy::problems());
planted!(
    WrongReference,
    saxpy::saxpy(),
    |mut right: Vec<f32>| {
        right.pop();
        right
    },
    Saxpy::problems()
);
planted!(NoProblems, saxpy::saxpy(), |right| right, Vec::new());
planted!(
    PastTheEnd,
    with_body(|ids, (x, y, _)| y.set(ids.own(), x.get(ids.global_id(0)))),
    |right| right,
    Saxpy::problems()
);

fn only<K: ShippedKernel>() -> String {
    let report = run(32, compiled(32), Some(vec![Case::kernel::<K>()]));
    assert_eq!((report.passed, report.failed), (0, 1));
    report.failures[0].clone()
}

#[test]
fn a_host_body_or_a_reference_that_is_wrong_fails_on_every_device() {
    let told = only::<WrongBody>();
    assert!(told.contains("the host's body in waves of 32 and the plain reference disagree"), "{told}");
    let told = only::<WrongReference>();
    assert!(told.contains("elements where") && told.contains("len: 1,"), "{told}");
    let told = only::<NoProblems>();
    assert!(told.contains("without problems"), "{told}");
    let told = only::<PastTheEnd>();
    assert!(told.contains("work-item (0, 0, 0) of group (0, 0, 0)") && told.contains("index [0]"), "{told}");
}

#[test]
fn every_shipped_kernel_is_compared() {
    let compared: Vec<_> =
        all::<Host>().into_iter().filter(Case::compares_kernel).map(|case| case.name).collect();
    let shipped: Vec<_> =
        gpumem_kernel_suite::all().iter().map(|kernel| format!("12_kernel::{}", kernel.name)).collect();
    assert_eq!(compared, shipped);
}
