//! Arrays that leave the device while threads use, drop and bring them back: one leaves when nothing but its cell has it, by one move
//! at a time, and its elements are there wherever it is.

use super::{fixture::Mock, model, model_within, stream};
use gpumem_kernel::{Kernel, KernelDef, Slice, SliceMut, config_for_items};
use gpumem_runtime::{Device, DeviceView, DeviceViewMut, SpillManager, SpillOptions, Spillable, Stream};
use loom::thread;
use ndarray::Ix1;
use std::sync::Arc;

/// A piece of the pool's, so that an array that leaves makes room for another one.
const BYTES: usize = 32 << 20;

type Array = Spillable<u8, Ix1, Mock>;

/// The arrays of a device, and what works on them.
#[derive(Clone)]
struct Lab {
    manager: SpillManager<Mock>,
    reads: Kernel<(Slice<u8>, u32), Mock>,
    writes: Kernel<(SliceMut<u8>, u32), Mock>,
    raw: super::fixture::Device,
}

impl Lab {
    fn new(device: &Device<Mock>) -> Self {
        Self::with(device, SpillOptions::new())
    }

    fn with(device: &Device<Mock>, options: SpillOptions) -> Self {
        let manager = SpillManager::new(device, options).unwrap();
        // SAFETY: the bodies touch nothing, and are never run.
        let (reads, writes) = unsafe { (KernelDef::new("reads"), KernelDef::new("writes")) };
        let reads = reads.host_loop(|_, _: &(Slice<u8>, u32)| {}).load(device).unwrap();
        let writes = writes.host_loop(|_, _: &(SliceMut<u8>, u32)| {}).load(device).unwrap();
        Self { manager, reads, writes, raw: device.raw().clone() }
    }

    /// An array in which a number was written.
    fn array(&self, device: &Device<Mock>, stream: &Stream<Mock>, number: u32) -> Array {
        // SAFETY: it is written before it is read.
        let array = unsafe { device.uninit_array(BYTES).unwrap().assume_init() };
        let mut array = self.manager.add(array).map_err(|(_, error)| error).unwrap();
        self.write(stream, &mut array.get_mut(stream).unwrap(), number);
        array
    }

    fn read(&self, stream: &Stream<Mock>, view: &DeviceView<'_, u8, Ix1, Mock>, number: u32) {
        self.reads.launch(stream, &config_for_items([1, 1, 1], [1, 1, 1]), (view, number)).unwrap();
    }

    fn write(&self, stream: &Stream<Mock>, view: &mut DeviceViewMut<'_, u8, Ix1, Mock>, number: u32) {
        self.writes.launch(stream, &config_for_items([1, 1, 1], [1, 1, 1]), (view, number)).unwrap();
    }

    fn sleep(&self) {
        self.raw.lab.pause();
        assert!(self.manager.sleep().unwrap().error.is_none());
    }

    fn wake(&self, stream: &Stream<Mock>) {
        self.raw.lab.pause();
        assert!([0, BYTES].contains(&self.manager.wake(stream).unwrap()));
    }

    /// Asserts that the array has the number, where it is, and also after it has left and come back.
    fn check(&self, stream: &Stream<Mock>, array: &Array, number: u32) {
        self.read(stream, &array.get(stream).unwrap(), number);
        assert!(array.evict().unwrap());
        self.read(stream, &array.get(stream).unwrap(), number);
    }
}

/// One thread makes the array leave, while another one uses it, also through a second handle that outlives the first.
#[test]
fn an_array_stays_while_it_is_used() {
    model(|device| {
        let (lab, stream) = (Lab::new(device), stream(device));
        let array = Arc::new(lab.array(device, &stream, 1));
        let theirs = array.clone();
        let other = thread::spawn(move || theirs.evict().unwrap());
        let first = array.get(&stream).unwrap();
        lab.read(&stream, &first, 1);
        let second = array.get(&stream).unwrap();
        drop(first);
        lab.read(&stream, &second, 1);
        assert!(!array.evict().unwrap() && array.is_resident().unwrap(), "while a handle exists");
        drop(second);
        other.join().unwrap();
        lab.check(&stream, &array, 1);
    });
}

