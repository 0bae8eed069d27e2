//! What one rank does: its arrays, its call, and what is in them afterwards.

use super::case::{Elements, OfRank, What, value};
use crate::common::{B, Comm, Stream};
use gpumem_collectives::{InPlace, Max, Reduction, Sum};
use gpumem_core::{Element, Result};
use gpumem_runtime::DeviceArray;
use ndarray::{Array2, Ix2, SliceInfo, SliceInfoElem, s};
use std::ptr::with_exposed_provenance;

/// What is in a destination before.
const BEFORE: i64 = 99;

/// An element, to and from the numbers of the oracle.
pub(super) trait Value: Element {
    fn of(number: i64) -> Self;
    fn number(self) -> i64;
}

macro_rules! values {
    ($($element:ty),*) => {
        $(impl Value for $element {
            fn of(number: i64) -> Self {
                number as Self
            }

            fn number(self) -> i64 {
                self as i64
            }
        })*
    };
}
values!(u8, i32, f32, u64);

/// A call, and the arrays of its rank.
pub(super) struct Called {
    pub(super) called: Result<()>,
    pub(super) held: Box<dyn Held>,
}

pub(super) trait Held {
    /// Checks the elements of the destination, if there is one, and that nothing else was written.
    fn is(&self, expected: Option<Array2<i64>>, told: &str);

    /// Checks that nothing was written.
    fn is_untouched(&self, told: &str);
}

/// Memory of the device with an array in it: all of it, or every second column, backwards.
struct Memory<T: Value> {
    all: DeviceArray<T, Ix2, B>,
    before: Array2<i64>,
    strided: bool,
}

type Part = SliceInfo<[SliceInfoElem; 2], Ix2, Ix2>;

fn part(strided: bool) -> Part {
    if strided { s![..;-1, ..;2] } else { s![.., ..] }
}

impl<T: Value> Memory<T> {
    fn new(stream: &Stream, values: &Array2<i64>, strided: bool) -> Result<Self> {
        let (rows, columns) = values.dim();
        let mut before = Array2::from_elem((rows, if strided { 2 * columns } else { columns }), BEFORE);
        before.slice_mut(part(strided)).assign(values);
        let all = stream.to_device(&before.mapv(T::of))?;
        Ok(Self { all, before, strided })
    }

    /// What the memory holds, poisoned or not. Nothing of the device uses it any more.
    fn found(&self) -> Array2<i64> {
        let found: &[T] = match self.before.len() {
            0 => &[],
            // SAFETY: memory of the host with so many elements, which no work uses.
            len => unsafe {
                std::slice::from_raw_parts(with_exposed_provenance(self.all.address() as usize), len)
            },
        };
        let found = found.iter().map(|element| element.number()).collect();
        Array2::from_shape_vec(self.before.dim(), found).unwrap()
    }
}

struct Arrays<T: Value> {
    source: Option<Memory<T>>,
    destination: Option<Memory<T>>,
    /// The rows of the destination that are written: all, or those of one block.
    written: std::ops::Range<usize>,
}

impl<T: Value> Held for Arrays<T> {
    fn is(&self, expected: Option<Array2<i64>>, told: &str) {
        if let Some(source) = &self.source {
            assert_eq!(source.found(), source.before, "the source, {told}");
        }
        let Some(destination) = &self.destination else { return assert_eq!(expected, None, "{told}") };
        let mut all = destination.before.clone();
        if let Some(expected) = expected {
            let mut array = all.slice_mut(part(destination.strided));
            array.slice_mut(s![self.written.clone(), ..]).assign(&expected);
        }
        assert_eq!(destination.all.copy_to_host().unwrap().mapv(T::number), all, "{told}");
    }

    fn is_untouched(&self, told: &str) {
        for memory in self.source.iter().chain(&self.destination) {
            assert_eq!(memory.found(), memory.before, "{told}");
        }
    }
}

/// Calls what the rank calls.
pub(super) fn call(own: &OfRank, comm: &Comm, stream: &Stream) -> Called {
    match (own.elements, own.max) {
        (Elements::U8, false) => call_of::<u8, _>(own, comm, stream, Sum),
        (Elements::U8, true) => call_of::<u8, _>(own, comm, stream, Max),
        (Elements::I32, false) => call_of::<i32, _>(own, comm, stream, Sum),
        (Elements::I32, true) => call_of::<i32, _>(own, comm, stream, Max),
        (Elements::F32, false) => call_of::<f32, _>(own, comm, stream, Sum),
        (Elements::F32, true) => call_of::<f32, _>(own, comm, stream, Max),
        (Elements::U64, false) => call_of::<u64, _>(own, comm, stream, Sum),
        (Elements::U64, true) => call_of::<u64, _>(own, comm, stream, Max),
    }
}

