//! Host bodies of kernels that call the library, where a wait would be one for the kernel itself.

use gpumem_core::{ErrorKind, Result};
use gpumem_host::{Host, HostOptions, Injection, Operation};
use gpumem_integration::{calling, of_constants};
use gpumem_kernel::{In, Out, config_for_items};
use gpumem_runtime::{Device, DeviceArray, Stream};
use host_double::{Double, DoubleOptions};
use ndarray::{Array1, Ix1};
use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

/// The arguments of bodies.
struct Things {
    device: Device<Host>,
    stream: Stream<Host>,
    array: DeviceArray<u32, Ix1, Host>,
}

/// Elements of an upload that is not done at once.
const LONG: usize = if cfg!(miri) { 1 << 12 } else { 1 << 20 };
/// Groups of a launch. More than one are run by threads of rayon, whose queues Miri's rules for borrows refuse.
const GROUPS: &[usize] = if cfg!(miri) { &[1] } else { &[1, 64] };

type Call = fn(&Things) -> Result<()>;

/// Calls that wait for the device.
const CALLS: &[(&str, Call)] = &[
    ("copy_to_host", |t| t.array.copy_to_host().map(drop)),
    ("copy_to_host_into", |t| t.array.copy_to_host_into(&mut Array1::zeros(64)).map(drop)),
    ("to_device", |t| t.device.to_device(&Array1::from_elem(LONG, 1_u32)).map(drop)),
    ("pinned", |t| t.device.pinned([Array1::<u32>::zeros(64).view_mut()], |_| ())),
    ("scope", |t| t.stream.scope(|_| ())),
    ("view", |t| t.stream.copy_to_host(&t.array)?.view().map(drop)),
    ("synchronize a stream", |t| t.stream.synchronize()),
    ("synchronize the device", |t| t.device.synchronize()),
    ("synchronize an event", |t| t.stream.record_event()?.synchronize()),
    ("flush", |t| t.device.flush()),
];

/// Runs a call in every group of a kernel, and returns its results.
fn run(options: &HostOptions, groups: usize, call: Call) -> Vec<Result<()>> {
    let device: Device<Host> = Device::from_raw(Host::open_with(options).unwrap());
    let stream = device.stream().unwrap();
    let array = device.to_device(&[7_u32; 64]).unwrap();
    device.synchronize().unwrap();
    let things = Arc::new(Things { device: device.clone(), stream: stream.clone(), array });
    let said = Arc::new(Mutex::new(Vec::new()));
    let kernel = calling({
        let (things, said) = (things.clone(), said.clone());
        move || {
            // Long enough that other threads take part.
            std::thread::sleep(Duration::from_micros(200));
            let result = call(&things);
            said.lock().unwrap().push(result);
        }
    });
    kernel
        .load(&device)
        .unwrap()
        .launch(&stream, &config_for_items([groups, 1, 1], [1, 1, 1]), (0,))
        .unwrap();
    stream.synchronize().unwrap();
    assert_eq!(things.array.copy_to_host().unwrap(), Array1::from_elem(64, 7));
    let said = std::mem::take(&mut *said.lock().unwrap());
    assert_eq!(said.len(), groups);
    said
}

#[test]
fn a_body_that_waits_gets_an_error_on_every_thread() {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let adversarial = HostOptions::new().adversarial(3);
        for options in [HostOptions::new(), adversarial] {
            for &groups in GROUPS {
                for (name, call) in CALLS {
                    for result in run(&options, groups, *call) {
                        let kind = result.as_ref().map_err(|error| error.kind());
                        assert_eq!(kind, Err(&ErrorKind::BlockingInCallback), "{name}, {groups} groups");
                    }
                }
            }
        }
        done.send(()).unwrap();
    });
    match ended.recv_timeout(Duration::from_secs(120)) {
        Ok(()) => {}
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("a body waits for itself"),
        Err(mpsc::RecvTimeoutError::Disconnected) => panic!("a call was not refused"),
    }
}

/// Calls that wait for nothing, of the kernel's own stream.
const ASKED: &[(&str, Call)] = &[
    ("query", |t| t.stream.query().map(drop)),
    ("record an event", |t| t.stream.record_event()?.query().map(drop)),
    ("device_array", |t| t.stream.device_array::<u32, _>(8).map(drop)),
    ("copy_to_host", |t| t.stream.copy_to_host(&t.array).map(drop)),
    ("add_callback", |t| t.stream.add_callback(|_| ())),
    ("use of a new stream", |t| t.device.stream()?.copy_to_host(&t.array).map(drop)),
];

#[test]
fn a_body_may_ask_its_own_stream_on_every_schedule() {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let adversarial = (0..20).map(|seed| HostOptions::new().adversarial(seed));
        for options in [HostOptions::new()].into_iter().chain(adversarial) {
            for (name, call) in ASKED {
                println!("{name} {options:?}");
                assert!(run(&options, 1, *call).iter().all(Result::is_ok), "{name}");
            }
        }
        done.send(()).unwrap();
    });
    match ended.recv_timeout(Duration::from_secs(120)) {
        Ok(()) => {}
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("a body waits for itself"),
        Err(mpsc::RecvTimeoutError::Disconnected) => panic!("a call was refused"),
    }
}

