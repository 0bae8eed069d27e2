//! Every operation with every layout, element and number of ranks gives ndarray's answer.

use crate::common::*;
use bytemuck::{Pod, Zeroable};
use gpumem_collectives::{Average, InPlace, Max, Min, Product, Reduction, Sum};
use gpumem_core::Element;
use gpumem_runtime::{DeviceArray, DeviceView, DeviceViewMut};
use half::{bf16, f16};
use ndarray::{Array2, Axis, Ix2, ShapeBuilder, SliceInfo, SliceInfoElem, concatenate, s};
use num_complex::Complex;
use std::{fmt::Debug, thread};

/// How the elements of a test lie in memory.
#[derive(Debug, Clone, Copy)]
enum Way {
    Packed,
    ColumnMajor,
    Reversed,
    EverySecondColumn,
}

const WAYS: [Way; 4] = [Way::Packed, Way::ColumnMajor, Way::Reversed, Way::EverySecondColumn];

/// An array with a view of its elements, and other elements between them.
struct Laid<T: Element> {
    base: DeviceArray<T, Ix2, B>,
    slice: SliceInfo<[SliceInfoElem; 2], Ix2, Ix2>,
    before: Array2<T>,
}

impl<T: Element + PartialEq + Debug> Laid<T> {
    fn new(stream: &Stream, way: Way, values: &Array2<T>, between: T) -> Self {
        let (rows, columns) = values.dim();
        let all = s![.., ..];
        let (base, slice) = match way {
            Way::Packed => (values.clone(), all),
            Way::ColumnMajor => {
                let mut base = Array2::from_elem((rows, columns).f(), between);
                base.assign(values);
                (base, all)
            }
            Way::Reversed => (values.slice(s![..;-1, ..;-1]).to_owned(), s![..;-1, ..;-1]),
            Way::EverySecondColumn => {
                let mut base = Array2::from_elem((rows, 2 * columns), between);
                base.slice_mut(s![.., ..;2]).assign(values);
                (base, s![.., ..;2])
            }
        };
        Self { base: stream.to_device(&base).unwrap(), slice, before: base }
    }

    fn view(&self) -> DeviceView<'_, T, Ix2, B> {
        self.base.slice(self.slice).unwrap()
    }

    fn view_mut(&mut self) -> DeviceViewMut<'_, T, Ix2, B> {
        self.base.slice_mut(self.slice).unwrap()
    }

    /// Checks the elements, and that those between them are as before.
    fn check(self, expected: &Array2<T>, what: &str) {
        let Self { base, slice, before: mut all } = self;
        all.slice_mut(slice).assign(expected);
        assert_eq!(base.copy_to_host().unwrap(), all, "{what}");
    }
}

struct Case<T> {
    ranks: usize,
    all: Vec<(Comm, Stream)>,
    way: Way,
    seed: Option<u64>,
    value: fn(usize) -> T,
}

impl<T: Element + PartialEq + Debug> Case<T> {
    /// The elements of each rank.
    fn values(&self, shape: (usize, usize)) -> Vec<Array2<T>> {
        let (rows, columns) = shape;
        let of = |rank: usize| {
            let at = |(row, column): (usize, usize)| (self.value)(rank + 1 + 3 * row + 5 * column);
            Array2::from_shape_fn((rows, columns), at)
        };
        (0..self.ranks).map(of).collect()
    }

    fn zeros(&self, shape: (usize, usize)) -> Vec<Array2<T>> {
        vec![Array2::from_elem(shape, T::zeroed()); self.ranks]
    }

    /// Calls an operation on every rank, each with a source and a destination, and checks the destinations.
    fn check(
        &self,
        what: &str,
        sources: &[Array2<T>],
        destinations: &[Array2<T>],
        expected: &[Array2<T>],
        call: impl Fn(&Comm, &Stream, &Laid<T>, &mut Laid<T>) -> gpumem_core::Result<()>,
    ) {
        let mut ends = Vec::new();
        for (comm, stream) in &self.all {
            let rank = comm.rank();
            let source = Laid::new(stream, self.way, &sources[rank], (self.value)(7));
            let mut destination = Laid::new(stream, self.way, &destinations[rank], (self.value)(9));
            call(comm, stream, &source, &mut destination).unwrap();
            ends.push((rank, source, destination));
        }
        for (rank, source, destination) in ends {
            let what = format!("{what}, rank {rank} of {}, {:?}, {:?}", self.ranks, self.way, self.seed);
            destination.check(&expected[rank], &what);
            source.check(&sources[rank], &what);
        }
        for (comm, _) in &self.all {
            assert_eq!(comm.failure(), None);
        }
    }

