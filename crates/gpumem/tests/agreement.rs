//! All forms of a kernel give the same, or the test of one line says which do not.
#![allow(clippy::unwrap_used)] // helpers of tests
#![cfg(feature = "host")]

use gpumem::{
    ErrorKind, agreement,
    kernel::{In, InOut, KernelDef, Parameters, WorkItem, config_for_items, prelude::*},
};

/// Sums of pairs, by a neighbour through shared memory.
// SAFETY: a barrier separates the writes and reads of shared memory, and each work-item writes its own element.
#[gpumem::kernel(unsafe)]
fn pairs(y: SliceMut<u32>) {
    let tile = shared::<u32>([64]);
    tile[local_id(0)] = y[global_id(0)];
    barrier(Local);
    y[global_id(0)] += tile[local_id(0) ^ 1];
}

#[gpumem::kernel]
fn waves(y: Own<u32>) {
    y[own()] = wave_size() as u32;
}

/// As [`pairs`], without the barrier.
// SAFETY: it is to race.
#[gpumem::kernel(unsafe)]
fn racing(y: SliceMut<u32>) {
    let tile = shared::<u32>([64]);
    tile[local_id(0)] = y[global_id(0)];
    y[global_id(0)] += tile[local_id(0) ^ 1];
}

fn numbers<P: Parameters>(declaration: &KernelDef<P>) -> gpumem::Result<Vec<u32>>
where
    for<'a> (InOut<&'a mut Vec<u32>>,): gpumem::kernel::Arguments<P, gpumem::AnyBackend>,
{
    agreement(declaration, |kernel, stream| {
        let mut y: Vec<u32> = (0..128).collect();
        kernel.launch(stream, &config_for_items(128, 64), (InOut(&mut y),)).map(|()| y)
    })
}

#[test]
fn agreeing_forms_return_the_answer() {
    let expected: Vec<u32> = (0..128).map(|i| i + (i ^ 1)).collect();
    assert_eq!(numbers(&pairs()).unwrap(), expected);
}

#[test]
#[should_panic(expected = "on the host in waves of 64")]
fn results_that_depend_on_the_wave_size_do_not_agree() {
    numbers(&waves()).unwrap();
}

#[test]
#[should_panic(expected = "on the host in waves of 32, in check mode")]
fn two_bodies_that_differ_do_not_agree() {
    // SAFETY: each work-item writes its own element.
    let planted = unsafe { KernelDef::<(SliceMut<u32>,)>::new("planted") };
    // Gives another number in each form, as a split body with a mistake would.
    let count = std::sync::atomic::AtomicU32::new(0);
    let body = async move |item: WorkItem<'_>, (y,): &(SliceMut<u32>,)| {
        let last = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        y.set(item.global_id(0), last / 128);
    };
    numbers(&planted.host_body(body)).unwrap();
}

#[test]
fn a_race_is_an_error() {
    let error = numbers(&racing()).unwrap_err();
    let is_fault = matches!(error.kind(), ErrorKind::AsynchronousFault { .. } | ErrorKind::Poisoned { .. });
    assert!(is_fault && error.to_string().contains("shared memory"), "{error}");
}

#[gpumem::kernel]
fn roots(x: Slice<f32>, y: Own<f32>) {
    y[own()] = x[global_id(0)].sqrt();
}

#[test]
fn not_a_number_agrees_with_itself() {
    let x = [4.0f32, -1.0];
    let y = agreement(&roots(), |kernel, stream| {
        let mut y = vec![0.0; 2];
        kernel.launch(stream, &config_for_items(2, 2), (In(&x), InOut(&mut y))).map(|()| y)
    });
    let y = y.unwrap();
    assert!(y[0] == 2.0 && y[1].is_nan());
}

/// Differs from the host in waves of 32 at one place, beside a NaN.
#[gpumem::kernel]
fn one_of_many(y: Own<f32>) {
    y[own()] = 0.5;
    if global_id(0) == 600 {
        y[own()] = wave_size() as f32;
    }
    if global_id(0) == 3 {
        y[own()] = f32::NAN;
    }
}

#[test]
#[should_panic(
    expected = "gives 32.0 on the host in waves of 32, and 64.0 on the host in waves of 64, in check mode: value [600] of \
                           the answer is the first that differs"
)]
fn the_first_difference_is_told() {
    let _ = agreement(&one_of_many(), |kernel, stream| {
        let mut y = gpumem::ndarray::Array1::<f32>::zeros(704);
        kernel.launch(stream, &config_for_items(704, 64), (InOut(&mut y),)).map(|()| y)
    });
}