/// It is written while all arrays are to leave: an old copy does not come back.
#[test]
fn what_is_written_while_it_leaves_is_kept() {
    model_within(3, |device| {
        let (lab, stream) = (Lab::new(device), stream(device));
        let mut array = lab.array(device, &stream, 1);
        let theirs = lab.clone();
        let other = thread::spawn(move || theirs.sleep());
        lab.write(&stream, &mut array.get_mut(&stream).unwrap(), 2);
        other.join().unwrap();
        lab.check(&stream, &array, 2);
    });
}

/// Two threads make it leave.
#[test]
fn an_array_leaves_once() {
    model(|device| {
        let (lab, stream) = (Lab::new(device), stream(device));
        let array = Arc::new(lab.array(device, &stream, 1));
        let theirs = array.clone();
        let other = thread::spawn(move || theirs.evict().unwrap());
        let mine = array.evict().unwrap();
        assert!(mine ^ other.join().unwrap());
        let report = lab.manager.report();
        assert_eq!((report.device_bytes, report.host_bytes, report.downloaded_bytes), (0, BYTES, BYTES));
        lab.read(&stream, &array.get(&stream).unwrap(), 1);
    });
}

/// Two threads bring it back.
#[test]
fn an_array_comes_back_once() {
    model(|device| {
        let (lab, stream, their_stream) = (Lab::new(device), stream(device), stream(device));
        let array = Arc::new(lab.array(device, &stream, 1));
        assert!(array.evict().unwrap());
        let (theirs, their_lab) = (array.clone(), lab.clone());
        let other = thread::spawn(move || {
            their_lab.read(&their_stream, &theirs.get(&their_stream).unwrap(), 1);
        });
        lab.read(&stream, &array.get(&stream).unwrap(), 1);
        other.join().unwrap();
        let report = lab.manager.report();
        assert_eq!((report.device_bytes, report.uploaded_bytes), (BYTES, BYTES));
    });
}

/// The copy of one array, which is back on the device, makes room on the host for another one, while the first one leaves again.
#[test]
fn a_copy_makes_room_on_the_host() {
    model(|device| {
        let (lab, stream) = (Lab::with(device, SpillOptions::new().host_bytes(BYTES)), stream(device));
        let [mine, theirs] = [1, 2].map(|number| lab.array(device, &stream, number));
        assert!(theirs.evict().unwrap());
        lab.read(&stream, &theirs.get(&stream).unwrap(), 2);
        let other = thread::spawn(move || (theirs.evict().is_ok(), theirs));
        let has_left = mine.evict().is_ok();
        let (have_theirs_left, theirs) = other.join().unwrap();
        assert!(has_left || have_theirs_left);
        lab.read(&stream, &mine.get(&stream).unwrap(), 1);
        lab.read(&stream, &theirs.get(&stream).unwrap(), 2);
    });
}

/// It is dropped while it leaves: nothing is left of it.
#[test]
fn an_array_is_dropped_while_it_leaves() {
    model(|device| {
        let (lab, stream) = (Lab::new(device), stream(device));
        let array = lab.array(device, &stream, 1);
        let theirs = lab.clone();
        let other = thread::spawn(move || theirs.sleep());
        lab.raw.lab.pause();
        drop(array);
        other.join().unwrap();
        let report = lab.manager.report();
        assert_eq!((report.device_bytes, report.host_bytes), (0, 0));
    });
}

