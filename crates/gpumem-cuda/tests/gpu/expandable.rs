//! Memory that grows in place: through the trait, and under a pool.

use crate::{
    Case, Skip,
    fixture::{Lab, Numbers},
};
use gpumem_core::{
    Backend, CopyRegion, DeviceSelector, Endpoint, ErrorKind, Fill, MemoryKind, Pattern, Reservation, Stream,
};
use gpumem_cuda::Cuda;
use gpumem_runtime::{
    Device, DeviceArray,
    memory::{MemoryResource, Pool, PoolOptions, Trim},
};
use ndarray::Ix1;
use std::{sync::Arc, time::Instant};

pub(crate) const CASES: &[Case] = &[
    ("copies_and_fills_cross_what_was_mapped_apart", across),
    ("what_is_taken_back_is_free_and_comes_again", taken_back),
    ("a_peer_reaches_what_was_mapped_before_and_after", peer),
    ("a_pool_grows_in_place", pool),
    ("a_pool_grows_in_place_until_the_device_is_full", full),
    ("memory_in_place_is_as_fast_as_pieces", speed),
];

const NONE: Skip = "the driver cannot map memory behind addresses";
const ONE: Skip = "there is only one device";
const MIB: usize = 1 << 20;

fn reserve(lab: &Lab, bytes: usize) -> Result<Reservation, Skip> {
    match Cuda::reserve(&lab.device, bytes) {
        Ok(place) => {
            assert!(place.bytes >= bytes && place.bytes.is_multiple_of(place.page));
            assert!(place.address.is_multiple_of(place.page as u64));
            Ok(place)
        }
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
            Err(NONE)
        }
    }
}

/// Three parts of 1, 2 and 3 pages.
fn three(lab: &Lab) -> Result<Reservation, Skip> {
    let place = reserve(lab, 64 * MIB)?;
    for (from, pages) in [(0, 1), (1, 2), (3, 3)] {
        // SAFETY: behind what is there, whole pages.
        unsafe { Cuda::commit(&lab.device, &place, from * place.page, pages * place.page) }.unwrap();
    }
    Ok(place)
}

fn give_back(lab: &Lab, place: &Reservation) {
    for (from, pages) in [(3, 3), (1, 2), (0, 1)] {
        // SAFETY: the last part, which nothing uses.
        unsafe { Cuda::decommit(&lab.device, place, from * place.page, pages * place.page) }.unwrap();
    }
    // SAFETY: nothing is behind it.
    unsafe { Cuda::unreserve(&lab.device, place) }.unwrap();
}

fn across(lab: &Lab) -> Result<(), Skip> {
    let place = three(lab)?;
    let (page, stream) = (place.page, lab.stream());
    let data = Numbers(7).bytes(6 * page);
    lab.write(place.address, &data);
    assert!(lab.read(place.address, 6 * page) == data);
    // From the first part's middle into the third's, of the device alone; then rows with gaps between them.
    let (from, to, bytes) = (place.address + 100, place.address + 3 * page as u64 - 5000, page + 10_000);
    lab.copy(&stream, &CopyRegion::linear((from, lab.here()), (to, lab.here()), bytes));
    stream.synchronize().unwrap();
    assert!(lab.read(to, bytes) == data[100..100 + bytes]);
    lab.write(place.address, &data);
    let (width, rows) = (page / 4 - 64, 9);
    let region = CopyRegion {
        source: Endpoint { address: place.address, space: lab.here(), pitch: [page / 4, 0] },
        destination: Endpoint {
            address: place.address + 3 * page as u64,
            space: lab.here(),
            pitch: [width, 0],
        },
        bytes: width,
        rows,
        slices: 1,
    };
    lab.copy(&stream, &region);
    stream.synchronize().unwrap();
    let expected: Vec<u8> = data.chunks(page / 4).take(rows).flat_map(|row| row[..width].to_vec()).collect();
    assert!(lab.read(place.address + 3 * page as u64, rows * width) == expected);
    for (pattern, value) in [(Pattern::U8(0xA5), vec![0xA5]), (Pattern::U32(0x0403_0201), vec![1, 2, 3, 4])] {
        let (address, bytes) = (place.address + page as u64 - 4096, 3 * page + 8192);
        lab.fill(&stream, &Fill { address, pattern, count: bytes / value.len(), rows: 1, pitch: 0 });
        stream.synchronize().unwrap();
        assert!(lab.read(address, bytes).chunks_exact(value.len()).all(|chunk| chunk == value));
    }
    let inside = place.address + 3 * page as u64;
    let found = Cuda::pointer_info(&lab.device, inside).unwrap().unwrap();
    // Behind the parts the addresses are only reserved, which must not count as memory.
    assert!(found.ordinal == 0 && found.end > inside && found.end <= place.address + 6 * page as u64);
    let behind = Cuda::pointer_info(&lab.device, place.address + 8 * page as u64);
    assert_eq!(behind, Ok(None), "addresses that are only reserved");
    // SAFETY: refused, or a handle that is never opened.
    let exported = unsafe { Cuda::export_memory(&lab.device, place.address, 4096) };
    println!("  exporting mapped memory: {:?}", exported.map(drop).map_err(|error| error.to_string()));
    give_back(lab, &place);
    Ok(())
}

