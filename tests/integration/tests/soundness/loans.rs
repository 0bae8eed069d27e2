//! Memory that is lent while the library uses it.

use gpumem_runtime::Device;
use host_double::{Double, DoubleOptions};
use std::{sync::mpsc, thread, time::Duration};

/// Where no event covers all streams, the host waits for the borrower: not for work that it may enqueue later, without end.
#[test]
fn a_use_waits_once_for_a_borrower_on_any_stream() {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        let device = Device::<Double>::from_raw(Double::open_with(&DoubleOptions::default()).unwrap());
        let (one, other) = (device.stream().unwrap(), device.stream().unwrap());
        let mut array = device.device_array::<u32, _>(64).unwrap();
        let lent = device.to_device(&[1_u32; 64]).unwrap();
        let loans = [array.lend(&one).unwrap().on_any_stream(), lent.lend(&one).unwrap().on_any_stream()];
        other.fill(&mut array, 3).unwrap();
        other.copy_to_device(&mut array, &lent).unwrap();
        drop(loans);
        done.send(array.copy_to_host().unwrap().to_vec()).unwrap();
    });
    assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(vec![1; 64]));
}
