//! Random bodies on several streams.

use super::{LEN, MultiplyAdd, device, grid, multiply_add};
use gpumem_core::Result;
use gpumem_runtime::{DeviceArray, DeviceViewMut, Stream, Varying, writes};
use host_double::Double;
use ndarray::Ix1;

type Array = DeviceArray<i64, Ix1, Double>;
type View<'a> = DeviceViewMut<'a, i64, Ix1, Double>;

const STREAMS: usize = 4;
/// The first two are the arguments of the graph, the others are made in the body.
const ARRAYS: usize = 6;
const NUMBERS: usize = 3;

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

#[derive(Debug, Clone, Copy)]
enum Work {
    /// Makes an array of that number.
    Make(usize, i64),
    Drop(usize),
    Copy(usize, usize),
    /// With a number of each launch.
    MultiplyAdd(usize, usize, usize),
}

/// Each with its stream.
type Program = Vec<(usize, Work)>;

fn program(random: &mut Random) -> Program {
    let make = |_| {
        let (stream, inside) = (random.below(STREAMS), 2 + random.below(ARRAYS - 2));
        let from = random.below(ARRAYS);
        let to = (from + 1 + random.below(ARRAYS - 1)) % ARRAYS;
        let work = match random.below(8) {
            0 => Work::Drop(inside),
            1 | 2 => Work::Make(inside, random.below(9) as i64),
            3 => Work::Copy(from, to),
            _ => Work::MultiplyAdd(random.below(NUMBERS), from, to),
        };
        (stream, work)
    };
    (0..30).map(make).collect()
}

fn elements(number: i64) -> Vec<i64> {
    (0..LEN as i64).map(|at| (at + number) % 5).collect()
}

/// What the program does with the arguments. Returns the arrays that are left.
fn expected(program: &Program, arguments: [Vec<i64>; 2], numbers: &[i64]) -> Vec<Vec<i64>> {
    let mut all: Vec<_> = arguments.into_iter().map(Some).collect();
    all.resize(ARRAYS, None);
    for (_, work) in program {
        match *work {
            Work::Make(at, number) => all[at] = Some(elements(number)),
            Work::Drop(at) => all[at] = None,
            Work::Copy(from, to) | Work::MultiplyAdd(_, from, to) => {
                let (Some(x), Some(y)) = (all[from].clone(), &mut all[to]) else { continue };
                let a = if let Work::MultiplyAdd(number, ..) = work { numbers[*number] } else { 0 };
                let of = |(y, x): (&mut i64, i64)| {
                    *y = if let Work::Copy(..) = work { x } else { a.wrapping_mul(x).wrapping_add(*y) };
                };
                y.iter_mut().zip(x).for_each(of);
            }
        }
    }
    all.into_iter().flatten().collect()
}

/// Enqueues the program. Returns the arrays that are left.
fn body(
    program: &Program,
    kernel: &MultiplyAdd,
    first: &Stream<Double>,
    (mut x, mut y): (View<'_>, View<'_>),
    numbers: &[Varying<i64, Double>],
) -> Result<Vec<Array>> {
    let mut streams = vec![first.clone()];
    for _ in 1..STREAMS {
        streams.push(first.device().stream()?);
    }
    let mut inside: Vec<Option<Array>> = (2..ARRAYS).map(|_| None).collect();
    for (stream, work) in program {
        let stream = &streams[*stream];
        match *work {
            Work::Make(at, number) => inside[at - 2] = Some(stream.to_device(&elements(number))?),
            Work::Drop(at) => inside[at - 2] = None,
            Work::Copy(from, to) | Work::MultiplyAdd(_, from, to) => {
                let mut all = vec![Some(x.view_mut()), Some(y.view_mut())];
                all.extend(inside.iter_mut().map(|array| array.as_mut().map(|array| array.view_mut())));
                let (Some(x), Some(mut y)) = (all[from].take(), all[to].take()) else { continue };
                match work {
                    Work::MultiplyAdd(at, ..) => {
                        kernel.launch(stream, &grid(), (&numbers[*at], &x, &mut y))?
                    }
                    _ => stream.copy_to_device(&mut y, &x)?,
                }
            }
        }
    }
    Ok(inside.into_iter().flatten().collect())
}

#[test]
fn steps_that_need_each_other_run_in_order() {
    let (device, _) = device();
    let kernel = multiply_add().load(&device).unwrap();
    let stream = device.stream().unwrap();
    for seed in 0..100 {
        let mut random = Random(seed);
        let program = program(&mut random);
        let like = (writes::<i64, _>(LEN), writes::<i64, _>(LEN), vec![0_i64; NUMBERS]);
        let graph = device.record(like, |stream, (x, y, n)| body(&program, &kernel, stream, (x, y), &n));
        let graph = graph.unwrap();
        let (mut x, mut y) =
            (device.to_device(&elements(1)).unwrap(), device.to_device(&elements(2)).unwrap());
        let mut arguments = [elements(1), elements(2)];
        for round in 0..4 {
            let numbers = [round / 2, 1, -round];
            let results = graph.launch(&stream, (&mut x, &mut y, numbers.to_vec())).unwrap();
            let mut found = vec![x.copy_to_host().unwrap().to_vec(), y.copy_to_host().unwrap().to_vec()];
            found.extend(results.iter().map(|result| result.copy_to_host().unwrap().to_vec()));
            assert_eq!(found, expected(&program, arguments, &numbers), "seed {seed}: {program:?}");
            found.truncate(2);
            arguments = found.try_into().unwrap();
            // Small again.
            for (array, elements) in [&mut x, &mut y].into_iter().zip(&mut arguments) {
                elements.iter_mut().for_each(|element| *element %= 1000);
                array.copy_to_device(elements).unwrap();
            }
        }
        assert!(graph.report().replayed.is_none());
    }
}