/// It is taken out while it leaves or comes back.
#[test]
fn an_array_is_taken_out_while_it_moves() {
    for sleeps in [true, false] {
        model_within(3, move |device| {
            let (lab, stream) = (Lab::new(device), stream(device));
            let array = lab.array(device, &stream, 1);
            if !sleeps {
                lab.sleep();
            }
            let (theirs, their_stream) = (lab.clone(), device.stream().unwrap());
            let other = thread::spawn(move || match sleeps {
                true => theirs.sleep(),
                false => theirs.wake(&their_stream),
            });
            lab.raw.lab.pause();
            let array = array.into_array(&stream).map_err(|(_, error)| error).unwrap();
            lab.read(&stream, &array.view(), 1);
            other.join().unwrap();
            lab.read(&stream, &array.view(), 1);
            assert_eq!((lab.manager.report().device_bytes, lab.manager.report().host_bytes), (0, 0));
        });
    }
}

/// One thread sends the arrays to sleep and one wakes them, while a third one uses one of them.
#[test]
fn sleep_and_wake_meet() {
    model_within(2, |device| {
        let (lab, stream, their_stream) = (Lab::new(device), stream(device), stream(device));
        let array = lab.array(device, &stream, 1);
        let (one, another) = (lab.clone(), lab.clone());
        let sleeps = thread::spawn(move || one.sleep());
        let wakes = thread::spawn(move || another.wake(&their_stream));
        lab.read(&stream, &array.get(&stream).unwrap(), 1);
        sleeps.join().unwrap();
        wakes.join().unwrap();
        lab.check(&stream, &array, 1);
    });
}

/// Each thread uses an array of its own, and the device has room for one: each makes the other's leave, or finds it in use. No thread
/// waits for ever, and when both are done, each array can be used.
#[test]
fn arrays_that_make_room_for_each_other() {
    model_within(3, |device| {
        let device = device.clone();
        deep(move || make_room_for_each_other(&device)).join().unwrap();
    });
}

/// A thread for an allocation that makes an array leave: its frames need more than a thread of loom has.
fn deep<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> thread::JoinHandle<R> {
    thread::Builder::new().stack_size(1 << 15).spawn(body).unwrap()
}

fn make_room_for_each_other(device: &Device<Mock>) {
    device.raw().lab.set_room(BYTES + BYTES / 2);
    let (lab, stream, their_stream) = (Lab::new(device), stream(device), stream(device));
    let [mine, theirs] = [1, 2].map(|number| lab.array(device, &stream, number));
    assert!(!mine.is_resident().unwrap() && theirs.is_resident().unwrap());
    let use_it = |lab: &Lab, stream: &Stream<Mock>, array: &Array, number| match array.get(stream) {
        Ok(view) => lab.read(stream, &view, number),
        Err(error) => assert!(error.is_out_of_memory(), "{error}"),
    };
    let their_lab = lab.clone();
    let other = deep(move || {
        use_it(&their_lab, &their_stream, &theirs, 2);
        theirs
    });
    use_it(&lab, &stream, &mine, 1);
    let theirs = other.join().unwrap();
    lab.read(&stream, &mine.get(&stream).unwrap(), 1);
    lab.read(&stream, &theirs.get(&stream).unwrap(), 2);
    lab.read(&stream, &mine.get(&stream).unwrap(), 1);
}

/// A copy fails, of either way: the array is where it was, and the next use succeeds.
#[test]
fn an_array_whose_copy_fails_stays() {
    for is_away in [true, false] {
        model(move |device| {
            let (lab, stream) = (Lab::new(device), stream(device));
            let array = Arc::new(lab.array(device, &stream, 1));
            assert!(!is_away || array.evict().unwrap());
            lab.raw.lab.fail_copies(1);
            let theirs = array.clone();
            let other = thread::spawn(move || theirs.evict().is_ok());
            let is_got = match array.get(&stream) {
                Ok(view) => {
                    lab.read(&stream, &view, 1);
                    true
                }
                Err(_) => false,
            };
            let is_evicted = other.join().unwrap();
            assert!(is_got || is_evicted, "one copy failed");
            lab.raw.lab.fail_copies(0);
            lab.check(&stream, &array, 1);
        });
    }
}