/// A copy to a device of another backend waits on the host for the kernel. Its body may ask the stream of the copy.
#[test]
fn a_body_may_ask_a_stream_that_waits_for_it_from_another_backend() {
    let open = |name, is_direct| {
        let options = DoubleOptions { name, is_direct, is_packing: is_direct, ..DoubleOptions::default() };
        Device::<Double>::from_raw(Double::open_with(&options).unwrap())
    };
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let (near, gpu) = (open("near", true), open("gpu", false));
        let (from, to) = (near.stream().unwrap(), gpu.stream().unwrap());
        let mut source = near.to_device(&[1_u32; 64]).unwrap();
        let mut copy = gpu.device_array::<u32, _>(64).unwrap();
        let (said, answer) = mpsc::channel();
        let asked = to.clone();
        let kernel = calling(move || {
            // By then the copy waits.
            std::thread::sleep(Duration::from_millis(100));
            said.send(asked.query().is_ok()).unwrap();
        });
        let kernel = kernel.load(&near).unwrap();
        kernel.launch(&from, &config_for_items([1, 1, 1], [1, 1, 1]), (0,)).unwrap();
        from.fill(&mut source, 7).unwrap();
        to.copy_to_device(&mut copy, &source).unwrap();
        let seen = copy.copy_to_host().unwrap().to_vec();
        done.send((answer.recv().unwrap(), seen)).unwrap();
    });
    assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok((true, vec![7; 64])));
}

/// A launch that waits for its kernel leaves the constants to other launches meanwhile: the kernel may wait for one of them.
#[test]
fn a_launch_with_constants_keeps_no_other_launch_waiting() {
    let device: Device<Host> = Device::from_raw(Host::open_with(&HostOptions::new()).unwrap());
    let ((begun, has_begun), (go_on, goes_on)) = (mpsc::channel(), mpsc::channel());
    let goes_on = Mutex::new(goes_on);
    let body = move || {
        begun.send(()).unwrap();
        let _ = goes_on.lock().unwrap().recv_timeout(Duration::from_secs(5));
    };
    let (kernel, dims) = (of_constants(body).load(&device).unwrap(), config_for_items([1, 1, 1], [1, 1, 1]));
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let mut array = device.device_array::<u32, _>(1).unwrap();
    std::thread::scope(|scope| {
        let kernel = &kernel;
        let blocking = scope.spawn(move || {
            let mut out = [0_u32];
            kernel.launch(&first, &dims, (In(&[7_u32]), Out(&mut out))).unwrap();
            out
        });
        has_begun.recv().unwrap();
        let launch = std::time::Instant::now();
        kernel.launch(&second, &dims, (In(&[7_u32]), &mut array)).unwrap();
        let took = launch.elapsed();
        (0..2).for_each(|_| go_on.send(()).unwrap());
        assert_eq!(blocking.join().unwrap(), [7]);
        assert!(took < Duration::from_secs(4), "the launch waited for the other one's kernel");
    });
    assert_eq!(array.get(0).unwrap(), 7);
}

/// In one of eight the question runs the kernel.
const SEEDS: u64 = if cfg!(miri) { 20 } else { 200 };

/// A device without threads runs kernels where it is asked whether work is done: also in a launch of a kernel with constants, which
/// a body may launch too.
#[test]
fn a_body_does_not_wait_for_constants_that_its_own_thread_writes() {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut refused, dims) = (0, config_for_items([1, 1, 1], [1, 1, 1]));
        for seed in 0..SEEDS {
            let raw = Host::open_with(&HostOptions::new().adversarial(seed)).unwrap();
            let device: Device<Host> = Device::from_raw(raw.clone());
            let kernel = of_constants(|| ()).load(&device).unwrap();
            let [first, second, third] = [(); 3].map(|()| device.stream().unwrap());
            let out = Mutex::new(device.device_array::<u32, _>(1).unwrap());
            let (said, answer) = mpsc::channel();
            let inner = kernel.clone();
            let body = move || {
                let launched = inner.launch(&third, &dims, (In(&[7_u32]), &mut *out.lock().unwrap()));
                said.send(launched).unwrap();
            };
            let calling = calling(body).load(&device).unwrap();
            let mut array = device.device_array::<u32, _>(1).unwrap();
            let what = ErrorKind::AsynchronousFault { what: "on purpose".to_owned() };
            raw.inject(Injection::next(Operation::Fill, what));
            first.fill(&mut array, 1).unwrap();
            device.synchronize().unwrap_err();
            // The poisoned bytes are written behind the kernel: the launch asks whether that is done.
            calling.launch(&first, &dims, (0,)).unwrap();
            first.fill(&mut array, 2).unwrap();
            kernel.launch(&second, &dims, (In(&[9_u32]), &mut array)).unwrap();
            assert_eq!(array.get(0).unwrap(), 9);
            match answer.recv().unwrap() {
                Ok(()) => {}
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::BlockingInCallback), "{error}");
                    refused += 1;
                }
            }
        }
        done.send(refused).unwrap();
    });
    let refused = ended.recv_timeout(Duration::from_secs(60));
    assert!(refused.is_ok_and(|refused| refused > 0), "{refused:?}");
}
