//! Memory resources that call the device that they serve.

use super::device;
use gpumem_core::{ErrorKind, MemoryKind, Result};
use gpumem_host::Host;
use gpumem_runtime::{
    Device,
    memory::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, Pool, Trim},
};
use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

/// Passes every request on, and flushes and trims the device before each, however deep it is called.
#[derive(Debug)]
struct Nested {
    upstream: Arc<dyn MemoryResource<Host>>,
    device: Mutex<Option<Device<Host>>>,
    refused: Mutex<Vec<bool>>,
}

impl Nested {
    fn call_device(&self) {
        let device = self.device.lock().unwrap().clone();
        let Some(device) = device else { return };
        let is_refused = |error: gpumem_core::Error| {
            assert!(error.to_string().contains("memory resource"), "{error}");
            matches!(error.kind(), ErrorKind::Unsupported { .. })
        };
        let flushed = device.flush().is_err_and(is_refused);
        let trimmed = device.trim(Trim::ALL).is_err_and(is_refused);
        self.refused.lock().unwrap().push(flushed && trimmed);
    }
}

impl MemoryResource<Host> for Nested {
    fn name(&self) -> &'static str {
        self.call_device();
        "nested"
    }
    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        self.call_device();
        self.upstream.allocate(request)
    }
    fn recycle(&self, block: MemoryBlock<Host>) -> Result<(), MemoryBlock<Host>> {
        self.call_device();
        self.upstream.recycle(block)
    }
    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.call_device();
        self.upstream.deallocate(block)
    }
    fn trim(&self, how: Trim, failed: &mut dyn FnMut(gpumem_core::Error)) -> usize {
        self.call_device();
        self.upstream.trim(how, failed)
    }
    fn forget(&self) {
        self.call_device();
        self.upstream.forget();
    }
    fn statistics(&self) -> MemoryStatistics {
        self.call_device();
        self.upstream.statistics()
    }
    fn upstream(&self) -> Option<&dyn MemoryResource<Host>> {
        self.call_device();
        Some(&*self.upstream)
    }
}

/// Arrays that are made: each calls the resource more than ten times.
const ROUNDS: u32 = if cfg!(miri) { 2 } else { 30 };

fn use_nested(pools: bool) {
    let device = device();
    let kind = MemoryKind::Device;
    let upstream: Arc<dyn MemoryResource<Host>> = match pools {
        true => Arc::new(Pool::new(device.driver_memory(), device.pool_options(kind))),
        false => device.driver_memory(),
    };
    let nested = Nested { upstream, device: Mutex::new(Some(device.clone())), refused: Mutex::default() };
    let nested = Arc::new(nested);
    device.set_memory_resource(kind, nested.clone()).unwrap();
    let stream = device.stream().unwrap();
    for value in 0..ROUNDS {
        let array = stream.to_device(&vec![value; if cfg!(miri) { 100 } else { 5000 }]).unwrap();
        let copy = array.try_clone().unwrap();
        drop(array);
        // The caller's own calls work as ever, and reach the resource.
        device.flush().unwrap();
        assert_eq!(copy.get(77).unwrap(), value);
        device.trim(Trim::ALL).unwrap();
        assert!(device.memory_report().unwrap().to_string().contains("nested"));
    }
    // No memory is left after the device was told to free its memory.
    device.flush().unwrap();
    assert_eq!(nested.upstream.statistics().reserved, 0);
    *nested.device.lock().unwrap() = None;
    let refused = nested.refused.lock().unwrap();
    assert!(refused.len() > 3 * ROUNDS as usize && refused.iter().all(|refused| *refused));
    assert_eq!(device.take_errors(), []);
}

#[test]
fn a_resource_that_flushes_and_trims_its_device_does_not_hang() {
    for pools in [false, true] {
        let (sender, receiver) = mpsc::channel();
        let run = thread::spawn(move || {
            use_nested(pools);
            let _ = sender.send(());
        });
        let ended = receiver.recv_timeout(Duration::from_secs(if cfg!(miri) { 600 } else { 60 }));
        assert!(ended != Err(mpsc::RecvTimeoutError::Timeout), "it does not end; over a pool: {pools}");
        run.join().unwrap();
    }
}