    fn moves(&self) {
        let n = self.ranks;
        for shape in [(2, 3), (0, 3)] {
            let (own, none) = (self.values(shape), self.zeros(shape));
            let whole =
                concatenate(Axis(0), &own.iter().map(|array| array.view()).collect::<Vec<_>>()).unwrap();
            let wide = (shape.0 * n, shape.1);
            let all_none = self.zeros(wide);
            for root in [0, n - 1] {
                let mut expected = vec![own[root].clone(); n];
                self.check("broadcast", &own, &own, &expected, |comm, stream, _, to| {
                    comm.on(stream).broadcast(&mut to.view_mut(), root)
                });
                expected = all_none.clone();
                expected[root] = whole.clone();
                self.check("gather", &own, &all_none, &expected, |comm, stream, from, to| {
                    let destination = (comm.rank() == root).then(|| to.view_mut());
                    comm.on(stream).gather(&from.view(), destination, root)
                });
                let wholes = vec![whole.clone(); n];
                self.check("scatter", &wholes, &none, &own, |comm, stream, from, to| {
                    let source = (comm.rank() == root).then(|| from.view());
                    comm.on(stream).scatter(source, &mut to.view_mut(), root)
                });
            }
            let wholes = vec![whole.clone(); n];
            self.check("all_gather", &own, &all_none, &wholes, |comm, stream, from, to| {
                comm.on(stream).all_gather(&from.view(), &mut to.view_mut())
            });
            let mut in_place = all_none.clone();
            for (rank, array) in in_place.iter_mut().enumerate() {
                array.slice_mut(s![shape.0 * rank..shape.0 * (rank + 1), ..]).assign(&own[rank]);
            }
            self.check("all_gather in place", &own, &in_place, &wholes, |comm, stream, _, to| {
                comm.on(stream).all_gather(InPlace, &mut to.view_mut())
            });
            let sent = self.values(wide);
            let block = |array: &Array2<T>, rank: usize| {
                array.slice(s![shape.0 * rank..shape.0 * (rank + 1), ..]).to_owned()
            };
            let exchanged: Vec<Array2<T>> = (0..n)
                .map(|rank| {
                    let blocks: Vec<_> = sent.iter().map(|array| block(array, rank)).collect();
                    concatenate(Axis(0), &blocks.iter().map(|array| array.view()).collect::<Vec<_>>())
                        .unwrap()
                })
                .collect();
            self.check("all_to_all", &sent, &all_none, &exchanged, |comm, stream, from, to| {
                comm.on(stream).all_to_all(&from.view(), &mut to.view_mut())
            });
            self.check("send and receive", &own, &none, &rotated(&own), |comm, stream, from, to| {
                let (next, before) = ((comm.rank() + 1) % n, (comm.rank() + n - 1) % n);
                let (from, mut to) = (from.view(), to.view_mut());
                comm.group(stream, |group| {
                    group.send(&from, next)?;
                    group.receive(&mut to, before)
                })
            });
        }
        self.uneven();
    }

    /// Rank `i` sends `(i + j) % 3` rows to rank `j`.
    fn uneven(&self) {
        let (n, rows) = (self.ranks, |from: usize, to: usize| (from + to) % 3);
        let counts = |rank: usize| (0..n).map(|other| rows(rank, other)).collect::<Vec<_>>();
        let total = |rank: usize| counts(rank).iter().sum::<usize>();
        let sent: Vec<_> = (0..n).map(|rank| self.values((total(rank), 2)).swap_remove(rank)).collect();
        let none: Vec<_> = (0..n).map(|rank| Array2::from_elem((total(rank), 2), T::zeroed())).collect();
        let received: Vec<Array2<T>> = (0..n)
            .map(|to| {
                let blocks: Vec<_> = (0..n)
                    .map(|from| {
                        let start: usize = (0..to).map(|before| rows(from, before)).sum();
                        sent[from].slice(s![start..start + rows(from, to), ..])
                    })
                    .collect();
                concatenate(Axis(0), &blocks).unwrap()
            })
            .collect();
        self.check("all_to_all_v", &sent, &none, &received, |comm, stream, from, to| {
            let counts = counts(comm.rank());
            comm.on(stream).all_to_all_v((&from.view(), &counts), (&mut to.view_mut(), &counts))
        });
        // Rank 1 has no rows.
        let counts: Vec<usize> = (0..n).map(|rank| if rank == 1 { 0 } else { rank + 2 }).collect();
        let own: Vec<_> = counts.iter().map(|rows| self.values((*rows, 3))[rows % n].clone()).collect();
        let all = concatenate(Axis(0), &own.iter().map(|block| block.view()).collect::<Vec<_>>()).unwrap();
        self.check("all_gather_v", &own, &self.zeros(all.dim()), &vec![all; n], |comm, stream, from, to| {
            comm.on(stream).all_gather_v(&from.view(), (&mut to.view_mut(), &counts))
        });
    }

