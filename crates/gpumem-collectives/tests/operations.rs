//! Every operation with every layout, element and number of ranks gives ndarray's answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "suite/aliases.rs"]
mod aliases;
mod common;
#[cfg(all(target_os = "linux", not(miri)))]
#[path = "common/machines.rs"]
mod machines;
#[path = "suite/operations.rs"]
mod suite;
#[path = "suite/tables.rs"]
mod tables;

#[test]
#[cfg_attr(miri, ignore = "starts processes")]
fn all_of_this_holds_over_mpi() {
    if common::launcher::of_this_process().is_some() {
        return;
    }
    common::launcher::pass(4, &[], &[]);
    common::launcher::pass(4, &["are_moved"], &[("GPUMEM_COLLECTIVE_CHECK", "1")]);
}

/// Two networks stand for two machines.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn all_of_this_holds_between_two_machines() {
    let test = "all_of_this_holds_between_two_machines";
    if let Some(place) = common::launcher::of_this_process() {
        // Under MPI on one machine there is nothing to see.
        return machines::number().map_or((), |_| exchange(place));
    }
    if machines::is_first_machine(test) {
        let machines = machines::Machines::new();
        let Some(brought) = machines.pass(2, &[test, "--exact"]) else { return };
        println!("{brought:?} of {CROSSING} bytes");
        for bytes in [brought.first, brought.second] {
            assert!(bytes > CROSSING / 10 * 9, "{brought:?} of {CROSSING} bytes");
        }
        machines.pass(2, &["records_are_moved", "sums_are_those_of_ndarray"]);
    }
}

/// Bytes that each machine must get from the other in [`exchange`]: two arrays that are sent, and a sum.
#[cfg(all(target_os = "linux", not(miri)))]
const CROSSING: u64 = 3 * 4 * ELEMENTS as u64;
#[cfg(all(target_os = "linux", not(miri)))]
const ELEMENTS: usize = 2 << 20;

/// Two ranks of one machine, and two of the other, exchange arrays.
#[cfg(all(target_os = "linux", not(miri)))]
fn exchange(place: (usize, usize)) {
    use common::*;
    let device = concurrent();
    let comm = launcher::join(&device, 4, &gpumem_collectives::Options::new(), place).unwrap();
    let (rank, stream) = (comm.rank(), device.stream().unwrap());
    let own = stream.to_device(&[machines::number().unwrap()]).unwrap();
    let mut numbers = stream.device_array::<u64, _>(4).unwrap();
    comm.on(&stream).all_gather(&own, &mut numbers).unwrap();
    let numbers = numbers.copy_to_host().unwrap().to_vec();
    assert!(numbers[0] == numbers[1] && numbers[2] == numbers[3] && numbers[0] != numbers[3], "{numbers:?}");

    let (mut array, other) = (stream.to_device(&vec![rank as i32; ELEMENTS]).unwrap(), (rank + 2) % 4);
    let mut from_other = stream.device_array::<i32, _>(ELEMENTS).unwrap();
    comm.group(&stream, |group| {
        group.send(&array, other)?;
        group.receive(&mut from_other, other)
    })
    .unwrap();
    comm.on(&stream).all_reduce(gpumem_collectives::InPlace, &mut array, gpumem_collectives::Sum).unwrap();
    assert!(from_other.copy_to_host().unwrap().iter().all(|value| *value == other as i32));
    assert!(array.copy_to_host().unwrap().iter().all(|value| *value == 6));
}
