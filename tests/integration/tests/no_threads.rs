//! A process that gets no more threads from the operating system.
#![cfg(all(target_os = "linux", feature = "host"))]
#![allow(clippy::unwrap_used, reason = "a test")]

use gpumem::{Chunks, Device, ErrorKind, Result, Stream, kernel::config_for_items};
use gpumem_core::{
    DriverDevice as _, DriverModule as _, HostFunction, KernelArguments, KernelSource, LaunchConfig,
    Stream as _, StreamOptions,
};
use gpumem_host::{Host, HostOptions};
use gpumem_integration::calling;
use std::{fs, sync::mpsc, thread, time::Duration};

/// Less than the stack of a thread, and enough for the allocations of a call.
const SPARE_BYTES: u64 = 1 << 20;

/// Limits the address space to its current size, and returns the previous limit.
fn limit_address_space() -> libc::rlimit {
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place for the limits.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut before) }, 0);
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    // SAFETY: it takes a number and returns one.
    let page_bytes = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap();
    set_limit(libc::rlimit { rlim_cur: pages * page_bytes + SPARE_BYTES, ..before });
    before
}

fn set_limit(limit: libc::rlimit) {
    // SAFETY: valid limits.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}

/// Uses its stream when it is dropped.
struct UsesItsStream(Stream, mpsc::Sender<Result<()>>);

impl Drop for UsesItsStream {
    fn drop(&mut self) {
        let _ = self.1.send(self.0.add_callback(|_| ()));
    }
}

fn is_refused(result: Result<()>) -> bool {
    matches!(result, Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. }))
}

/// Returns whether the callback was refused, and what its captured value saw when it was dropped.
fn add_callback_without_a_thread() -> (bool, bool) {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    // The device has started the threads that it works with.
    let array = stream.to_device(&[1u32, 2, 3]).unwrap();
    assert_eq!(array.copy_to_host().unwrap().to_vec(), [1, 2, 3]);
    let (sender, told) = mpsc::channel();
    let captured = UsesItsStream(stream.clone(), sender);
    let before = limit_address_space();
    let refused = stream.add_callback(move |_| drop(captured));
    set_limit(before);
    // With memory for a thread, callbacks run.
    let (sender, receiver) = mpsc::channel();
    stream.add_callback(move |result| sender.send(result).unwrap()).unwrap();
    receiver.recv().unwrap().unwrap();
    (is_refused(refused), is_refused(told.recv().unwrap()))
}

/// Runs a kernel whose body uses its own stream, on a device that gets no worker thread. Returns whether the body could, and what
/// the stream says when it is asked again and again.
fn launch_without_a_thread() -> (bool, Result<bool>) {
    let raw = Host::open_with(&HostOptions::new()).unwrap();
    let device = gpumem_runtime::Device::<Host>::from_raw(raw);
    let stream = device.stream().unwrap();
    let (sender, told) = mpsc::channel();
    let own = stream.clone();
    let kernel = calling(move || sender.send(own.query().is_ok()).unwrap()).load(&device).unwrap();
    let before = limit_address_space();
    let launched = kernel.launch(&stream, &config_for_items([1, 1, 1], [1, 1, 1]), (0,));
    let ended = launched
        .and_then(|()| (0..1000).map(|_| stream.query()).find(|end| !matches!(end, Ok(false))).unwrap());
    set_limit(before);
    (told.try_recv().unwrap(), ended)
}

/// Gives up a device that gets no worker thread, with a kernel to run. Returns whether the drop ran its body, which may ask for a
/// lock of who drops.
fn close_without_a_thread() -> bool {
    let raw = Host::open_with(&HostOptions::new()).unwrap();
    let stream = raw.create_stream(&StreamOptions::default()).unwrap();
    let (sender, told) = mpsc::channel();
    let body = HostFunction::new(move |_| sender.send(()).map_err(|error| error.to_string()));
    let module = raw.compile(&KernelSource::Host(vec![("body".into(), body)]), &Default::default()).unwrap();
    let kernel = module.kernel("body").unwrap();
    let before = limit_address_space();
    // SAFETY: the kernel takes no arguments.
    let launched = unsafe { stream.launch(&kernel, &LaunchConfig::linear(1, 1), &KernelArguments::new()) };
    drop((kernel, module, stream, raw));
    set_limit(before);
    launched.unwrap();
    told.try_recv().is_ok()
}

/// Calls an operation that the other rank does not call, and whose deadline no thread can keep. Returns its error, and what has
/// threads.
#[cfg(feature = "collectives")]
fn reduce_without_a_thread() -> (Option<gpumem::Error>, impl Sized) {
    let device = Device::open("host").unwrap();
    let ranks = gpumem::collectives::Communicator::all(&[device.clone(), device.clone()]).unwrap();
    // The device has started the threads that it works with.
    let stream = device.stream().unwrap();
    let mut array = stream.to_device(&[1u32, 2, 3]).unwrap();
    stream.synchronize().unwrap();
    let before = limit_address_space();
    let ended =
        ranks[0].on(&stream).all_reduce(gpumem::collectives::InPlace, &mut array, gpumem::collectives::Sum);
    let ended = ended.and_then(|()| stream.synchronize());
    set_limit(before);
    (ended.err(), (ranks, stream, array))
}

/// Maps chunks on a device that gets no thread for the downloads. Returns whether that was refused, and the output.
fn map_without_a_thread() -> (bool, [u8; 2]) {
    let device = Device::open("host").unwrap();
    // The device has started the threads that it works with.
    let mut output = [0u8; 2];
    device.map_chunks(&[1u8, 2], &mut output, Chunks::rows(1), |_, _, array| Ok(array)).unwrap();
    let before = limit_address_space();
    let mapped = device.map_chunks(&[3u8, 4], &mut output, Chunks::rows(1), |_, _, array| Ok(array));
    set_limit(before);
    (is_refused(mapped), output)
}

/// The one test of this program: the limit is that of the process. No thread ends before it does: the next one would get its
/// stack.
#[test]
fn what_gets_no_thread_is_an_error_and_not_waited_for() {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        assert!(!close_without_a_thread(), "a drop runs code of the user");
        assert_eq!(launch_without_a_thread(), (true, Ok(true)), "the body waits for the thread that runs it");
        #[cfg(feature = "collectives")]
        let _threads = {
            let (error, threads) = reduce_without_a_thread();
            let error = error.unwrap().to_string();
            assert!(error.contains("no thread that keeps deadlines could be started"), "{error}");
            threads
        };
        sender.send(add_callback_without_a_thread()).unwrap();
        assert_eq!(map_without_a_thread(), (true, [1, 2]));
    });
    assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok((true, true)));
}