    fn computes<R: Reduction<T>>(&self, reduction: R, result: impl Fn(&[T]) -> T) {
        let n = self.ranks;
        for shape in [(2, 3), (0, 1), (40, 50)].into_iter().take(if n == 3 { 3 } else { 2 }) {
            let own = self.values(shape);
            let at = |arrays: &[Array2<T>], index: (usize, usize)| {
                result(&arrays.iter().map(|array| array[index]).collect::<Vec<_>>())
            };
            let total = Array2::from_shape_fn(shape, |index| at(&own, index));
            let (none, totals) = (self.zeros(shape), vec![total.clone(); n]);
            self.check("all_reduce", &own, &none, &totals, |comm, stream, from, to| {
                comm.on(stream).all_reduce(&from.view(), &mut to.view_mut(), reduction)
            });
            self.check("all_reduce in place", &own, &own, &totals, |comm, stream, _, to| {
                comm.on(stream).all_reduce(InPlace, &mut to.view_mut(), reduction)
            });
            let root = n / 2;
            let mut expected = none.clone();
            expected[root] = total.clone();
            self.check("reduce", &own, &none, &expected, |comm, stream, from, to| {
                let destination = (comm.rank() == root).then(|| to.view_mut());
                comm.on(stream).reduce(&from.view(), destination, reduction, root)
            });
            expected = own.clone();
            expected[root] = total;
            self.check("reduce in place", &own, &own, &expected, |comm, stream, _, to| {
                comm.on(stream).reduce(InPlace, Some(to.view_mut().view_mut()), reduction, root)
            });
            let wide = (shape.0 * n, shape.1);
            let blocks = self.values(wide);
            let total = Array2::from_shape_fn(wide, |index| at(&blocks, index));
            let own_block = |rank: usize| s![shape.0 * rank..shape.0 * (rank + 1), ..];
            let scattered: Vec<_> = (0..n).map(|rank| total.slice(own_block(rank)).to_owned()).collect();
            self.check("reduce_scatter", &blocks, &none, &scattered, |comm, stream, from, to| {
                comm.on(stream).reduce_scatter(&from.view(), &mut to.view_mut(), reduction)
            });
            let mut expected = blocks.clone();
            for (rank, array) in expected.iter_mut().enumerate() {
                array.slice_mut(own_block(rank)).assign(&scattered[rank]);
            }
            self.check("reduce_scatter in place", &blocks, &blocks, &expected, |comm, stream, _, to| {
                comm.on(stream).reduce_scatter(InPlace, &mut to.view_mut(), reduction)
            });
        }
    }
}

fn rotated<T: Clone>(all: &[T]) -> Vec<T> {
    let mut rotated = all.to_vec();
    rotated.rotate_right(1);
    rotated
}