/// Lies under a pool, and takes memory of the device that the pool serves.
#[derive(Debug)]
struct Under {
    upstream: Arc<dyn MemoryResource<Host>>,
    device: Mutex<Option<Device<Host>>>,
    refused: Mutex<usize>,
}

impl MemoryResource<Host> for Under {
    fn name(&self) -> &'static str {
        "under"
    }
    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        let device = self.device.lock().unwrap().clone();
        let array = device.map(|device| device.device_array::<u8, _>(1 << 20));
        match array {
            Some(Err(error)) if matches!(error.kind(), ErrorKind::Unsupported { .. }) => {
                *self.refused.lock().unwrap() += 1;
            }
            Some(result) => panic!("{result:?}"),
            None => {}
        }
        self.upstream.allocate(request)
    }
    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.upstream.deallocate(block)
    }
    fn forget(&self) {
        self.upstream.forget();
    }
    fn statistics(&self) -> MemoryStatistics {
        self.upstream.statistics()
    }
}

#[test]
fn a_pool_refuses_requests_from_its_own_upstream() {
    let (sender, receiver) = mpsc::channel();
    let run = thread::spawn(move || {
        let device = device();
        let kind = MemoryKind::Device;
        let upstream = device.driver_memory();
        let (device_of, refused) = (Mutex::new(Some(device.clone())), Mutex::new(0));
        let under = Arc::new(Under { upstream, device: device_of, refused });
        let options = device.pool_options(kind);
        device.set_memory_resource(kind, Arc::new(Pool::new(under.clone(), options))).unwrap();
        let array = device.to_device(&[5u8; 3000]).unwrap();
        assert_eq!(array.copy_to_host().unwrap().to_vec(), [5; 3000]);
        assert_eq!(*under.refused.lock().unwrap(), 1);
        *under.device.lock().unwrap() = None;
        let _ = sender.send(());
    });
    let ended = receiver.recv_timeout(Duration::from_secs(if cfg!(miri) { 600 } else { 60 }));
    assert!(ended != Err(mpsc::RecvTimeoutError::Timeout), "the pool waits for itself");
    run.join().unwrap();
}

/// Says that the device is lost, wherever it can say so.
#[derive(Debug)]
struct Alarmist(Arc<dyn MemoryResource<Host>>);

fn lost() -> gpumem_core::Error {
    gpumem_core::Error::new("", "resource", ErrorKind::DeviceLost { cause: "it says so".to_owned() })
}

impl MemoryResource<Host> for Alarmist {
    fn name(&self) -> &'static str {
        "alarmist"
    }
    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        match request.bytes {
            13 => Err(lost()),
            _ => self.0.allocate(request),
        }
    }
    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.0.deallocate(block)?;
        Err(lost())
    }
    fn trim(&self, _: Trim, failed: &mut dyn FnMut(gpumem_core::Error)) -> usize {
        failed(lost());
        0
    }
    fn forget(&self) {}
    fn statistics(&self) -> MemoryStatistics {
        MemoryStatistics::default()
    }
}

#[test]
fn only_the_driver_loses_a_device() {
    let device = device();
    device.set_memory_resource(MemoryKind::Device, Arc::new(Alarmist(device.driver_memory()))).unwrap();
    let is_lost = |error: &gpumem_core::Error| matches!(error.kind(), ErrorKind::DeviceLost { .. });
    assert!(device.device_array::<u8, _>(13).is_err_and(|error| is_lost(&error)));
    let array = device.to_device(&[1, 2, 3]).unwrap();
    assert!(device.to_device(&[1]).unwrap().free().is_err_and(|error| is_lost(&error)));
    drop(device.to_device(&[1]).unwrap());
    device.trim(Trim::ALL).unwrap();
    device.flush().unwrap();
    let errors = device.take_errors();
    assert!(errors.len() >= 3 && errors.iter().all(is_lost), "{errors:?}");
    assert_eq!(array.copy_to_host().unwrap().to_vec(), [1, 2, 3]);
}
