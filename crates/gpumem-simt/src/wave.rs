//! Operations of one wave: its work-items exchange values.

use crate::{Number, WorkItem, barrier::Stop};
use gpumem_core::Element;
use std::{cell::Cell, panic::Location};

/// What the lanes of one wave exchange. Two sets of values in turn, because a lane that goes on gives its next value
/// before the others have read the last ones.
#[derive(Debug)]
pub(crate) struct Wave {
    values: [Vec<Cell<u128>>; 2],
    /// The result of all lanes, once the first of them has computed it.
    result: [Cell<Option<u128>>; 2],
    round: Cell<usize>,
}

impl Wave {
    pub(crate) fn new(size: usize) -> Self {
        let lanes = || vec![Cell::new(0); size];
        Self { values: [lanes(), lanes()], result: Default::default(), round: Cell::new(0) }
    }

    /// All lanes have arrived. What they exchanged before this time has been read by all.
    pub(crate) fn release(&self) {
        let round = self.round.get() ^ 1;
        self.round.set(round);
        self.result[round].set(None);
    }
}

fn pack<T: Element>(value: T) -> u128 {
    const { assert!(size_of::<T>() <= 16, "lanes exchange values of at most 16 bytes") };
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(bytemuck::bytes_of(&value)).for_each(|(to, from)| *to = *from);
    u128::from_ne_bytes(bytes)
}

fn unpack<T: Element>(bits: u128) -> T {
    let bytes = bits.to_ne_bytes();
    bytes.get(..size_of::<T>()).map_or_else(T::zeroed, bytemuck::pod_read_unaligned)
}

/// The values that the lanes have given in one round.
struct Given<'g> {
    values: &'g [Cell<u128>],
    result: &'g Cell<Option<u128>>,
    lane: usize,
}

impl Given<'_> {
    fn of<T: Element>(&self, lane: usize) -> Option<T> {
        self.values.get(lane).map(|value| unpack(value.get()))
    }

    /// The lane's value, or one's own where there is no such lane.
    fn or_own<T: Element>(&self, lane: Option<usize>, own: T) -> T {
        lane.and_then(|lane| self.of(lane)).unwrap_or(own)
    }

    /// Computed once for all lanes, because each would get the same.
    fn once(&self, compute: impl FnOnce() -> u128) -> u128 {
        self.result.get().unwrap_or_else(|| {
            let result = compute();
            self.result.set(Some(result));
            result
        })
    }

    fn ballot(&self) -> u64 {
        let bits = || {
            let set = self.values.iter().enumerate().filter(|(_, value)| value.get() != 0);
            set.fold(0u128, |bits, (lane, _)| bits | 1 << lane)
        };
        self.once(bits) as u64
    }

    /// The tree that the prelude walks on a GPU: lane `i` takes in lane `i + d`, for `d` from half a wave down to 1.
    fn reduce<T: Element>(&self, size: usize, op: impl Fn(T, T) -> T) -> T {
        let compute = || {
            let mut values: Vec<T> = self.values.iter().map(|value| unpack(value.get())).collect();
            let mut distance = size / 2;
            while distance > 0 {
                for lane in 0..distance.min(values.len().saturating_sub(distance)) {
                    values[lane] = op(values[lane], values[lane + distance]);
                }
                distance /= 2;
            }
            values.first().copied().map_or(0, pack)
        };
        unpack(self.once(compute))
    }

    /// The prefix over lanes 0 to this one, in the order of the prelude (Kogge and Stone).
    fn scan<T: Element>(&self, size: usize, op: impl Fn(T, T) -> T) -> T {
        self.once(|| {
            let mut distance = 1;
            while distance < size {
                for lane in (distance..self.values.len()).rev() {
                    let value =
                        op(unpack(self.values[lane - distance].get()), unpack(self.values[lane].get()));
                    self.values[lane].set(pack(value));
                }
                distance *= 2;
            }
            1
        });
        self.of(self.lane).unwrap_or_else(T::zeroed)
    }
}

