//! Random sequences of operations over four ranks with three streams each equal a sequential model.
//!
//! `GPUMEM_SEQUENCES` sets their number, `GPUMEM_SEED` the first seed.

use crate::common::{random::Random, *};
use gpumem_collectives::{InPlace, Max, Sum};
use gpumem_runtime::DeviceArray;
use ndarray::{Ix2, s};

const RANKS: usize = 4;
const STREAMS: usize = 3;
const ARRAYS: usize = 4;
const ROWS: usize = 4;
const COLUMNS: usize = 6;

/// Two different arrays.
fn two(random: &mut Random) -> (usize, usize) {
    let first = random.below(ARRAYS);
    (first, (first + 1 + random.below(ARRAYS - 1)) % ARRAYS)
}

type Host2 = ndarray::Array2<i32>;
type Array = DeviceArray<i32, Ix2, B>;

struct Rank {
    comm: Comm,
    streams: Vec<Stream>,
    arrays: Vec<Array>,
}

/// Elements of an array: all, or every second column, backwards.
fn part(is_all: bool) -> ndarray::SliceInfo<[ndarray::SliceInfoElem; 2], Ix2, Ix2> {
    if is_all { s![.., ..] } else { s![..;-1, ..;2] }
}

fn pair(arrays: &mut [Array], from: usize, to: usize) -> (&Array, &mut Array) {
    let (low, high) = arrays.split_at_mut(from.max(to));
    if from < to { (&low[from], &mut high[0]) } else { (&high[0], &mut low[to]) }
}

fn run(seed: u64) {
    let mut random = Random(seed);
    let mut ranks: Vec<Rank> = Vec::new();
    let mut model: Vec<Vec<Host2>> = Vec::new();
    let all = gpumem_collectives::Communicator::all(&devices(RANKS, Some(seed))).unwrap();
    for comm in all {
        let streams: Vec<Stream> = (0..STREAMS).map(|_| comm.device().stream().unwrap()).collect();
        let values: Vec<Host2> = (0..ARRAYS)
            .map(|_| Host2::from_shape_simple_fn((ROWS, COLUMNS), || random.below(100) as i32))
            .collect();
        let arrays = values.iter().map(|values| streams[0].to_device(values).unwrap()).collect();
        model.push(values);
        ranks.push(Rank { comm, streams, arrays });
    }
    for step in 0..12 + random.below(12) {
        let (from, to) = two(&mut random);
        let (what, root, is_all) = (random.below(12), random.below(RANKS), random.below(2) == 0);
        let before = model.clone();
        let view = |array: &Host2| array.slice(part(is_all)).to_owned();
        let sum =
            before.iter().fold(Host2::zeros(view(&before[0][0]).dim()), |sum, own| sum + view(&own[from]));
        for rank in random.order(RANKS) {
            let next = (rank + 1 + root % 3) % RANKS;
            let previous = (0..RANKS).find(|other| (other + 1 + root % 3) % RANKS == rank).unwrap();
            let Rank { comm, streams, arrays } = &mut ranks[rank];
            let stream = &streams[random.below(STREAMS)];
            let expected = &mut model[rank];
            match what {
                0 | 1 => {
                    let (from, to_array) = pair(arrays, from, to);
                    let (from, mut destination) =
                        (from.slice(part(is_all)).unwrap(), to_array.slice_mut(part(is_all)).unwrap());
                    comm.on(stream).all_reduce(&from, &mut destination, Sum).unwrap();
                    expected[to].slice_mut(part(is_all)).assign(&sum);
                }
                2 => {
                    comm.on(stream)
                        .all_reduce(InPlace, &mut arrays[from].slice_mut(part(is_all)).unwrap(), Sum)
                        .unwrap();
                    expected[from].slice_mut(part(is_all)).assign(&sum);
                }
                3 => {
                    comm.on(stream).reduce(InPlace, Some(arrays[from].view_mut()), Max, root).unwrap();
                    if rank == root {
                        for (index, value) in expected[from].indexed_iter_mut() {
                            *value = before.iter().map(|own| own[from][index]).max().unwrap();
                        }
                    }
                }
                4 => {
                    comm.on(stream)
                        .broadcast(&mut arrays[to].slice_mut(part(is_all)).unwrap(), root)
                        .unwrap();
                    expected[to].slice_mut(part(is_all)).assign(&view(&before[root][to]));
                }
                5 => {
                    comm.on(stream).all_gather(InPlace, &mut arrays[to]).unwrap();
                    for (other, own) in before.iter().enumerate() {
                        expected[to].row_mut(other).assign(&own[to].row(other));
                    }
                }
                6 => {
                    let (from_array, to_array) = pair(arrays, from, to);
                    comm.on(stream).all_to_all(from_array, to_array).unwrap();
                    for (other, own) in before.iter().enumerate() {
                        expected[to].row_mut(other).assign(&own[from].row(rank));
                    }
                }
                7 | 8 => {
                    let (from_array, to_array) = pair(arrays, from, to);
                    comm.group(stream, |group| {
                        group.send(from_array, next)?;
                        group.receive(to_array, previous)
                    })
                    .unwrap();
                    expected[to].assign(&before[previous][from]);
                }
                9 => {
                    let (from_array, to_array) = pair(arrays, from, to);
                    stream.copy_to_device(to_array, from_array).unwrap();
                    expected[to].assign(&before[rank][from]);
                }
                10 => {
                    // The old array is dropped while it may be in use.
                    let values = Host2::from_elem((ROWS, COLUMNS), step as i32);
                    arrays[to] = stream.to_device(&values).unwrap();
                    expected[to] = values;
                }
                _ => {
                    stream.fill(&mut arrays[to].slice_mut(part(is_all)).unwrap(), step as i32).unwrap();
                    expected[to].slice_mut(part(is_all)).fill(step as i32);
                }
            }
        }
        if random.below(6) == 0 {
            let (rank, array) = (random.below(RANKS), random.below(ARRAYS));
            let found = ranks[rank].arrays[array].copy_to_host().unwrap();
            assert_eq!(found, model[rank][array], "seed {seed}, step {step}, operation {what}");
        }
    }
    for (rank, (Rank { comm, arrays, .. }, expected)) in ranks.iter().zip(&model).enumerate() {
        for (array, expected) in arrays.iter().zip(expected) {
            assert_eq!(array.copy_to_host().unwrap(), *expected, "seed {seed}, rank {rank}");
        }
        assert_eq!(comm.failure(), None);
    }
}

#[test]
fn random_sequences_equal_a_sequential_model() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let first = number("GPUMEM_SEED", 1);
    let count = number("GPUMEM_SEQUENCES", if cfg!(miri) { 1 } else { 120 });
    (first..first + count).for_each(run);
}
