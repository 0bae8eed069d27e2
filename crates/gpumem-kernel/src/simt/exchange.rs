//! Operations of one wave: its work-items exchange values.

use crate::simt::{
    Number, NumberedItem, WorkItem,
    barrier::Stop,
    name::SiteName,
    wave::{LANES, Set, pack, reduce_lanes, scan_lanes, unpack},
};
use gpumem_core::Element;
use std::{
    cell::Cell,
    panic::Location,
    pin::Pin,
    task::{Context, Poll},
};

/// The values that the lanes have given, as one of them reads them.
struct Given<'g> {
    values: &'g [Cell<u128>],
    result: &'g Cell<Option<u128>>,
    lane: usize,
    wave_size: usize,
}

impl Given<'_> {
    #[inline(always)]
    fn of<T: Element>(&self, lane: usize) -> Option<T> {
        self.values.get(lane).map(|value| unpack(value.get()))
    }

    /// The lane's value, or one's own where there is no such lane.
    #[inline(always)]
    fn or_own<T: Element>(&self, lane: Option<usize>) -> T {
        lane.and_then(|lane| self.of(lane)).or_else(|| self.of(self.lane)).unwrap_or_else(T::zeroed)
    }

    /// Computed once for all lanes, because each would get the same.
    #[inline(always)]
    fn once(&self, compute: impl FnOnce() -> u128) -> u128 {
        self.result.get().unwrap_or_else(|| {
            let result = compute();
            self.result.set(Some(result));
            result
        })
    }

    #[inline(always)]
    fn ballot(&self) -> u64 {
        let bits = || {
            let set = self.values.iter().enumerate().filter(|(_, value)| value.get() != 0);
            set.fold(0, |bits, (lane, _)| bits | 1u64 << lane)
        };
        self.once(|| u128::from(bits())) as u64
    }

    /// The values as they are, followed by zeros.
    #[inline(always)]
    fn unpacked<T: Element>(&self) -> [T; LANES] {
        let mut values = [T::zeroed(); LANES];
        values.iter_mut().zip(self.values).for_each(|(to, from)| *to = unpack(from.get()));
        values
    }

    #[inline(always)]
    fn reduce<T: Element>(&self, op: impl Fn(T, T) -> T) -> T {
        let compute = || {
            let mut values = self.unpacked::<T>();
            pack(reduce_lanes(&mut values[..self.values.len()], self.wave_size, op))
        };
        unpack(self.once(compute))
    }

    /// The prefix over lanes 0 to this one.
    #[inline(always)]
    fn scan<T: Element>(&self, op: impl Fn(T, T) -> T) -> T {
        self.once(|| {
            let mut values = self.unpacked::<T>();
            scan_lanes(&mut values[..self.values.len()], self.wave_size, op);
            self.values.iter().zip(values).for_each(|(to, from)| to.set(pack(from)));
            1
        });
        self.of(self.lane).unwrap_or_else(T::zeroed)
    }
}

/// Gives a value to the wave, waits until all lanes have given theirs, and computes a result from them.
///
/// Not an async block: that would hold its captures twice, and every suspended body holds this.
struct Exchange<'g, T, F> {
    item: WorkItem<'g>,
    name: SiteName,
    value: T,
    /// Taken when the values are there.
    read: Option<F>,
    waiting: bool,
}

// Nothing in it is ever pinned.
impl<T, F> Unpin for Exchange<'_, T, F> {}

impl<'g, T: Element, R, F: FnOnce(Given<'g>) -> R> Future for Exchange<'g, T, F> {
    type Output = R;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<R> {
        let (item, wave) = (self.item, self.item.wave());
        let lane = item.lane();
        if !std::mem::replace(&mut self.waiting, true) {
            if let Some(slot) = wave.open().and_then(|set| set.values.get(lane)) {
                slot.set(pack(self.value));
            }
            item.say(Stop::Wave, self.name);
            return Poll::Pending;
        }
        let Some(Set { values, result }) = wave.closed() else { return Poll::Pending };
        let values = values.get(..item.wave_items()).unwrap_or(values);
        match self.read.take() {
            Some(read) => Poll::Ready(read(Given { values, result, lane, wave_size: item.wave_size() })),
            // Polled after its end, which no `.await` does.
            None => Poll::Pending,
        }
    }
}

