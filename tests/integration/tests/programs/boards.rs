//! Arrays of two axes and of several element types, in every layout. Nothing fails here, so that every element is known.

use crate::model::Random;
use bytemuck::{Pod, Zeroable};
use gpumem_core::{Backend, Element};
use gpumem_runtime::{ArraySpec, Device, DeviceArray, Order, Stream, field};
use ndarray::{Array2, ArrayView2, Axis, Ix2, SliceInfo, SliceInfoElem, s};
use std::{fmt::Debug, thread};

/// An element of boards.
pub(crate) trait Value: Element + PartialEq + Debug {
    fn draw(random: &mut Random) -> Self;
}

impl Value for u8 {
    fn draw(random: &mut Random) -> Self {
        random.word() as Self
    }
}

impl Value for [u16; 3] {
    fn draw(random: &mut Random) -> Self {
        std::array::from_fn(|_| random.word() as u16)
    }
}

impl Value for f64 {
    fn draw(random: &mut Random) -> Self {
        Self::from(random.word()) / 7.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Record {
    number: u32,
    pair: [i16; 2],
    wide: u64,
}

impl Value for Record {
    fn draw(random: &mut Random) -> Self {
        let (number, wide) = (random.word(), u64::from(random.word()) << 20);
        Self { number, pair: [number as i16, random.word() as i16], wide }
    }
}

type Part = SliceInfo<[SliceInfoElem; 2], Ix2, Ix2>;

struct Board<T, B: Backend> {
    array: DeviceArray<T, Ix2, B>,
    model: Array2<T>,
}

/// The boards of one element type.
pub(crate) struct Boards<T, B: Backend> {
    all: Vec<Board<T, B>>,
    device: Device<B>,
}

const MOST: usize = 4;

fn shape(random: &mut Random) -> (usize, usize) {
    let mut side = || match random.below(12) {
        0 => random.below(2),
        1 => 100 + random.below(150),
        _ => 1 + random.below(24),
    };
    (side(), side())
}

fn values<T: Value>(random: &mut Random, shape: (usize, usize)) -> Array2<T> {
    Array2::from_shape_simple_fn(shape, || T::draw(random))
}

/// An axis' part of `count` elements out of `length`: from, to, step.
fn axis(random: &mut Random, length: usize, count: usize) -> (usize, usize, isize) {
    if count == 0 {
        return (0, 0, 1);
    }
    let most = if count == 1 { 3 } else { (length - 1) / (count - 1) };
    let step = 1 + random.below(most.min(3));
    let reach = (count - 1) * step + 1;
    let from = random.below(length - reach + 1);
    (from, from + reach, if random.one_in(3) { -(step as isize) } else { step as isize })
}

/// A part of so many rows and columns.
fn part_of(random: &mut Random, whole: (usize, usize), wanted: (usize, usize)) -> Part {
    let (a, b, c) = axis(random, whole.0, wanted.0);
    let (d, e, f) = axis(random, whole.1, wanted.1);
    s![a..b;c, d..e;f]
}

fn part(random: &mut Random, whole: (usize, usize)) -> Part {
    let wanted = (random.below(whole.0 + 1), random.below(whole.1 + 1));
    part_of(random, whole, wanted)
}

impl<T: Value, B: Backend> Boards<T, B> {
    pub(crate) fn new(device: &Device<B>) -> Self {
        Self { all: Vec::new(), device: device.clone() }
    }

    /// One operation, whose name is returned.
    pub(crate) fn step(&mut self, random: &mut Random, stream: &Stream<B>) -> &'static str {
        if self.all.len() > MOST {
            self.all.swap_remove(random.below(MOST));
        }
        if self.all.is_empty() || random.one_in(5) {
            return self.make(random, stream);
        }
        let at = random.below(self.all.len());
        match random.below(9) {
            0 => self.fill(random, stream, at),
            1 | 2 => self.copy(random, stream, at),
            3 => self.upload(random, stream, at),
            4 => self.halves(random, stream, at),
            5 => self.elements(random, at),
            6 => self.broadcast(random, stream, at),
            7 => self.shapes(random, at),
            _ => self.read(random, stream, at),
        }
    }

    fn make(&mut self, random: &mut Random, stream: &Stream<B>) -> &'static str {
        let shape = shape(random);
        // At times of another layout on the host.
        let model = match random.below(4) {
            0 => values::<T>(random, (shape.1, shape.0)).reversed_axes(),
            _ => values::<T>(random, shape),
        };
        let array = match random.below(6) {
            0 => self.device.to_device(&model).unwrap(),
            1 => stream.to_device(&model).unwrap(),
            2 => {
                let part = part(random, shape);
                let (array, model) =
                    (stream.to_device(&model.slice(part)).unwrap(), model.slice(part).to_owned());
                self.all.push(Board { array, model });
                return "make a part";
            }
            3 => {
                let spec = ArraySpec::new(shape).order(Order::F);
                stream.uninit_array::<T, _>(spec).unwrap().copy_from(&model).unwrap()
            }
            4 => {
                // Gaps between the rows.
                let size = size_of::<T>() as isize;
                let spec = ArraySpec::new(shape).strides(&[(shape.1.max(1) as isize + 3) * size, size]);
                let mut array = stream.device_array::<T, _>(spec).unwrap();
                stream.copy_to_device(&mut array, &model).unwrap();
                array
            }
            _ => self
                .device
                .device_array_like(&model)
                .and_then(|mut array| {
                    array.copy_to_device(&model)?;
                    Ok(array)
                })
                .unwrap(),
        };
        self.all.push(Board { array, model });
        "make"
    }

