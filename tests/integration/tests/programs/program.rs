//! A program: its objects, and the choice of the next operation.

use crate::{
    boards::{Boards, Record},
    hosts::Hosts,
    model::{Known, Pinned, Random},
};
use gpumem_core::Backend;
use gpumem_kernel::{Kernel, KernelDef, SliceMut, View, ViewMut, WorkItemIds};
use gpumem_runtime::{Device, Stream};
use std::collections::VecDeque;

pub(crate) type Add = (SliceMut<u32>, u32);
pub(crate) type Triple = (View<u32, 1>, ViewMut<u32, 1>);

const MOST_ARRAYS: usize = 12;
const MOST_PINNED: usize = 6;
pub(crate) const STREAMS: usize = 3;
const LOGGED: usize = 40;

pub(crate) struct Program<'a, B: Backend> {
    pub(crate) device: &'a Device<B>,
    pub(crate) seed: u64,
    pub(crate) random: Random,
    pub(crate) streams: Vec<Stream<B>>,
    pub(crate) add: Kernel<Add, B>,
    pub(crate) triple: Kernel<Triple, B>,
    pub(crate) bad: Kernel<Add, B>,
    pub(crate) arrays: Vec<Known<B>>,
    pub(crate) pinned: Vec<Pinned<B>>,
    pub(crate) bytes: Boards<u8, B>,
    pub(crate) triples: Boards<[u16; 3], B>,
    pub(crate) numbers: Boards<f64, B>,
    pub(crate) records: Boards<Record, B>,
    pub(crate) hosts: Hosts<B>,
    /// Whether the program is alone with its device: then it may fail, and change what the device uses.
    pub(crate) fails: bool,
    /// The latest operations.
    pub(crate) log: VecDeque<String>,
}

impl<'a, B: Backend> Program<'a, B> {
    pub(crate) fn new(device: &'a Device<B>, seed: u64, fails: bool) -> Self {
        // SAFETY: there is no source.
        let (add, triple, bad) = unsafe {
            (
                KernelDef::<Add>::new("add").host_loop(|ids: &WorkItemIds<'_>, (y, number): &Add| {
                    let at = ids.global_id(0);
                    if at < y.len() {
                        y.set(at, y.get(at).wrapping_add(*number));
                    }
                }),
                KernelDef::<Triple>::new("triple").host_loop(|ids: &WorkItemIds<'_>, (x, y): &Triple| {
                    let at = ids.global_id(0);
                    if at < y.extent(0) {
                        y.set(at, x.get(at).wrapping_mul(3));
                    }
                }),
                KernelDef::<Add>::new("bad").host_loop(|ids: &WorkItemIds<'_>, (y, number): &Add| {
                    let at = ids.global_id(0);
                    if at < y.len() {
                        y.set(at, 0xbad);
                    }
                    assert!(at != 1 || number % 2 == 0, "the program's");
                    y.set(at + y.len() * usize::from(at == 0), 1);
                }),
            )
        };
        let seeded = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Self {
            device,
            seed,
            random: Random(seeded),
            streams: (0..STREAMS).map(|_| device.stream().unwrap()).collect(),
            add: add.load(device).unwrap(),
            triple: triple.load(device).unwrap(),
            bad: bad.load(device).unwrap(),
            arrays: Vec::new(),
            pinned: Vec::new(),
            bytes: Boards::new(device),
            triples: Boards::new(device),
            numbers: Boards::new(device),
            records: Boards::new(device),
            hosts: Hosts::new(),
            fails,
            log: VecDeque::new(),
        }
    }

    pub(crate) fn run(mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
        }
        for known in &self.arrays {
            if let Some(elements) = known.all() {
                assert!(known.array.copy_to_host().unwrap().to_vec() == elements, "seed {}", self.seed);
            }
        }
        if self.fails && self.random.one_in(3) {
            self.reset();
        }
    }

    /// Drops what the host sees, so that the device may be reset.
    pub(crate) fn drop_host_memory(&mut self) {
        self.pinned.clear();
        self.hosts = Hosts::new();
    }

    fn step(&mut self) {
        self.bound();
        let choice = self.random.below(36);
        if self.arrays.is_empty() || choice < 5 {
            return self.make();
        }
        let at = self.random.below(self.arrays.len());
        self.say(format!("choice {choice} of array {at}, {} elements", self.arrays[at].model.len()));
        match choice {
            5 | 6 => self.fill(at),
            7..=9 => self.read(at),
            10 => self.read_later(at),
            11 => self.look_at_pinned(),
            12 | 13 => self.copy(at),
            14 => self.launch_in_place(at),
            15 => self.launch_on_host_arrays(),
            16 => self.read_in_scopes(at),
            17 => self.upload(at),
            18 if self.fails => self.fail(at),
            19 => self.lend_or_clone(at),
            20 => self.tidy(at),
            21 => self.watch(at),
            22 => self.mark(at),
            23 => self.exchange_resource(),
            24 => self.ask_for_too_much(),
            25 => self.alias(at),
            26 | 27 => self.use_seen(),
            28 => self.lock(at),
            29 if self.fails && self.random.one_in(12) => self.fork(at),
            _ => self.board(),
        }
    }

    fn board(&mut self) {
        let stream = self.stream();
        let Self { random, bytes, triples, numbers, records, .. } = self;
        let what = match random.below(5) {
            0 => bytes.step(random, &stream),
            1 => triples.step(random, &stream),
            2 => numbers.step(random, &stream),
            3 => records.step(random, &stream),
            _ => records.fields(random, &stream),
        };
        self.say(format!("  {what}"));
    }

    pub(crate) fn say(&mut self, what: String) {
        if self.log.len() == LOGGED {
            self.log.pop_front();
        }
        self.log.push_back(what);
    }

    pub(crate) fn stream(&mut self) -> Stream<B> {
        self.streams[self.random.below(STREAMS)].clone()
    }

    /// Drops an object, in one of several ways, if there are many.
    fn bound(&mut self) {
        // A forgotten object keeps its device, with the memory of its pools.
        let forgets = self.seed.is_multiple_of(20);
        if self.arrays.len() > MOST_ARRAYS {
            let known = self.arrays.swap_remove(self.random.below(MOST_ARRAYS));
            match self.random.below(40) {
                0 if forgets => std::mem::forget(known.array),
                1..=10 => known.array.free().unwrap(),
                _ => {}
            }
        }
        if self.pinned.len() > MOST_PINNED {
            self.pinned.swap_remove(self.random.below(MOST_PINNED));
        }
    }
}

impl<B: Backend> Drop for Program<'_, B> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}, the latest operations:", self.seed);
            self.log.iter().for_each(|what| eprintln!("{what}"));
        }
    }
}
