//! The objects that a case works with.

use crate::{Verdict, skip};
use gpumem_core::{
    Backend, CompileOptions, DriverDevice, DriverModule, ErrorKind, HostFunction, KernelArguments,
    KernelSource, LaunchConfig, Result, Stream as _,
};
use gpumem_runtime::{Device, Stream};
use std::{cell::Cell, cell::RefCell, collections::HashMap, fmt, rc::Rc, thread, time::Duration};

/// Spins for about so many cycles of a clock of one to two gigahertz.
const DELAY_TEXT: &str = r#"
extern "C" __global__ void delay(unsigned long long cycles) {
    long long start = clock64();
    while ((unsigned long long)(clock64() - start) < cycles) {}
}
"#;

/// The kernel that delays a stream, by the name of the device; `None` where there is none. Compiled once for all cases.
pub(crate) type Delays<B> = Rc<RefCell<HashMap<String, Option<<B as Backend>::Kernel>>>>;

/// The properties of a suite's machine that all its cases use.
pub(crate) struct Setting<B: Backend> {
    pub(crate) delay: Duration,
    pub(crate) slow: bool,
    pub(crate) delays: Delays<B>,
}

impl<B: Backend> Clone for Setting<B> {
    fn clone(&self) -> Self {
        let Self { delay, slow, delays } = self;
        Self { delay: *delay, slow: *slow, delays: delays.clone() }
    }
}

/// The device under test, and helpers of the cases.
pub struct Lab<B: Backend> {
    device: Device<B>,
    second: Option<Device<B>>,
    setting: Setting<B>,
    was_reset: Cell<bool>,
    leaked: Cell<u64>,
}

impl<B: Backend> Lab<B> {
    pub(crate) fn new(device: Device<B>, second: Option<Device<B>>, setting: Setting<B>) -> Self {
        Self { device, second, setting, was_reset: Cell::new(false), leaked: Cell::new(0) }
    }

    /// The device under test.
    pub fn device(&self) -> &Device<B> {
        &self.device
    }

    /// Another device of the same backend.
    ///
    /// # Errors
    /// Skips the case where there is none.
    pub fn second(&self) -> Verdict<&Device<B>> {
        match &self.second {
            Some(second) => Ok(second),
            None => skip("there is no second device"),
        }
    }

    /// Both devices, or the one there is.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &Device<B>> {
        [Some(&self.device), self.second.as_ref()].into_iter().flatten()
    }

    /// How long [`delay`](Self::delay) keeps a stream busy.
    pub fn delay_time(&self) -> Duration {
        self.setting.delay
    }

    /// Whether every operation of the device takes far longer than it does on hardware, so that cases of thousands of
    /// them do with fewer.
    pub fn is_slow(&self) -> bool {
        self.setting.slow
    }

    /// Keeps a stream busy for a while, so that later work is late. Does nothing on a device for which no such kernel
    /// is known; the cases then pass as well, and show less.
    ///
    /// # Errors
    /// Of the driver.
    pub fn delay(&self, stream: &Stream<B>) -> Result<()> {
        let device = stream.device();
        let Some(kernel) = self.kernel(device)? else { return Ok(()) };
        let nanoseconds = u64::try_from(self.setting.delay.as_nanos()).unwrap_or(u64::MAX);
        let arguments = KernelArguments::new().with(nanoseconds);
        // SAFETY: the kernel touches no memory, and runs on the scope's stream.
        unsafe {
            stream.raw_scope(&[], |parts| {
                let raw = device.raw().wrap_stream(parts.stream)?;
                raw.launch(&kernel, &LaunchConfig::linear(1, 1), &arguments)
            })?
        }
    }

    fn kernel(&self, device: &Device<B>) -> Result<Option<B::Kernel>> {
        if let Some(kernel) = self.setting.delays.borrow().get(&device.name()) {
            return Ok(kernel.clone());
        }
        let on_host = HostFunction::new(|launch| {
            let nanoseconds = launch.arguments.read::<u64>(0);
            thread::sleep(Duration::from_nanos(nanoseconds.unwrap_or(0)));
            Ok(())
        });
        let sources = [
            KernelSource::Host(vec![("delay".to_owned(), on_host)]),
            KernelSource::Text(DELAY_TEXT.to_owned()),
        ];
        let mut found = None;
        for source in &sources {
            match device.raw().compile(source, &CompileOptions::default()) {
                Ok(module) => {
                    found = Some(module.kernel("delay")?);
                    break;
                }
                // No kernels of that form, or no compiler on this machine.
                Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. } | ErrorKind::Load(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.setting.delays.borrow_mut().insert(device.name(), found.clone());
        Ok(found)
    }

    /// Resets the device: the fixture's objects on it are forgotten, and its counters no longer balance.
    ///
    /// # Errors
    /// Of the driver.
    pub fn reset(&self) -> Result<()> {
        self.setting.delays.borrow_mut().clear();
        self.was_reset.set(true);
        // SAFETY: a case has the device to itself, and its threads are over when it resets.
        unsafe { self.device.reset() }
    }

    /// Tells the suite that the case has forgotten the owners of so many blocks of memory on purpose.
    pub fn leaks(&self, blocks: u64) {
        self.leaked.set(self.leaked.get() + blocks);
    }

    pub(crate) fn leaked(&self) -> u64 {
        self.leaked.get()
    }

    pub(crate) fn was_reset(&self) -> bool {
        self.was_reset.get()
    }
}

impl<B: Backend> fmt::Debug for Lab<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lab")
            .field("device", &self.device)
            .field("second", &self.second)
            .finish_non_exhaustive()
    }
}
