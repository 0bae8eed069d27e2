//! All accesses to memory through pointers, once each and small enough for Miri: transfers of all layouts, views,
//! page-locked arrays, fills, scopes, graphs, arrays that leave the device, and memory that is being freed.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{Device, Scalar, SpillManager, SpillOptions, field, memory::Trim, reads, writes};
use ndarray::{Array1, Array2, Array3, ShapeBuilder, aview1, s};
use std::ops::Deref;

/// A device of one test's own, with the seeded schedule that tears work into pieces. It has no threads.
fn device(seed: u64) -> Emptied {
    let options = HostOptions::new().memory(1 << 20).adversarial(seed);
    Emptied(Some(Device::from_raw(Host::open_with(&options).unwrap())))
}

/// A device that is closed with the test: a thread that frees what is left has ended, which Miri wants.
struct Emptied(Option<Device<Host>>);

impl Deref for Emptied {
    type Target = Device<Host>;

    fn deref(&self) -> &Device<Host> {
        self.0.as_ref().unwrap()
    }
}

impl Drop for Emptied {
    fn drop(&mut self) {
        self.flush().unwrap();
        self.trim(Trim::ALL).unwrap();
        self.0 = None;
        // Miri's clock counts steps, 5 µs for each: a second has ten times as many as that thread takes.
        std::thread::sleep(std::time::Duration::from_millis(if cfg!(miri) { 1000 } else { 0 }));
    }
}

fn cube() -> Array3<u16> {
    Array3::from_shape_fn((3, 4, 5), |(i, j, k)| (100 * i + 10 * j + k) as u16)
}

#[test]
fn arrays_of_any_layout_survive_a_round_trip() {
    let device = device(1);
    let cube = cube();
    let views = [
        cube.view(),
        cube.slice(s![..;-1, 1..3, ..;2]),
        cube.slice(s![1..2, ..;-2, ..;-1]),
        cube.view().reversed_axes(),
        cube.slice(s![0..0, .., ..]),
    ];
    for view in views {
        let array = device.to_device(&view).unwrap();
        assert_eq!(array.copy_to_host().unwrap(), view);
        let mut wide = Array3::<u16>::from_elem((view.dim().0, view.dim().1, 2 * view.dim().2).f(), 7);
        array.copy_to_host_into(wide.slice_mut(s![.., ..;-1, ..;2])).unwrap();
        assert_eq!(wide.slice(s![.., ..;-1, ..;2]), view);
        assert!(wide.slice(s![.., .., 1..;2]).iter().all(|element| *element == 7));
    }
}

#[test]
fn views_share_memory() {
    let device = device(2);
    let cube = cube();
    let mut array = device.to_device(&cube).unwrap();
    assert_eq!(array.slice(s![1, .., ..;-2]).unwrap().copy_to_host().unwrap(), cube.slice(s![1, .., ..;-2]));
    array.slice_mut(s![.., 2, ..]).unwrap().fill(9).unwrap();
    array.set((0, 0, 0), 5).unwrap();
    assert_eq!(array.get((0, 0, 0)).unwrap(), 5);
    let mut expected = cube;
    expected.slice_mut(s![.., 2, ..]).fill(9);
    expected[(0, 0, 0)] = 5;
    assert_eq!(array.reshape((12, 5)).unwrap().copy_to_host().unwrap().as_slice(), expected.as_slice());
    array.assign(&Scalar(3)).unwrap();
    assert!(array.copy_to_host().unwrap().iter().all(|element| *element == 3));
}

#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Particle {
    position: [f32; 3],
    mass: f32,
}

