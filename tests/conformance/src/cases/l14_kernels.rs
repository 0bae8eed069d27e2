//! Graphs of kernels: those that ship, and large numbers, many arguments and long chains of them.

use super::tools::{elements, fail, load, same};
use crate::{Case, Lab, Level, Verdict};
use gpumem_core::{Backend, LaunchConfig, Result};
use gpumem_kernel::{Constant, Kernel, Own, OwnView, Slice, Value, config_for_items};
use gpumem_kernel_suite::{ShippedKernel, Visitor, visit};
use gpumem_runtime::{reads, writes};
use ndarray::{Array1, Array2, s};
use std::thread;

/// A graph of each kernel that ships, and the others.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    struct Cases<B: Backend>(Vec<Case<B>>);
    impl<B: Backend> Visitor for Cases<B> {
        fn visit<K: ShippedKernel>(&mut self) {
            let name = format!("{}_is_recorded", K::declaration().name().trim_end_matches('_'));
            self.0.push(Case::new(Level::Graphs, &name, is_recorded::<K, B>));
        }
    }
    let mut shipped = Cases(Vec::new());
    visit(&mut shipped);
    let own = [
        Case::new(Level::Graphs, "records_of_960_bytes_are_numbers", records_of_960_bytes_are_numbers),
        Case::new(Level::Graphs, "constants_of_a_launch_are_kept", constants_of_a_launch_are_kept),
        Case::new(Level::Graphs, "eighty_arguments_are_bound", eighty_arguments_are_bound),
        Case::new(Level::Graphs, "written_arguments_have_any_layout", written_arguments_have_any_layout),
        Case::new(Level::Graphs, "chains_of_any_length", chains_of_any_length),
        Case::new(Level::Graphs, "one_kernel_in_two_graphs", one_kernel_in_two_graphs),
        Case::new(
            Level::Graphs,
            "many_readers_on_streams_of_their_own",
            many_readers_on_streams_of_their_own,
        ),
        Case::new(Level::Graphs, "eight_threads_launch_one_graph", eight_threads_launch_one_graph),
    ];
    shipped.0.into_iter().chain(own).collect()
}

/// All problems of a kernel in one graph, with their inputs.
fn is_recorded<K: ShippedKernel, B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel) = (lab.device(), load(lab, &K::declaration())?);
    let (stream, problems) = (device.stream()?, K::problems());
    let graph = device.record((), |stream, ()| {
        problems.iter().map(|problem| K::enqueue(&kernel, stream, problem)).collect::<Result<Vec<_>>>()
    })?;
    assert!(graph.report().launches > 0);
    for _ in 0..if lab.is_slow() { 1 } else { 2 } {
        for (problem, found) in problems.iter().zip(graph.launch(&stream, ())?) {
            let found: Vec<_> = found.view()?.iter().copied().collect();
            let right = K::reference(problem);
            if bytemuck::cast_slice::<_, u8>(&found) != bytemuck::cast_slice::<_, u8>(&right) {
                return fail(format!("{problem:?}: {found:?} where {right:?} is right"));
            }
        }
    }
    Ok(())
}

/// As many bytes as a launch of a kernel may have, nearly.
#[derive(Debug, Clone, Copy, gpumem_macros::DeviceRecord)]
#[gpumem(crate = gpumem_kernel_suite)]
#[repr(C)]
struct Wide {
    numbers: [[u32; 16]; 15],
}

#[gpumem_macros::kernel(crate = gpumem_kernel_suite)]
fn put_wide(wide: Value<Wide>, y: Own<u32>) {
    let at = global_id(0);
    if at < y.len() {
        y[own()] = wide.numbers[at / 16][at % 16];
    }
}

#[gpumem_macros::kernel(crate = gpumem_kernel_suite)]
fn put_constants(constants: Constant<u32, 900>, y: Own<u32>) {
    let at = global_id(0);
    if at < y.len() {
        y[own()] = constants[at] + y[own()];
    }
}