fn each<T>(value: fn(usize) -> T, check: impl Fn(Case<T>)) {
    for ranks in counts().iter().copied() {
        for (index, way) in WAYS.into_iter().enumerate() {
            let seed = (ranks % 3 != 0).then_some((ranks * 10 + index) as u64);
            let all = self::ranks(ranks, seed);
            check(Case { ranks, all, way, seed, value });
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Particle {
    id: u32,
    mass: f32,
    tag: [u8; 4],
}

#[test]
fn records_are_moved() {
    let value = |n| Particle { id: n as u32, mass: n as f32 / 2.0, tag: [n as u8; 4] };
    each(value, |case| case.moves());
}

#[test]
fn numbers_are_moved() {
    each(|n| n as u8, |case| case.moves());
    each(|n| n as f64, |case| case.moves());
}

#[test]
fn sums_are_those_of_ndarray() {
    each(|n| n as f32, |case| case.computes(Sum, |all| all.iter().sum()));
    each(|n| n as f64, |case| case.computes(Sum, |all| all.iter().sum()));
    each(|n| n as i64, |case| case.computes(Sum, |all| all.iter().sum()));
    each(
        // Engines may add in another order: there every sum is exact.
        |n| bf16::from_f32(if adds_in_order() { n } else { n % 8 } as f32),
        |case| {
            case.computes(Sum, |all| all[1..].iter().fold(all[0], |sum, value| sum + value));
        },
    );
    each(|n| Complex::new(n as f32, -(n as f32)), |case| case.computes(Sum, |all| all.iter().sum()));
}

#[test]
fn other_reductions_are_those_of_rust() {
    each(
        |n| (n * 37 % 11) as i32,
        |case| {
            case.computes(Min, |all| *all.iter().min().unwrap());
            case.computes(Max, |all| *all.iter().max().unwrap());
        },
    );
    each(
        |n| n as u8,
        |case| {
            case.computes(Product, |all| all.iter().fold(1, |product, n| n.wrapping_mul(product)));
        },
    );
    each(|n| n as f32, |case| case.computes(Average, |all| all.iter().sum::<f32>() / all.len() as f32));
    each(
        |n| f16::from_f32(n as f32),
        |case| {
            case.computes(Max, |all| all.iter().copied().fold(all[0], f16::max));
        },
    );
}

#[test]
fn a_nan_is_left_out_of_the_smallest_value() {
    let mut all = Vec::new();
    for (comm, stream) in &ranks(2, None) {
        let mut array = stream.to_device(&[[f32::NAN, 1.0], [2.0, f32::NAN]][comm.rank()]).unwrap();
        comm.on(stream).all_reduce(InPlace, &mut array, Min).unwrap();
        all.push(array);
    }
    for smallest in all {
        assert_eq!(smallest.copy_to_host().unwrap().to_vec(), [2.0, 1.0]);
    }
}

#[test]
fn a_source_may_be_broadcast_and_have_no_axes() {
    for seed in seeds(4) {
        let mut sums = Vec::new();
        for (comm, stream) in &ranks(3, seed) {
            let row = stream.to_device(&[1, 2, comm.rank() as i32]).unwrap();
            let mut sum = stream.device_array::<i32, _>((4, 3)).unwrap();
            comm.on(stream).all_reduce(&row.broadcast((4, 3)).unwrap(), &mut sum, Sum).unwrap();
            let value = stream.to_device(&gpumem_runtime::Scalar(comm.rank() as f32)).unwrap();
            let mut values = stream.device_array::<f32, _>(3).unwrap();
            comm.on(stream).all_gather(&value, &mut values).unwrap();
            sums.push((sum, values));
        }
        for (sum, values) in sums {
            assert_eq!(sum.copy_to_host().unwrap(), Array2::from_shape_fn((4, 3), |(_, c)| [3, 6, 3][c]));
            assert_eq!(values.copy_to_host().unwrap().to_vec(), [0.0, 1.0, 2.0]);
        }
    }
}

#[test]
fn gathered_arrays_may_be_stacked() {
    let mut all = Vec::new();
    for (comm, stream) in &ranks(2, None) {
        let own = stream.to_device(&[comm.rank() as i32; 3]).unwrap();
        let mut stacked = stream.device_array::<i32, _>((2, 3)).unwrap();
        comm.on(stream).all_gather(&own, &mut stacked).unwrap();
        all.push(stacked);
    }
    for stacked in all {
        assert_eq!(stacked.copy_to_host().unwrap(), ndarray::array![[0, 0, 0], [1, 1, 1]]);
    }
}

#[test]
fn values_of_the_host_are_combined() {
    for count in counts() {
        thread::scope(|scope| {
            for (comm, stream) in ranks(*count, None) {
                scope.spawn(move || {
                    for round in 0..3 {
                        let sum = comm.all_reduce_scalar(&stream, (comm.rank() + round) as u64, Sum).unwrap();
                        assert_eq!(sum as usize, count * (count - 1) / 2 + count * round);
                    }
                    assert_eq!(
                        comm.all_reduce_scalar(&stream, comm.rank() as f32, Max).unwrap(),
                        *count as f32 - 1.0
                    );
                });
            }
        });
    }
}

#[test]
fn a_rank_sends_itself_in_a_group() {
    let all = ranks(2, Some(3));
    let Some((comm, stream)) = all.last() else { return };
    let source = stream.to_device(&[1, 2, 3]).unwrap();
    let mut destination = stream.device_array::<i32, _>((3, 1)).unwrap();
    comm.group(stream, |group| {
        group.receive(&mut destination, comm.rank())?;
        group.send(&source, comm.rank())
    })
    .unwrap();
    assert_eq!(destination.copy_to_host().unwrap(), ndarray::array![[1], [2], [3]]);
    // Alone it would wait for ever: it is refused at the call, before it counts.
    let called = comm.recent().len();
    let alone =
        [comm.on(stream).send(&source, comm.rank()), comm.on(stream).receive(&mut destination, comm.rank())];
    for refused in alone {
        assert!(matches!(refused.unwrap_err().kind(), gpumem_core::ErrorKind::InvalidArgument { .. }));
    }
    assert_eq!(comm.recent().len(), called);
}
