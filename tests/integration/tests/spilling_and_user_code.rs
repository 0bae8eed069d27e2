//! Arrays that leave the device, beside other threads and code of the user that use them at the worst moment.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::host;
use gpumem_host::HostOptions;
use gpumem_runtime::{SpillManager, SpillOptions};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

/// Ends a loop of another thread, also where this one panics.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The order of the last uses is made while they change.
#[test]
fn arrays_are_put_in_order_while_they_are_used() {
    const COUNT: usize = 2000;
    let (device, _raw) = host(HostOptions::new());
    let (spilling, stream) =
        (SpillManager::new(&device, SpillOptions::new()).unwrap(), device.stream().unwrap());
    let array =
        |_| spilling.add(device.device_array::<u8, _>(16).unwrap()).map_err(|(_, error)| error).unwrap();
    let all: Vec<_> = (0..COUNT).map(array).collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let stream = device.stream().unwrap();
            let numbers = (0_usize..).map(|number| number.wrapping_mul(7919) % COUNT);
            for number in numbers.take_while(|_| !is_over.load(Ordering::Relaxed)) {
                drop(all[number].get(&stream).unwrap());
            }
        });
        let _end = EndOnDrop(&is_over);
        (0..300).for_each(|_| assert_eq!(spilling.wake(&stream).unwrap(), 0));
    });
}
