//! Every operation with every element and layout, and operations of several communicators.

use crate::ranks::{Comm, Rank};
use bytemuck::{Pod, Zeroable};
use gpumem::{
    DeviceArray, DeviceView, DeviceViewMut, Element, Stream,
    any::AnyBackend,
    collectives::{Average, Communicator, InPlace, Max, Min, Options, Product, Reduction, Sum},
    half::{bf16, f16},
    num_complex::Complex,
    s,
};
use ndarray::{Array, Array2, Dimension, Ix2, ShapeBuilder, SliceInfo, SliceInfoElem};
use std::fmt::Debug;

/// The elements, read on the rank's own stream: ranks that are threads share the device's.
fn read<T: Element, D: Dimension>(stream: &Stream, array: &DeviceArray<T, D>) -> Array<T, D> {
    stream.copy_to_host(array).unwrap().view().unwrap().to_owned()
}

/// How the elements lie in memory.
#[derive(Debug, Clone, Copy)]
enum Way {
    Packed,
    ColumnMajor,
    Reversed,
    EverySecondColumn,
}

const WAYS: [Way; 4] = [Way::Packed, Way::ColumnMajor, Way::Reversed, Way::EverySecondColumn];

/// An array of which some elements are used.
struct Laid<T: Element> {
    base: DeviceArray<T, Ix2>,
    part: SliceInfo<[SliceInfoElem; 2], Ix2, Ix2>,
    before: Array2<T>,
}

impl<T: Element + PartialEq + Debug> Laid<T> {
    fn new(stream: &Stream, way: Way, values: &Array2<T>) -> Self {
        let (rows, columns) = values.dim();
        let part = match way {
            Way::Packed | Way::ColumnMajor => s![.., ..],
            Way::Reversed => s![..;-1, ..;-1],
            Way::EverySecondColumn => s![.., ..;2],
        };
        let mut before = match way {
            Way::Packed | Way::Reversed => Array2::from_elem((rows, columns), T::zeroed()),
            Way::ColumnMajor => Array2::from_elem((rows, columns).f(), T::zeroed()),
            Way::EverySecondColumn => Array2::from_elem((rows, 2 * columns), T::zeroed()),
        };
        before.slice_mut(part).assign(values);
        Self { base: stream.to_device(&before).unwrap(), part, before }
    }

    fn view(&self) -> DeviceView<'_, T, Ix2> {
        self.base.slice(self.part).unwrap()
    }

    fn view_mut(&mut self) -> DeviceViewMut<'_, T, Ix2> {
        self.base.slice_mut(self.part).unwrap()
    }

    fn check(&self, stream: &Stream, expected: &Array2<T>, what: &str) {
        let mut all = self.before.clone();
        all.slice_mut(self.part).assign(expected);
        assert_eq!(read(stream, &self.base), all, "{what}");
    }
}

const ROWS: usize = 3;
const COLUMNS: usize = 50;

/// The operations of one element type and layout.
struct Case<'a, T> {
    comm: &'a Comm,
    stream: &'a Stream,
    way: Way,
    value: fn(usize) -> T,
}