#[gpumem_macros::kernel(crate = gpumem_kernel_suite)]
fn multiply_add(a: u32, x: Slice<u32>, y: Own<u32>) {
    let at = global_id(0);
    if at < x.len() {
        y[own()] = a * x[at] + y[own()];
    }
}

#[gpumem_macros::kernel(crate = gpumem_kernel_suite)]
fn follow(a: u32, x: Slice<u32>, y: Own<u32>) {
    let at = global_id(0);
    if at < x.len() {
        y[own()] = (3 * x[at] + y[own()] + a) % 1009;
    }
}

#[gpumem_macros::kernel(crate = gpumem_kernel_suite)]
fn scale_view(y: OwnView<u32, 1>, a: u32) {
    let at = own();
    if at[0] < y.extent(0) {
        y[at] = a * y[at] + 1;
    }
}

type MultiplyAdd<B> = Kernel<(u32, Slice<u32>, Own<u32>), B>;

const LEN: usize = 100;

fn grid(len: usize) -> LaunchConfig {
    config_for_items([len, 1, 1], [64, 1, 1])
}

fn wide(first: u32) -> Wide {
    Wide { numbers: std::array::from_fn(|row| std::array::from_fn(|at| first + (16 * row + at) as u32)) }
}

fn records_of_960_bytes_are_numbers<B: Backend>(lab: &Lab<B>) -> Verdict {
    assert_eq!(size_of::<Wide>(), 960);
    let (device, kernel) = (lab.device(), load(lab, &put_wide())?);
    let stream = device.stream()?;
    let like = (writes::<u32, _>(240), writes::<u32, _>(240), Value(wide(0)));
    let graph = device.record(like, |stream, (mut y, mut z, number)| {
        kernel.launch(stream, &grid(240), (number, &mut y))?;
        kernel.launch(stream, &grid(240), (Value(wide(7)), &mut z))
    })?;
    let (mut y, mut z) = (device.device_array::<u32, _>(240)?, device.device_array::<u32, _>(240)?);
    for first in [1, 1, 1_000_000, 5] {
        graph.launch(&stream, (&mut y, &mut z, Value(wide(first))))?;
        same(y.copy_to_host()?.view(), Array1::from_iter(first..first + 240).view());
        same(z.copy_to_host()?.view(), Array1::from_iter(7..247).view());
    }
    Ok(())
}

/// Those that a launch has as arguments, and those of the host that it uploads.
fn constants_of_a_launch_are_kept<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel) = (lab.device(), load(lab, &put_constants())?);
    let stream = device.stream()?;
    let graph = device.record((), |stream, ()| {
        let mut y = stream.to_device(&elements::<u32>(1024))?;
        for first in [0, 1000] {
            let constants = Constant(std::array::from_fn(|at| (first + at) as u32));
            kernel.launch(stream, &grid(900), (constants, &mut y.slice_mut(s![..900])?))?;
        }
        stream.copy_to_host(&y)
    })?;
    assert_eq!(graph.report().constant_bytes, 4096);
    let mut expected = Array1::from(elements::<u32>(1024));
    let sums = (0..900).map(|at| 2 * at + 1000);
    expected.iter_mut().zip(sums).for_each(|(element, sum)| *element = element.wrapping_add(sum));
    for _ in 0..3 {
        same(graph.launch(&stream, ())?.view()?, expected.view());
    }
    Ok(())
}

fn eighty_arguments_are_bound<B: Backend>(lab: &Lab<B>) -> Verdict {
    const COUNT: usize = 40;
    let (device, kernel) = (lab.device(), load::<_, B>(lab, &multiply_add())?);
    let stream = device.stream()?;
    let x: Vec<_> =
        (0..COUNT as u32).map(|number| device.to_device(&[number; LEN])).collect::<Result<_>>()?;
    let mut y = device.to_device(&[0u32; LEN])?;
    let like = (x.iter().collect::<Vec<_>>(), &mut y, vec![0u32; COUNT]);
    let graph = device.record(like, |stream, (x, mut y, numbers)| {
        x.iter().zip(&numbers).try_for_each(|(x, a)| kernel.launch(stream, &grid(LEN), (a, x, &mut y)))
    })?;
    let mut sum = 0;
    for round in 0..4 {
        let numbers: Vec<u32> = (0..COUNT as u32).map(|at| at * at + round).collect();
        sum += numbers.iter().zip(0..).map(|(number, at)| number * at).sum::<u32>();
        graph.launch(&stream, (x.iter().collect::<Vec<_>>(), &mut y, numbers))?;
    }
    same(y.copy_to_host()?.view(), Array1::from_elem(LEN, sum).view());
    Ok(())
}