/// Rows of the source and of the destination, where the rank has them.
fn rows(own: &OfRank, size: usize) -> (Option<usize>, Option<usize>) {
    let (rows, all, is_root) = (own.rows, own.rows * size, own.rank == own.root);
    match own.what {
        What::AllToAllV => (Some(own.sends.iter().sum()), Some(own.receives.iter().sum())),
        What::AllToAll => (Some(all), Some(all)),
        What::AllGather => (Some(rows), Some(all)),
        What::AllReduce => (Some(rows), Some(rows)),
        What::Reduce => (Some(rows), is_root.then_some(rows)),
        What::Broadcast => (None, Some(rows)),
        What::Gather => (Some(rows), is_root.then_some(all)),
        What::Scatter => (is_root.then_some(all), Some(rows)),
        What::ReduceScatter => (Some(all), Some(rows)),
        What::Pair if own.rank == 0 => (Some(rows), None),
        What::Pair => (None, Some(rows)),
    }
}

fn call_of<T: Value, R: Reduction<T>>(own: &OfRank, comm: &Comm, stream: &Stream, reduction: R) -> Called {
    let OfRank { rank, width, root, .. } = *own;
    let (source, destination) = rows(own, comm.size());
    let [source_strided, strided] = own.strided;
    let values = |rows| Array2::from_shape_fn((rows, width), |(row, column)| value(rank, row, column));
    let none = |rows| Array2::from_elem((rows, width), BEFORE);
    let mut written = 0..destination.unwrap_or(0);
    let memory = |values: Array2<i64>, strided| Memory::<T>::new(stream, &values, strided).unwrap();
    let (mut source, mut destination) = if own.in_place {
        // One array has the elements before and after.
        let all = match own.what {
            What::AllGather => {
                let mut all = none(own.rows * comm.size());
                all.slice_mut(s![rank * own.rows..(rank + 1) * own.rows, ..]).assign(&values(own.rows));
                all
            }
            What::ReduceScatter => {
                written = rank * own.rows..(rank + 1) * own.rows;
                values(own.rows * comm.size())
            }
            _ => values(own.rows),
        };
        (None, Some(memory(all, strided)))
    } else {
        let of_root = own.what == What::Broadcast && rank == root;
        let destination = destination.map(|rows| if of_root { values(rows) } else { none(rows) });
        (
            source.map(|rows| memory(values(rows), source_strided)),
            destination.map(|destination| memory(destination, strided)),
        )
    };
    if own.what == What::Reduce && rank != root {
        written = 0..0;
    }
    let called = (|| {
        if own.is_barrier {
            return comm.on(stream).barrier();
        }
        let from = source.as_mut().map(|memory| memory.all.slice(part(memory.strided)).unwrap());
        let to = destination.as_mut().map(|memory| memory.all.slice_mut(part(memory.strided)).unwrap());
        match (own.what, from, to) {
            (What::AllToAllV, Some(from), Some(mut to)) => {
                comm.on(stream).all_to_all_v((&from, &own.sends), (&mut to, &own.receives))
            }
            (What::AllToAll, Some(from), Some(mut to)) => comm.on(stream).all_to_all(&from, &mut to),
            (What::AllGather, Some(from), Some(mut to)) => comm.on(stream).all_gather(&from, &mut to),
            (What::AllGather, None, Some(mut to)) => comm.on(stream).all_gather(InPlace, &mut to),
            (What::AllReduce, Some(from), Some(mut to)) => {
                comm.on(stream).all_reduce(&from, &mut to, reduction)
            }
            (What::AllReduce, None, Some(mut to)) => comm.on(stream).all_reduce(InPlace, &mut to, reduction),
            (What::Reduce, Some(from), to) => comm.on(stream).reduce(&from, to, reduction, root),
            (What::Reduce, None, Some(mut to)) => {
                comm.on(stream).reduce(InPlace, Some(to.view_mut()), reduction, root)
            }
            (What::Broadcast, None, Some(mut to)) => comm.on(stream).broadcast(&mut to, root),
            (What::Gather, Some(from), to) => comm.on(stream).gather(&from, to, root),
            (What::Scatter, from, Some(mut to)) => comm.on(stream).scatter(from, &mut to, root),
            (What::ReduceScatter, Some(from), Some(mut to)) => {
                comm.on(stream).reduce_scatter(&from, &mut to, reduction)
            }
            (What::ReduceScatter, None, Some(mut to)) => {
                comm.on(stream).reduce_scatter(InPlace, &mut to, reduction)
            }
            (What::Pair, Some(from), None) => comm.on(stream).send(&from, 1),
            (What::Pair, None, Some(mut to)) => comm.on(stream).receive(&mut to, 0),
            (what, ..) => panic!("{what:?} without its arrays"),
        }
    })();
    Called { called, held: Box::new(Arrays { source, destination, written }) }
}