#[test]
fn fields_of_records_are_views() {
    let device = device(3);
    let particles: Vec<_> =
        (0..6).map(|i| Particle { position: [i as f32; 3], mass: 10.0 * i as f32 }).collect();
    let mut array = device.to_device(&particles).unwrap();
    let masses = array.field(field!(Particle, mass)).unwrap().copy_to_host().unwrap();
    assert_eq!(masses, Array1::from_iter(particles.iter().map(|particle| particle.mass)));
    array
        .field_mut(field!(Particle, mass))
        .unwrap()
        .assign(&aview1(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
        .unwrap();
    assert_eq!(array.get(4).unwrap(), Particle { position: [4.0; 3], mass: 5.0 });
}

#[test]
fn pinned_arrays_are_written_and_read_through_views() {
    let device = device(4);
    let stream = device.stream().unwrap();
    let mut pinned = device.pinned_array::<f32, _>((4, 6)).unwrap();
    pinned.view_mut().unwrap().indexed_iter_mut().for_each(|((i, j), slot)| *slot = (10 * i + j) as f32);
    let array = stream.to_device(&pinned).unwrap();
    let back = stream.copy_to_host(&array.slice(s![..;-1, ..;3]).unwrap()).unwrap();
    assert_eq!(back.view().unwrap(), pinned.view().unwrap().slice(s![..;-1, ..;3]));
    pinned.view_mut().unwrap().fill(0.0);
    assert_eq!(array.get((3, 5)).unwrap(), 35.0);
}

#[test]
fn downloads_into_borrowed_arrays_arrive_by_the_end_of_the_scope() {
    let device = device(5);
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let source = Array2::from_shape_fn((5, 7), |(i, j)| (7 * i + j) as u8);
    let array = first.to_device(&source.t()).unwrap();
    let copy = second.to_device(&array).unwrap();
    let mut landed = Array2::<u8>::zeros((14, 5));
    first
        .scope(|scope| {
            scope.copy_to_host(&copy, landed.slice_mut(s![..;2, ..])).unwrap();
        })
        .unwrap();
    assert_eq!(landed.slice(s![..;2, ..]), source.t());
    assert!(landed.slice(s![1..;2, ..]).iter().all(|byte| *byte == 0));
}

/// 12 bytes that no driver fill repeats are doubled on the device.
#[test]
fn odd_values_fill_whole_arrays() {
    let device = device(6);
    let mut array = device.device_array::<[u32; 3], _>((3, 50)).unwrap();
    array.fill([1, 2, 3]).unwrap();
    assert!(array.copy_to_host().unwrap().iter().all(|element| *element == [1, 2, 3]));
    array.slice_mut(s![1, ..;-3]).unwrap().fill([4, 5, 6]).unwrap();
    let count = array.copy_to_host().unwrap().iter().filter(|element| **element == [4, 5, 6]).count();
    assert_eq!(count, 17);
}

#[test]
fn dropped_memory_is_freed_after_its_last_use() {
    let device = device(7);
    let stream = device.stream().unwrap();
    for _ in 0..15 {
        let array = stream.to_device(&[1_u8, 2, 3]).unwrap();
        drop(stream.copy_to_host(&array).unwrap());
    }
    drop(stream);
    device.flush().unwrap();
    assert_eq!(device.raw().counters().live_allocations, 0);
    assert!(device.take_errors().is_empty());
}

/// A graph with a temporary, elements of the host, and memory that each launch makes.
#[test]
fn launches_of_a_graph_use_their_own_arrays() {
    let device = device(8);
    let stream = device.stream().unwrap();
    let graph =
        device.record((reads::<u16, _>((3, 4, 5)), writes::<u16, _>((3, 4, 5))), |stream, (x, mut y)| {
            let turned = stream.to_device(&x.slice(s![..;-1, .., ..;-1])?)?;
            stream.copy_to_device(&mut y, &turned)?;
            stream.copy_to_device(&mut y.slice_mut(s![0, 1, ..])?, &stream.to_device(&[9u16; 5])?)?;
            stream.fill(&mut y.slice_mut(s![1.., 2, ..])?, 7)?;
            stream.copy_to_host(&turned)
        });
    let graph = graph.unwrap();
    for add in [0, 1000] {
        let host = cube() + add;
        let (x, mut y) = (device.to_device(&host).unwrap(), device.device_array((3, 4, 5)).unwrap());
        let turned = graph.launch(&stream, (&x, &mut y)).unwrap();
        drop(x);
        let mut expected = host.slice(s![..;-1, .., ..;-1]).to_owned();
        assert_eq!(turned.view().unwrap(), expected);
        expected.slice_mut(s![0, 1, ..]).fill(9);
        expected.slice_mut(s![1.., 2, ..]).fill(7);
        assert_eq!(y.copy_to_host().unwrap(), expected);
    }
}

#[test]
fn arrays_that_leave_the_device_come_back() {
    let device = device(9);
    let stream = device.stream().unwrap();
    let spilling = SpillManager::new(&device, SpillOptions::new()).unwrap();
    let array = device.to_device(&cube()).unwrap();
    let mut array = spilling.add(array).map_err(|(_, error)| error).unwrap();
    assert!(array.evict().unwrap());
    let mut view = array.get_mut(&stream).unwrap();
    stream.fill(&mut view.slice_mut(s![.., 1, ..]).unwrap(), 7).unwrap();
    drop(view);
    assert!(spilling.sleep().unwrap().evicted > 0);
    assert!(spilling.wake(&stream).unwrap() > 0);
    let array = array.into_array(&stream).map_err(|(_, error)| error).unwrap();
    let mut expected = cube();
    expected.slice_mut(s![.., 1, ..]).fill(7);
    assert_eq!(array.copy_to_host().unwrap(), expected);
}