impl<T: Element + PartialEq + Debug> Case<'_, T> {
    /// The elements of a rank, in so many blocks.
    fn values(&self, rank: usize, blocks: usize) -> Array2<T> {
        Array2::from_shape_fn((ROWS * blocks, COLUMNS), |(row, column)| {
            (self.value)(1 + rank + 3 * row + 5 * (column % 3))
        })
    }

    fn run(
        &self,
        what: &str,
        (source, destination): (&Array2<T>, &Array2<T>),
        expected: &Array2<T>,
        call: impl Fn(&Laid<T>, &mut Laid<T>) -> gpumem::Result<()>,
    ) {
        let what =
            format!("{what} of {}, {:?}, rank {}", std::any::type_name::<T>(), self.way, self.comm.rank());
        let source_laid = Laid::new(self.stream, self.way, source);
        let mut laid = Laid::new(self.stream, self.way, destination);
        call(&source_laid, &mut laid).unwrap_or_else(|error| panic!("{what}: {error}"));
        laid.check(self.stream, expected, &what);
        source_laid.check(self.stream, source, &what);
    }

    fn moves(&self) {
        let Self { comm, stream, .. } = self;
        let (rank, size) = (comm.rank(), comm.size());
        let root = size - 1;
        let own = self.values(rank, 1);
        let none = Array2::from_elem((ROWS, COLUMNS), T::zeroed());
        let wide = Array2::from_elem((ROWS * size, COLUMNS), T::zeroed());
        let all = ndarray::concatenate(
            ndarray::Axis(0),
            &(0..size)
                .map(|rank| self.values(rank, 1))
                .collect::<Vec<_>>()
                .iter()
                .map(|a| a.view())
                .collect::<Vec<_>>(),
        )
        .unwrap();
        let block = |array: &Array2<T>, at: usize| array.slice(s![ROWS * at..ROWS * (at + 1), ..]).to_owned();
        self.run("broadcast", (&own, &own), &self.values(root, 1), |_, to| {
            comm.on(stream).broadcast(&mut to.view_mut(), root)
        });
        self.run("all_gather", (&own, &wide), &all, |from, to| {
            comm.on(stream).all_gather(&from.view(), &mut to.view_mut())
        });
        let mut mine = wide.clone();
        mine.slice_mut(s![ROWS * rank..ROWS * (rank + 1), ..]).assign(&own);
        self.run("all_gather_in_place", (&own, &mine), &all, |_, to| {
            comm.on(stream).all_gather(InPlace, &mut to.view_mut())
        });
        let blocks: Vec<_> = (0..size).map(|rank| self.values(rank, size)).collect();
        let mut exchanged = wide.clone();
        for (other, theirs) in blocks.iter().enumerate() {
            exchanged.slice_mut(s![ROWS * other..ROWS * (other + 1), ..]).assign(&block(theirs, rank));
        }
        self.run("all_to_all", (&blocks[rank], &wide), &exchanged, |from, to| {
            comm.on(stream).all_to_all(&from.view(), &mut to.view_mut())
        });
        let rows = vec![ROWS; size];
        self.run("all_to_all_v", (&blocks[rank], &wide), &exchanged, |from, to| {
            comm.on(stream).all_to_all_v((&from.view(), &rows), (&mut to.view_mut(), &rows))
        });
        let gathered = if rank == root { &all } else { &wide };
        self.run("gather", (&own, &wide), gathered, |from, to| {
            comm.on(stream).gather(&from.view(), (rank == root).then(|| to.view_mut()), root)
        });
        self.run(
            "scatter",
            (&self.values(7, size), &none),
            &block(&self.values(7, size), rank),
            |from, to| comm.on(stream).scatter((rank == root).then(|| from.view()), &mut to.view_mut(), root),
        );
        let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
        self.run("send and receive", (&own, &none), &self.values(previous, 1), |from, to| {
            let (from, mut to) = (from.view(), to.view_mut());
            comm.group(stream, |group| {
                group.send(&from, next)?;
                group.receive(&mut to, previous)
            })
        });
        comm.on(stream).barrier().unwrap();
    }

    fn computes<R: Reduction<T>>(&self, reduction: R, result: impl Fn(&[T]) -> T) {
        let Self { comm, stream, .. } = self;
        let (rank, size) = (comm.rank(), comm.size());
        let total = |blocks: usize| {
            let all: Vec<_> = (0..size).map(|rank| self.values(rank, blocks)).collect();
            Array2::from_shape_fn((ROWS * blocks, COLUMNS), |at| {
                result(&all.iter().map(|own| own[at]).collect::<Vec<_>>())
            })
        };
        let own = self.values(rank, 1);
        let none = Array2::from_elem((ROWS, COLUMNS), T::zeroed());
        self.run("all_reduce", (&own, &none), &total(1), |from, to| {
            comm.on(stream).all_reduce(&from.view(), &mut to.view_mut(), reduction)
        });
        self.run("all_reduce_in_place", (&own, &own), &total(1), |_, to| {
            comm.on(stream).all_reduce(InPlace, &mut to.view_mut(), reduction)
        });
        let reduced = if rank == 0 { total(1) } else { none.clone() };
        self.run("reduce", (&own, &none), &reduced, |from, to| {
            comm.on(stream).reduce(&from.view(), (rank == 0).then(|| to.view_mut()), reduction, 0)
        });
        let mine = total(size).slice(s![ROWS * rank..ROWS * (rank + 1), ..]).to_owned();
        self.run("reduce_scatter", (&self.values(rank, size), &none), &mine, |from, to| {
            comm.on(stream).reduce_scatter(&from.view(), &mut to.view_mut(), reduction)
        });
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Particle {
    id: u32,
    mass: f32,
    tag: [u8; 4],
}

pub(crate) fn operations(rank: &Rank) {
    let (comm, stream) = (rank.join(&Options::new()), rank.stream());
    fn run<T: Element + PartialEq + Debug>(
        (comm, stream): (&Comm, &Stream),
        value: fn(usize) -> T,
        check: impl Fn(&Case<'_, T>),
    ) {
        WAYS.iter().for_each(|way| check(&Case { comm, stream, way: *way, value }));
    }
    let ends = (&comm, &stream);
    run(ends, |n| Particle { id: n as u32, mass: n as f32, tag: [n as u8; 4] }, |case| case.moves());
    run(ends, |n| n as u16, |case| case.moves());
    run(ends, |n| n as f64, |case| case.moves());
    macro_rules! numbers {
        ($($type:ty: $value:expr;)*) => {$(
            run::<$type>(ends, $value, |case| {
                case.computes(Sum, |all| all[1..].iter().fold(all[0], |sum, own| sum + *own));
            });
        )*};
    }
    numbers! {
        i8: |n| n as i8;
        u8: |n| n as u8;
        i32: |n| n as i32;
        u32: |n| n as u32;
        i64: |n| n as i64;
        u64: |n| n as u64;
        f16: |n| f16::from_f32(n as f32);
        bf16: |n| bf16::from_f32(n as f32);
        f32: |n| n as f32;
        f64: |n| n as f64;
        Complex<f32>: |n| Complex::new(n as f32, -(n as f32));
        Complex<f64>: |n| Complex::new(n as f64, 1.0);
    }
    run(
        ends,
        |n| n as i32 * 37 % 11,
        |case| {
            case.computes(Min, |all| all.iter().copied().min().unwrap());
            case.computes(Max, |all| all.iter().copied().max().unwrap());
            case.computes(Product, |all| all.iter().product());
        },
    );
    run(
        ends,
        |n| (2 * n) as f32,
        |case| {
            case.computes(Average, |all| all.iter().sum::<f32>() / all.len() as f32);
        },
    );
    let mut nothing = stream.device_array::<f32, _>((0, 4)).unwrap();
    comm.on(&stream).all_reduce(InPlace, &mut nothing, Sum).unwrap();
    assert_eq!(comm.failure(), None);
    comm.destroy().unwrap();
}

/// A group that fails midway leaves nothing behind; ranks that one thread drives are called together.
pub(crate) fn groups(rank: &Rank) {
    let (comm, stream) = (rank.join(&Options::new()), rank.stream());
    let mut array = stream.to_device(&[1_i32, 2, 3]).unwrap();
    let mut other = stream.to_device(&[1_i32]).unwrap();
    let wrong = comm.group(&stream, |group| {
        group.all_reduce(InPlace, &mut array, Sum)?;
        group.broadcast(&mut other, 1000)
    });
    assert!(wrong.is_err());
    assert_eq!(read(&stream, &array).to_vec(), [1, 2, 3]);
    Communicator::<AnyBackend>::group_all(&[(&comm, &stream)], |groups| {
        groups[0].all_reduce(InPlace, &mut array, Sum)
    })
    .unwrap();
    let size = rank.size as i32;
    assert_eq!(read(&stream, &array).to_vec(), [size, 2 * size, 3 * size]);
    // Several operations of a communicator in one group.
    let (mut first, mut second) =
        (stream.to_device(&[1.0_f32; 100]).unwrap(), stream.to_device(&[2_u8; 7]).unwrap());
    comm.group(&stream, |group| {
        group.all_reduce(InPlace, &mut first, Sum)?;
        group.broadcast(&mut second, 0)?;
        group.barrier()
    })
    .unwrap();
    assert_eq!(read(&stream, &first).to_vec(), [rank.size as f32; 100]);
    drop(comm);
}

pub(crate) fn split(rank: &Rank) {
    let (comm, stream) = (rank.join(&Options::new()), rank.stream());
    let whole = comm.split(Some(3), -(rank.rank as i64)).unwrap().expect("it has a colour");
    assert_eq!(
        (whole.rank(), whole.size()),
        (rank.size - 1 - rank.rank, rank.size),
        "keys reverse the order"
    );
    let mut array = stream.to_device(&[whole.rank() as i32]).unwrap();
    whole.on(&stream).broadcast(&mut array, 0).unwrap();
    assert_eq!(read(&stream, &array).to_vec(), [0]);
    let alone = comm.split((rank.rank == 0).then_some(1), 0).unwrap();
    assert_eq!(alone.is_some(), rank.rank == 0);
    if let Some(alone) = alone {
        alone.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
        assert_eq!(read(&stream, &array).to_vec(), [0]);
        alone.destroy().unwrap();
    }
    // Dropped in different orders.
    if rank.rank.is_multiple_of(2) {
        drop(whole);
        drop(comm);
    } else {
        drop(comm);
        drop(whole);
    }
    rank.meet("dropped");
}

/// Two communicators on two streams, called in one order by all.
pub(crate) fn order(rank: &Rank) {
    let comms = [rank.join(&Options::new()), rank.join(&Options::new())];
    let streams = [rank.stream(), rank.stream()];
    let mut arrays = [0, 1].map(|at: usize| streams[at].to_device(&vec![1_f32; 1 << 12]).unwrap());
    for round in 0..2000 {
        for at in 0..2 {
            let turn = (at + round) % 2;
            comms[turn].on(&streams[turn]).all_reduce(InPlace, &mut arrays[turn], Average).unwrap();
        }
    }
    for (stream, array) in streams.iter().zip(&arrays) {
        assert!(read(stream, array).iter().all(|value| *value == 1.0));
    }
}