fn taken_back(lab: &Lab) -> Result<(), Skip> {
    let place = reserve(lab, 2048 * MIB)?;
    let free = || Cuda::memory_info(&lab.device).unwrap().free;
    let part = 512 * MIB;
    let before = free();
    for round in 0..3 {
        for number in 0..2 {
            // SAFETY: behind what is there, whole pages.
            unsafe { Cuda::commit(&lab.device, &place, number * part, part) }.unwrap();
        }
        assert!(free() + 2 * part <= before + 64 * MIB, "round {round}");
        lab.write(place.address + part as u64 - 8, &[round; 16]);
        assert_eq!(lab.read(place.address + part as u64 - 8, 16), [round; 16]);
        // SAFETY: a part that was not put in at once: refused.
        let error = unsafe { Cuda::decommit(&lab.device, &place, part / 2, part) }.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
        for number in [1, 0] {
            // SAFETY: the last part, which nothing uses.
            unsafe { Cuda::decommit(&lab.device, &place, number * part, part) }.unwrap();
        }
        assert!(free() + 64 * MIB >= before, "round {round}: {} of {before}", free());
    }
    // SAFETY: more than there are addresses: refused.
    let error = unsafe { Cuda::commit(&lab.device, &place, 0, place.bytes + place.page) }.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    // SAFETY: nothing is behind it.
    unsafe { Cuda::unreserve(&lab.device, &place) }.unwrap();
    Ok(())
}

fn peer(lab: &Lab) -> Result<(), Skip> {
    let other = Cuda::open(&DeviceSelector::ordinal("cuda", 1)).map(Lab::on).map_err(|_| ONE)?;
    if !Cuda::can_access_peer(&other.device, &lab.device).unwrap() {
        return Err("the devices do not reach each other");
    }
    let place = three(lab)?;
    let data = Numbers(3).bytes(6 * place.page);
    lab.write(place.address, &data);
    Cuda::set_peer_access(&other.device, &lab.device, true).unwrap();
    // SAFETY: behind what is there.
    unsafe { Cuda::commit(&lab.device, &place, 6 * place.page, place.page) }.unwrap();
    lab.write(place.address + 6 * place.page as u64, &data[..place.page]);
    let block = other.allocate(MemoryKind::Device, 7 * place.page);
    let stream = other.stream();
    // As memory of its own: only a device that reaches it directly can do that.
    let ends = ((place.address, other.here()), (gpumem_core::DeviceBuffer::address(&*block), other.here()));
    other.copy(&stream, &CopyRegion::linear(ends.0, ends.1, 7 * place.page));
    stream.synchronize().unwrap();
    assert!(other.read(ends.1.0, 6 * place.page) == data);
    Cuda::set_peer_access(&other.device, &lab.device, false).unwrap();
    // SAFETY: the last part, which nothing uses.
    unsafe { Cuda::decommit(&lab.device, &place, 6 * place.page, place.page) }.unwrap();
    give_back(lab, &place);
    Ok(())
}

fn device(lab: &Lab, options: PoolOptions) -> (Device<Cuda>, Arc<Pool<Cuda>>) {
    let device = Device::from_raw(lab.device.clone());
    let pool = Arc::new(Pool::new(device.driver_memory(), options));
    device.set_memory_resource(MemoryKind::Device, pool.clone()).unwrap();
    (device, pool)
}

fn options() -> PoolOptions {
    PoolOptions::device(256).expandable(true)
}

