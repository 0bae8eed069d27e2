//! A long piece of work that calls everything: streams, copies of every kind, host arrays, events, page-locking.

#![allow(dead_code, reason = "each test program uses a part")]

use gpumem_core::{Backend, ErrorKind, Result};
use gpumem_runtime::{Device, PinnedArray};
use ndarray::{Array1, Array2, Ix2, s};

/// The caller's arrays, and the results in them. They outlive the work, as a user's do.
pub(crate) struct Arrived {
    pub(crate) into: Array2<u32>,
    pub(crate) scoped: Array2<u32>,
    pub(crate) locked: Array2<u32>,
}

/// The contents of the caller's arrays before.
pub(crate) const UNTOUCHED: u32 = 0xDEAD_BEEF;

pub(crate) fn numbers() -> Array2<u32> {
    Array2::from_shape_fn((23, 29), |(i, j)| (i * 29 + j) as u32)
}

impl Arrived {
    pub(crate) fn new() -> Self {
        let untouched = || Array2::from_elem((23, 29), UNTOUCHED);
        Self { into: untouched(), scoped: untouched(), locked: untouched() }
    }

    /// Tells whether every array holds its old contents or the intended ones: never others, and a mixture only where the array is
    /// page-locked, which takes a call for each run of pages.
    pub(crate) fn is_whole(&self) -> bool {
        let numbers = numbers();
        let is_whole =
            |array: &Array2<u32>| *array == numbers || array.iter().all(|value| *value == UNTOUCHED);
        let mut locked = self.locked.iter().zip(&numbers);
        is_whole(&self.into)
            && is_whole(&self.scoped)
            && locked.all(|(value, number)| [UNTOUCHED, *number].contains(value))
    }
}

/// Does it all. An error ends it where it happens; no error means that all contents are right.
pub(crate) fn run<B: Backend>(device: &Device<B>, arrived: &mut Arrived) -> Result<()> {
    let numbers = numbers();
    let (one, two) = (device.stream()?, device.stream()?);
    let mut array = one.to_device(&numbers)?;
    let copy = two.to_device(&array)?;
    one.fill(&mut array.slice_mut(s![..;2, 3..;3])?, 7)?;
    two.copy_to_device(&mut array.slice_mut(s![..;2, 3..;3])?, &copy.slice(s![..;2, 3..;3])?)?;
    let mut odd = one.device_array::<[u16; 3], _>(100)?;
    one.fill(&mut odd, [1, 2, 3])?;
    let pinned: PinnedArray<u32, Ix2, B> = one.copy_to_host(&array.slice(s![..;-1, ..])?)?;
    let event = two.record_event()?;
    one.wait(&event)?;
    array.copy_to_host_into(arrived.into.view_mut())?;
    one.scope(|scope| {
        scope.copy_to_host(&copy, arrived.scoped.view_mut())?;
        scope.stream().fill(&mut odd, [4, 5, 6])
    })??;
    device.pinned([arrived.locked.view_mut()], |locked| two.copy_to_host_into(&copy, &mut locked[0]))??;
    let mut managed = device.managed_array::<u32, _>((23, 29), Default::default())?;
    managed.device_view_mut().copy_to_device(&array)?;
    event.synchronize()?;
    let odd = odd.copy_to_host()?;
    one.synchronize()?;
    two.synchronize()?;
    device.synchronize()?;
    let seen = (pinned.copy_to_host()?, managed.copy_to_host()?, array.get((22, 28))?);
    // All work is known to be good: from here on a wrong element is a wrong element.
    assert_eq!(seen.0, numbers.slice(s![..;-1, ..]));
    assert_eq!(seen.1, numbers);
    assert_eq!(seen.2, numbers[(22, 28)]);
    assert_eq!(odd, Array1::from_elem(100, [4u16, 5, 6]));
    for array in [&arrived.into, &arrived.scoped, &arrived.locked] {
        assert_eq!(array, &numbers);
    }
    Ok(())
}

/// The device works as devices do.
pub(crate) fn is_usable<B: Backend>(device: &Device<B>) {
    let mut arrived = Arrived::new();
    run(device, &mut arrived).unwrap();
}

pub(crate) fn is_lost<T>(result: Result<T>, why: &str) -> bool {
    matches!(result, Err(error) if matches!(error.kind(), ErrorKind::DeviceLost { cause } if cause == why))
}
