//! Sources and destinations of the user's own, implemented wrongly on purpose.

use super::device;
use gpumem_core::MappedOptions;
use gpumem_host::Host;
use gpumem_integration::fill;
use gpumem_kernel::{InOut, Out, config_for_items};
use gpumem_runtime::{Destination, FromDevice, MappedArray, Source, ToDevice};
use ndarray::Ix1;

/// Says one object to read from, and other ones to write to by turns.
struct Evil<'x> {
    source: &'x MappedArray<u32, Ix1, Host>,
    first: Vec<u32>,
    then: Vec<u32>,
    asked: usize,
}

impl ToDevice<Host> for Evil<'_> {
    type Elem = u32;
    type Dim = Ix1;
    fn source(&self) -> Source<'_, u32, Ix1, Host> {
        self.source.source()
    }
}

impl FromDevice<Host> for Evil<'_> {
    fn destination(&mut self) -> Destination<'_, u32, Ix1, Host> {
        self.asked += 1;
        if self.asked == 1 { self.first.destination() } else { self.then.destination() }
    }
}

#[test]
fn the_destination_is_queried_once() {
    let device = device();
    let stream = device.stream().unwrap();
    let mapped = device.mapped_array::<u32, _>(64usize, MappedOptions::default()).unwrap();
    let kernel = fill().load(&device).unwrap();
    let dims = config_for_items([64, 1, 1], [64, 1, 1]);
    let view = mapped.view().unwrap();
    let seen: &[u32] = view.as_slice().unwrap();
    let new = || Evil { source: &mapped, first: vec![3; 64], then: vec![4; 8], asked: 0 };
    let mut evil = new();
    kernel.launch(&stream, &dims, (Out(&mut evil), 7u32)).unwrap();
    assert_eq!((evil.asked, &evil.first[..], &evil.then[..]), (1, &[7; 64][..], &[4; 8][..]));
    let mut evil = new();
    kernel.launch(&stream, &config_for_items([32, 1, 1], [32, 1, 1]), (InOut(&mut evil), 7u32)).unwrap();
    assert_eq!((evil.asked, &evil.first[..32], &evil.first[32..]), (1, &[7; 32][..], &[3; 32][..]));
    let mut evil = new();
    stream.scope(|scope| kernel.launch_in(scope, &dims, (Out(&mut evil), 7u32))).unwrap().unwrap();
    assert_eq!((evil.asked, &evil.first[..], &evil.then[..]), (1, &[7; 64][..], &[4; 8][..]));
    assert!(seen.iter().all(|value| *value == 0), "nothing changes under a shared reference");
}