impl<'g> WorkItem<'g> {
    #[inline(always)]
    fn exchange<T: Element, R, F: FnOnce(Given<'g>) -> R>(
        self,
        name: SiteName,
        value: T,
        read: F,
    ) -> Exchange<'g, T, F> {
        Exchange { item: self, name, value, read: Some(read), waiting: false }
    }
}

/// The operations of a work-item, known by their places, and of a numbered one.
macro_rules! operations {
    ($(
        $(#[$about:meta])*
        fn $name:ident $(<$($generic:ident: $bound:path),+>)? ($($argument:ident: $ty:ty),+) -> $output:ty { $value:expr, $read:expr }
    )*) => {
        impl<'g> WorkItem<'g> {
            $(
                $(#[$about])*
                #[track_caller]
                pub fn $name $(<$($generic: $bound),+>)? (self, $($argument: $ty),+) -> impl Future<Output = $output> + use<'g $(, $($generic),+)?> {
                    self.exchange(SiteName::at(Location::caller()), $value, $read)
                }
            )*

            /// All values of the wave combined, for every lane, in the order of the device's prelude, so that sums of floating
            /// point numbers are the same there and here.
            #[track_caller]
            pub fn wave_reduce<T: Element, F: Fn(T, T) -> T>(
                self,
                value: T,
                op: F,
            ) -> impl Future<Output = T> + use<'g, T, F> {
                self.exchange(SiteName::at(Location::caller()), value, move |given| given.reduce(op))
            }
        }

        impl<'g> NumberedItem<'g> {
            $(
                /// As that of [`WorkItem`].
                #[track_caller]
                pub fn $name $(<$($generic: $bound),+>)? (self, $($argument: $ty),+) -> impl Future<Output = $output> + use<'g $(, $($generic),+)?> {
                    self.item.exchange(SiteName::numbered(self.number, Location::caller()), $value, $read)
                }
            )*

            /// As that of [`WorkItem`].
            #[track_caller]
            pub fn wave_reduce<T: Element, F: Fn(T, T) -> T>(
                self,
                value: T,
                op: F,
            ) -> impl Future<Output = T> + use<'g, T, F> {
                let name = SiteName::numbered(self.number, Location::caller());
                self.item.exchange(name, value, move |given| given.reduce(op))
            }
        }
    };
}

operations! {
    /// The value that `lane` gives; one's own where there is no such lane. At most 16 bytes.
    fn shuffle<T: Element>(value: T, lane: usize) -> T {
        value, move |given| given.or_own(Some(lane))
    }

    /// The value of the lane `distance` below; one's own where there is none.
    fn shuffle_up<T: Element>(value: T, distance: usize) -> T {
        value, move |given| given.or_own(given.lane.checked_sub(distance))
    }

    /// The value of the lane `distance` above; one's own where there is none.
    fn shuffle_down<T: Element>(value: T, distance: usize) -> T {
        value, move |given| given.or_own(given.lane.checked_add(distance))
    }

    /// The value of the lane whose number differs in the bits of `mask`; one's own where there is none.
    fn shuffle_xor<T: Element>(value: T, mask: usize) -> T {
        value, move |given| given.or_own(Some(given.lane ^ mask))
    }

    /// A bit for each lane: whether its condition holds. Lane 0 is the lowest.
    fn wave_ballot(condition: bool) -> u64 {
        u8::from(condition), |given| given.ballot()
    }

    /// Whether the condition holds in any lane.
    fn wave_any(condition: bool) -> bool {
        u8::from(condition), |given| given.ballot() != 0
    }

    /// Whether the condition holds in every lane.
    fn wave_all(condition: bool) -> bool {
        u8::from(!condition), |given| given.ballot() == 0
    }

    /// The sum over the wave.
    fn wave_sum<T: Number>(value: T) -> T {
        value, |given| given.reduce(T::plus)
    }

    /// The smallest value of the wave.
    fn wave_min<T: Number>(value: T) -> T {
        value, |given| given.reduce(T::least)
    }

    /// The largest value of the wave.
    fn wave_max<T: Number>(value: T) -> T {
        value, |given| given.reduce(T::greatest)
    }

    /// The sum over lanes 0 to this one.
    fn wave_scan<T: Number>(value: T) -> T {
        value, move |given| given.scan(T::plus)
    }
}