impl<'g> WorkItem<'g> {
    /// Gives a value to the wave, and waits until all lanes have given theirs.
    async fn give<T: Element>(self, value: T, place: &'static Location<'static>) -> Given<'g> {
        let Wave { values, result, round } = self.wave();
        let (round, lane) = (round.get(), self.lane());
        let values = &values[round];
        let values = values.get(..self.wave_items()).unwrap_or(values);
        if let Some(slot) = values.get(lane) {
            slot.set(pack(value));
        }
        self.arrive(Stop::Wave, place).await;
        // Whoever is released first clears nothing: the result of this round was cleared with the last release.
        Given { values, result: &result[round], lane }
    }

    /// The value that `lane` gives; one's own where there is no such lane. At most 16 bytes.
    #[track_caller]
    pub fn shuffle<T: Element>(self, value: T, lane: usize) -> impl Future<Output = T> + use<'g, T> {
        let place = Location::caller();
        async move { self.give(value, place).await.or_own(Some(lane), value) }
    }

    /// The value of the lane `distance` below; one's own where there is none.
    #[track_caller]
    pub fn shuffle_up<T: Element>(self, value: T, distance: usize) -> impl Future<Output = T> + use<'g, T> {
        let place = Location::caller();
        async move { self.give(value, place).await.or_own(self.lane().checked_sub(distance), value) }
    }

    /// The value of the lane `distance` above; one's own where there is none.
    #[track_caller]
    pub fn shuffle_down<T: Element>(self, value: T, distance: usize) -> impl Future<Output = T> + use<'g, T> {
        let place = Location::caller();
        async move { self.give(value, place).await.or_own(self.lane().checked_add(distance), value) }
    }

    /// The value of the lane whose number differs in the bits of `mask`; one's own where there is none.
    #[track_caller]
    pub fn shuffle_xor<T: Element>(self, value: T, mask: usize) -> impl Future<Output = T> + use<'g, T> {
        let place = Location::caller();
        async move { self.give(value, place).await.or_own(Some(self.lane() ^ mask), value) }
    }

    /// A bit for each lane: whether its condition holds. Lane 0 is the lowest.
    #[track_caller]
    pub fn wave_ballot(self, condition: bool) -> impl Future<Output = u64> + use<'g> {
        let place = Location::caller();
        async move { self.give(u8::from(condition), place).await.ballot() }
    }

    /// Whether the condition holds in any lane.
    #[track_caller]
    pub fn wave_any(self, condition: bool) -> impl Future<Output = bool> + use<'g> {
        let place = Location::caller();
        async move { self.give(u8::from(condition), place).await.ballot() != 0 }
    }

    /// Whether the condition holds in every lane.
    #[track_caller]
    pub fn wave_all(self, condition: bool) -> impl Future<Output = bool> + use<'g> {
        let place = Location::caller();
        async move { self.give(u8::from(!condition), place).await.ballot() == 0 }
    }

    /// All values of the wave combined, for every lane, in the order of the device's prelude, so that sums of floating
    /// point numbers are the same there and here.
    #[track_caller]
    pub fn wave_reduce<T: Element, F: Fn(T, T) -> T>(
        self,
        value: T,
        op: F,
    ) -> impl Future<Output = T> + use<'g, T, F> {
        let place = Location::caller();
        async move { self.give(value, place).await.reduce(self.wave_size(), op) }
    }

    /// The sum over the wave.
    #[track_caller]
    pub fn wave_sum<T: Number>(self, value: T) -> impl Future<Output = T> + use<'g, T> {
        self.wave_reduce(value, T::plus)
    }

    /// The smallest value of the wave.
    #[track_caller]
    pub fn wave_min<T: Number>(self, value: T) -> impl Future<Output = T> + use<'g, T> {
        self.wave_reduce(value, T::least)
    }

    /// The largest value of the wave.
    #[track_caller]
    pub fn wave_max<T: Number>(self, value: T) -> impl Future<Output = T> + use<'g, T> {
        self.wave_reduce(value, T::greatest)
    }

    /// The sum over lanes 0 to this one.
    #[track_caller]
    pub fn wave_scan<T: Number>(self, value: T) -> impl Future<Output = T> + use<'g, T> {
        let place = Location::caller();
        async move { self.give(value, place).await.scan(self.wave_size(), T::plus) }
    }
}