    fn fill(&mut self, random: &mut Random, stream: &Stream<B>, at: usize) -> &'static str {
        let Board { array, model } = &mut self.all[at];
        let (part, value) = (part(random, model.dim()), T::draw(random));
        stream.fill(&mut array.slice_mut(part).unwrap(), value).unwrap();
        model.slice_mut(part).fill(value);
        "fill a part"
    }

    fn copy(&mut self, random: &mut Random, stream: &Stream<B>, from: usize) -> &'static str {
        let to = random.below(self.all.len());
        let Ok([from, to]) = self.all.get_disjoint_mut([from, to]) else { return "nothing" };
        let (most, room) = (from.model.dim(), to.model.dim());
        let wanted = (random.below(most.0.min(room.0) + 1), random.below(most.1.min(room.1) + 1));
        let (source, target) = (part_of(random, most, wanted), part_of(random, room, wanted));
        let view = from.array.slice(source).unwrap();
        stream.copy_to_device(&mut to.array.slice_mut(target).unwrap(), &view).unwrap();
        to.model.slice_mut(target).assign(&from.model.slice(source));
        "copy a part"
    }

    fn upload(&mut self, random: &mut Random, stream: &Stream<B>, at: usize) -> &'static str {
        let Board { array, model } = &mut self.all[at];
        let part = part(random, model.dim());
        let (rows, columns) = model.slice(part).dim();
        let host = values::<T>(random, (columns, rows));
        let (host, mut target) = (host.t(), array.slice_mut(part).unwrap());
        match random.below(3) {
            0 => stream.copy_to_device(&mut target, &host).unwrap(),
            1 => drop(target.copy_to_device(&host).unwrap()),
            _ => stream.assign(&mut target, &host).unwrap(),
        }
        model.slice_mut(part).assign(&host);
        "upload a part"
    }

    /// From one half of an array into the other, on two sides of a borrow.
    fn halves(&mut self, random: &mut Random, stream: &Stream<B>, at: usize) -> &'static str {
        let Board { array, model } = &mut self.all[at];
        let axis = random.below(2);
        let middle = model.shape()[axis] / 2;
        let (low, mut high) = array.split_at_mut(axis, middle).unwrap();
        let (expected, mut place) = model.view_mut().split_at(Axis(axis), middle);
        let (rows, columns) = expected.dim();
        let mut high = high.slice_mut(s![..rows, ..columns]).unwrap();
        stream.copy_to_device(&mut high, &low).unwrap();
        place.slice_mut(s![..rows, ..columns]).assign(&expected);
        "copy a half"
    }

    fn elements(&mut self, random: &mut Random, at: usize) -> &'static str {
        let Board { array, model } = &mut self.all[at];
        let index = (random.below(model.nrows() + 1), random.below(model.ncols() + 1));
        let value = T::draw(random);
        match model.get_mut(index) {
            Some(element) => {
                assert_eq!(array.get(index).unwrap(), *element);
                array.set(index, value).unwrap();
                *element = value;
            }
            None => assert!(array.get(index).is_err() && array.set(index, value).is_err()),
        }
        "get and set"
    }

    fn broadcast(&mut self, random: &mut Random, stream: &Stream<B>, at: usize) -> &'static str {
        let Board { array, model } = &mut self.all[at];
        let row = values::<T>(random, (1, model.ncols()));
        match random.below(3) {
            0 => stream.assign(array, &row).unwrap(),
            1 => array.assign(&row).unwrap(),
            _ => {
                let row = stream.to_device(&row).unwrap();
                let rows = row.broadcast(model.dim()).unwrap();
                assert_eq!(rows.copy_to_host().unwrap().dim(), model.dim());
                stream.copy_to_device(array, &rows).unwrap();
            }
        }
        for mut place in model.rows_mut() {
            place.assign(&row.row(0));
        }
        "broadcast"
    }

    /// The same elements in other shapes and orders.
    fn shapes(&mut self, random: &mut Random, at: usize) -> &'static str {
        let Board { array, model } = &self.all[at];
        let part = part(random, model.dim());
        let (view, expected) = (array.slice(part).unwrap(), model.slice(part));
        let order = if random.one_in(2) { Order::C } else { Order::F };
        match random.below(4) {
            0 => {
                let flat = view.flatten(Order::C).unwrap().copy_to_host().unwrap();
                assert!(flat.iter().eq(expected.iter()));
                return "flatten";
            }
            1 => {
                let copy = view.to_order(order).unwrap();
                assert!(copy.is_empty() || copy.layout().is_contiguous(order));
                self.all.push(Board { array: copy, model: expected.to_owned() });
                return "to_order";
            }
            2 => {
                // A view where there is one, else a copy.
                let other = (expected.ncols(), expected.nrows());
                let found = match view.reshape(other) {
                    Ok(view) => view.copy_to_host().unwrap(),
                    Err(_) => view.reshape_copy(other, Order::C).unwrap().copy_to_host().unwrap(),
                };
                assert!(found.iter().eq(expected.iter()));
            }
            _ => {
                let turned = view.t().permuted_axes(&[1, 0]).unwrap().inverted_axis(0).unwrap();
                assert_eq!(turned.copy_to_host().unwrap(), expected.slice(s![..;-1, ..]));
            }
        }
        "reshape"
    }

    fn read(&self, random: &mut Random, stream: &Stream<B>, at: usize) -> &'static str {
        let Board { array, model } = &self.all[at];
        let part = part(random, model.dim());
        let (view, expected): (_, ArrayView2<'_, T>) = (array.slice(part).unwrap(), model.slice(part));
        match random.below(5) {
            0 => assert_eq!(view.copy_to_host().unwrap(), expected),
            1 => assert_eq!(view.t().copy_to_host().unwrap(), expected.t()),
            2 => assert_eq!(stream.copy_to_host(&view).unwrap().view().unwrap(), expected),
            3 => {
                // Into a part of an array of the caller, whose other elements stay.
                let (rows, columns) = expected.dim();
                let mut host = Array2::from_elem((columns * 2 + 1, rows + 1), T::zeroed());
                let place = host.slice_mut(s![..columns * 2;2, 1..]).reversed_axes();
                assert_eq!(view.copy_to_host_into(place).unwrap(), expected);
                assert!(host.column(0).iter().all(|element| *element == T::zeroed()));
                assert!(host.slice(s![1..;2, ..]).iter().all(|element| *element == T::zeroed()));
            }
            _ => thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| assert_eq!(array.slice(part).unwrap().copy_to_host().unwrap(), expected));
                }
            }),
        }
        "read a part"
    }
}

impl<B: Backend> Boards<Record, B> {
    /// Reads and writes the fields of records, which lie between each other.
    pub(crate) fn fields(&mut self, random: &mut Random, stream: &Stream<B>) -> &'static str {
        let Some(Board { array, model }) = self.all.first_mut() else { return "nothing" };
        let number = random.word();
        let part = part(random, model.dim());
        let mut view = array.slice_mut(part).unwrap();
        let mut numbers = view.field_mut(field!(Record, number)).unwrap();
        stream.fill(&mut numbers, number).unwrap();
        model.slice_mut(part).iter_mut().for_each(|record| record.number = number);
        let pairs = array.field(field!(Record, pair)).unwrap().copy_to_host().unwrap();
        assert!(pairs.iter().eq(model.iter().map(|record| &record.pair)));
        "fields"
    }
}