fn pool(lab: &Lab) -> Result<(), Skip> {
    let place = reserve(lab, MIB)?;
    // SAFETY: nothing is behind it.
    unsafe { Cuda::unreserve(&lab.device, &place) }.unwrap();
    let (device, pool) = device(lab, options().chunks(4 * MIB, 4 * MIB));
    let stream = device.stream().unwrap();
    let arrays: Vec<DeviceArray<u32, Ix1, Cuda>> =
        (0..40).map(|number| device.uninit_array(700_001).unwrap().fill(number).unwrap()).collect();
    let ends = arrays.iter().map(|array| (array.address() + 4 * 700_001).next_multiple_of(256));
    assert!(ends.zip(arrays.iter().skip(1)).all(|(end, next)| end == next.address()), "there are no borders");
    let is_right = |array: &DeviceArray<u32, Ix1, Cuda>, value: u32| {
        array.copy_to_host().unwrap().iter().all(|found| *found == value)
    };
    assert!(arrays.iter().zip(0..).all(|(array, value)| is_right(array, value)));
    // A kernel of the library over several steps: every axis turned.
    let numbers = ndarray::Array2::from_shape_fn((2000, 1500), |(row, column)| (row * 1500 + column) as u32);
    let there = device.to_device(&numbers).unwrap();
    let turned = device.to_device(&there.t()).unwrap();
    assert!(turned.copy_to_host().unwrap() == numbers.t());
    // SAFETY: refused.
    assert!(unsafe { arrays[0].ipc_handle() }.is_err(), "memory of a pool is not exported");
    let alone = device.ipc_array::<u32, _>(1000).unwrap();
    // SAFETY: it is never opened.
    unsafe { alone.ipc_handle() }.unwrap();
    stream.synchronize().unwrap();
    drop((arrays, there, turned, alone));
    device.trim(Trim::ALL).unwrap();
    assert_eq!((pool.statistics().reserved, device.take_errors()), (0, Vec::new()));
    Ok(())
}

fn full(lab: &Lab) -> Result<(), Skip> {
    reserve(lab, MIB).map(|place| {
        // SAFETY: nothing is behind it.
        unsafe { Cuda::unreserve(&lab.device, &place) }.unwrap();
    })?;
    let free = || Cuda::memory_info(&lab.device).unwrap().free;
    let before = free();
    let (device, pool) = device(lab, options());
    let mut arrays: Vec<_> = Vec::new();
    let error = loop {
        match device.uninit_array::<u8, _>(3 << 30) {
            Ok(array) => arrays.push(array),
            Err(error) => break error,
        }
    };
    assert!(error.is_out_of_memory() && arrays.len() > 1, "{error}");
    println!("  {} arrays of 3 GiB, {} MiB left", arrays.len(), free() / MIB);
    let before = arrays.len();
    arrays.truncate(before / 2);
    // What was free at the end goes back for memory of another kind of its own.
    let alone = device.ipc_array::<u8, _>((before / 3) << 30).unwrap();
    arrays.push(device.uninit_array::<u8, _>(3 << 30).unwrap());
    drop((arrays, alone));
    device.flush().unwrap();
    assert_eq!((pool.statistics().reserved, device.take_errors()), (0, Vec::new()));
    assert!(free() + 64 * MIB >= before, "{} of {before}", free());
    Ok(())
}

/// Prints; holds that a device fills both at about the same rate.
fn speed(lab: &Lab) -> Result<(), Skip> {
    reserve(lab, MIB).map(|place| {
        // SAFETY: nothing is behind it.
        unsafe { Cuda::unreserve(&lab.device, &place) }.unwrap();
    })?;
    let mut rates = Vec::new();
    for in_place in [false, true] {
        let (device, _) = device(lab, options().expandable(in_place));
        let stream = device.stream().unwrap();
        let mut kept = Vec::new();
        for bytes in [64 * MIB, 64 * MIB, 1024 * MIB] {
            let start = Instant::now();
            let array = device.uninit_array::<u8, _>(bytes).unwrap();
            let took = start.elapsed();
            println!("  in place {in_place}: {} MiB new in {took:?}", bytes / MIB);
            kept.push(array);
        }
        let mut array = device.device_array::<u8, _>(2048 * MIB).unwrap();
        let mut best = f64::MAX;
        for value in 0..8 {
            stream.synchronize().unwrap();
            let start = Instant::now();
            stream.fill(&mut array, value).unwrap();
            stream.synchronize().unwrap();
            best = best.min(start.elapsed().as_secs_f64());
        }
        rates.push(2.0 / best);
        println!("  in place {in_place}: filled at {:.0} GiB/s", 2.0 / best);
        let start = Instant::now();
        for _ in 0..20 {
            let arrays: Vec<_> = (0..8).map(|_| device.uninit_array::<u8, _>(64 * MIB).unwrap()).collect();
            drop(arrays);
            device.trim(Trim::UNUSED).unwrap();
        }
        println!("  in place {in_place}: 8 times 64 MiB, and all given back: {:?}", start.elapsed() / 20);
    }
    assert!(rates[1] > rates[0] * 0.9, "{rates:?}");
    Ok(())
}