fn written_arguments_have_any_layout<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel) = (lab.device(), load(lab, &scale_view())?);
    let stream = device.stream()?;
    let mut expected = Array2::from_shape_fn((LEN, 4), |(row, column)| (10 * row + column) as u32);
    let mut table = device.to_device(&expected)?;
    // A column, and every third element of another one from the last to the first.
    for (column, step) in [(1, 1), (2, -3)] {
        let part = s![..;step, column];
        let graph = device.record((&mut table.slice_mut(part)?, 0u32), |stream, (mut y, a)| {
            kernel.launch(stream, &grid(LEN), (&mut y, a))?;
            kernel.launch(stream, &grid(LEN), (&mut y.slice_mut(s![..10])?, 3))
        })?;
        for a in [2, 5] {
            graph.launch(&stream, (&mut table.slice_mut(part)?, a))?;
            let mut expected = expected.slice_mut(part);
            expected.mapv_inplace(|value| a * value + 1);
            expected.slice_mut(s![..10]).mapv_inplace(|value| 3 * value + 1);
        }
    }
    same(table.copy_to_host()?.view(), expected.view());
    Ok(())
}

fn chains_of_any_length<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel) = (lab.device(), load(lab, &follow())?);
    let stream = device.stream()?;
    for len in if lab.is_slow() { [1, 2, 64] } else { [1, 64, 1024] } {
        let mut y = device.to_device(&Array1::from_iter(0..LEN as u32))?;
        let graph = device.record((&mut y,), |stream, (mut y,)| {
            let mut between = stream.to_device(&y)?;
            // Each needs what the one before has written.
            (0..len).try_for_each(|at| match at % 2 {
                0 => kernel.launch(stream, &grid(LEN), (at, &y, &mut between)),
                _ => kernel.launch(stream, &grid(LEN), (at, &between, &mut y)),
            })?;
            stream.copy_to_device(&mut y, &between)
        })?;
        assert_eq!(graph.report().launches, len as usize);
        let mut expected = Array1::from_iter(0..LEN as u32);
        for _ in 0..2 {
            graph.launch(&stream, (&mut y,))?;
            let mut between = expected.clone();
            for at in 0..len {
                let (from, to) =
                    if at % 2 == 0 { (&expected, &mut between) } else { (&between, &mut expected) };
                to.zip_mut_with(from, |y, x| *y = (3 * x + *y + at) % 1009);
            }
            expected = between;
        }
        same(y.copy_to_host()?.view(), expected.view());
    }
    Ok(())
}

/// Each has launches of addresses and numbers of its own, and they run in turn, without a wait.
fn one_kernel_in_two_graphs<B: Backend>(lab: &Lab<B>) -> Verdict {
    const LAUNCHES: usize = 160;
    let (device, kernel) = (lab.device(), load::<_, B>(lab, &multiply_add())?);
    let streams = [device.stream()?, device.stream()?];
    let host = Array1::from(elements::<u32>(LAUNCHES + 4)).mapv(|value| value % 1000);
    let x = device.to_device(&host)?;
    let graph = |factor: u32| {
        let like = (reads::<u32, _>(LAUNCHES + 4), writes::<u32, _>(4 * LAUNCHES), 0u32);
        device.record(like, |stream, (x, mut y, number)| {
            for at in 0..LAUNCHES {
                let (from, mut to) = (x.slice(s![at..at + 4])?, y.slice_mut(s![4 * at..4 * at + 4])?);
                kernel.launch(stream, &grid(4), (factor * at as u32, &from, &mut to))?;
                if at % 40 == 7 {
                    kernel.launch(stream, &grid(4), (&number, &from, &mut to))?;
                }
            }
            Ok(())
        })
    };
    let graphs = [graph(1)?, graph(100)?];
    let mut found = [device.to_device(&[0u32; 4 * LAUNCHES])?, device.to_device(&[0u32; 4 * LAUNCHES])?];
    for number in 1..4u32 {
        for ((graph, stream), y) in graphs.iter().zip(&streams).zip(&mut found) {
            graph.launch(stream, (&x, y, number))?;
        }
    }
    for (found, factor) in found.iter().zip([1, 100]) {
        let expected = Array1::from_shape_fn(4 * LAUNCHES, |place| {
            let at = place / 4;
            let numbers = if at % 40 == 7 { 6 } else { 0 };
            (3 * factor * at as u32 + numbers) * host[at + place % 4]
        });
        same(found.copy_to_host()?.view(), expected.view());
    }
    Ok(())
}

/// More streams than a graph runs side by side.
fn many_readers_on_streams_of_their_own<B: Backend>(lab: &Lab<B>) -> Verdict {
    const READERS: usize = 17;
    let (device, kernel) = (lab.device(), load::<_, B>(lab, &multiply_add())?);
    let stream = device.stream()?;
    let like = (writes::<u32, _>(LEN), vec![writes::<u32, _>(LEN); READERS], writes::<u32, _>(LEN));
    let graph = device.record(like, |stream, (mut x, mut before, mut after)| {
        for (y, number) in before.iter_mut().zip(1..) {
            kernel.launch(&stream.device().stream()?, &grid(LEN), (number, &x, y))?;
        }
        stream.fill(&mut x, 7)?;
        kernel.launch(&stream.device().stream()?, &grid(LEN), (1, &x, &mut after))
    })?;
    assert_eq!(graph.report().nodes, READERS + 2);
    let mut x = device.device_array::<u32, _>(LEN)?;
    let zeros = || device.to_device(&[0u32; LEN]);
    let (mut before, mut after) = ((0..READERS).map(|_| zeros()).collect::<Result<Vec<_>>>()?, zeros()?);
    for round in 1..4 {
        stream.fill(&mut x, 100)?;
        graph.launch(&stream, (&mut x, before.iter_mut().collect::<Vec<_>>(), &mut after))?;
        for (y, number) in before.iter().zip(1..) {
            same(y.copy_to_host()?.view(), Array1::from_elem(LEN, round * number * 100).view());
        }
        same(after.copy_to_host()?.view(), Array1::from_elem(LEN, round * 7).view());
    }
    Ok(())
}

fn eight_threads_launch_one_graph<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel): (_, MultiplyAdd<B>) = (lab.device(), load(lab, &multiply_add())?);
    let graph = device.record((reads::<u32, _>(LEN), 0u32), |stream, (x, a)| {
        // In memory that all launches share.
        let mut inside = stream.to_device(&x)?;
        kernel.launch(stream, &grid(LEN), (a, &x, &mut inside))?;
        stream.copy_to_host(&inside.slice(s![..;-1])?)
    })?;
    assert!(graph.report().arena_bytes > 0);
    let rounds = if lab.is_slow() { 3 } else { 10 };
    let run = |thread: u32| -> Result<()> {
        let (stream, numbers) = (device.stream()?, Array1::from_iter(thread..thread + LEN as u32));
        let x = device.to_device(&numbers)?;
        let mut all = Vec::new();
        for round in 0..rounds {
            all.push((round, graph.launch(&stream, (&x, 10 * thread + round))?));
        }
        for (round, found) in all {
            same(found.view()?, (&numbers * (10 * thread + round + 1)).slice(s![..;-1]));
        }
        Ok(())
    };
    let run = &run;
    thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|thread| scope.spawn(move || run(thread))).collect();
        all.into_iter()
            .try_for_each(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    Ok(())
}
