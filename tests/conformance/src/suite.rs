//! Running cases on a backend.

use crate::{Case, Expectations, Lab, Level, Outcome, RanOn, Report, Stop, all, fixture::Setting, panics};
use gpumem_core::{Backend, DeviceSelector, Result};
use gpumem_runtime::Device;
use std::{
    process,
    rc::Rc,
    sync::{mpsc, mpsc::RecvTimeoutError},
    thread,
    time::Duration,
};

type Opener<B> = Box<dyn Fn(&DeviceSelector) -> Result<Device<B>>>;
type Second<B> = Box<dyn Fn(&Device<B>) -> Option<Device<B>>>;

/// How long a delayed stream is late. Long enough for another stream to overtake it, short enough for many cases.
const DELAY: Duration = Duration::from_millis(10);

/// The suite, set up for one backend.
pub struct Suite<B: Backend> {
    pub(crate) backend: &'static str,
    ran_on: RanOn,
    pub(crate) selector: DeviceSelector,
    expectations: Expectations,
    open: Opener<B>,
    second: Second<B>,
    setting: Setting<B>,
    pub(crate) cases: Vec<Case<B>>,
}

/// Which cases to run.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Cases up to this level; `None` for all.
    pub level: Option<u8>,
    /// Parts of names, one of which must occur; empty for all.
    pub filters: Vec<String>,
    /// The filters are whole names.
    pub exact: bool,
}

impl Selection {
    /// Whether a case of that name and level is chosen.
    pub fn takes(&self, name: &str, level: Level) -> bool {
        let fits = |filter: &String| if self.exact { name == filter } else { name.contains(filter.as_str()) };
        self.level.is_none_or(|most| level.number() <= most)
            && (self.filters.is_empty() || self.filters.iter().any(fits))
    }
}

/// How long a case may take. Under a checker of memory, a long one takes minutes.
const CASE_LIMIT: Duration = Duration::from_secs(900);

/// Runs a case, and ends the process with the name of the case if it hangs: a runner would only see a program that is silent.
fn within_limit<R>(name: &str, run: impl FnOnce() -> R) -> R {
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if is_done.recv_timeout(CASE_LIMIT) == Err(RecvTimeoutError::Timeout) {
                eprintln!("test {name} ... FAILED\n    it is not over after {CASE_LIMIT:?}");
                process::abort();
            }
        });
        let result = run();
        drop(done);
        result
    })
}

impl<B: Backend> Suite<B> {
    /// All cases, on the first device of the backend, which reports call `backend`.
    pub fn new(backend: &'static str, ran_on: RanOn) -> Self {
        Self {
            backend,
            ran_on,
            selector: DeviceSelector::ordinal(B::NAME, 0),
            expectations: Expectations::none(),
            open: Box::new(|selector| Device::select(selector)),
            second: Box::new(another),
            setting: Setting { delay: DELAY, slow: false, delays: Rc::default() },
            cases: all(),
        }
    }

    /// Sets the known deviations of the backend.
    #[must_use]
    pub fn expectations(mut self, expectations: Expectations) -> Self {
        self.expectations = expectations;
        self
    }

    /// On this device, unless `--device` names another.
    #[must_use]
    pub fn device(mut self, selector: DeviceSelector) -> Self {
        self.selector = selector;
        self
    }

    /// On a device that is opened by `open`, anew for every case.
    #[must_use]
    pub fn open_with(mut self, open: impl Fn(&DeviceSelector) -> Result<Device<B>> + 'static) -> Self {
        self.open = Box::new(open);
        self
    }

    /// With a second device from elsewhere than the list of [`Backend::devices`].
    #[must_use]
    pub fn second_device(mut self, second: impl Fn(&Device<B>) -> Option<Device<B>> + 'static) -> Self {
        self.second = Box::new(second);
        self
    }

    /// With delays of another length; 0 where the device's own schedule makes work late.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.setting.delay = delay;
        self
    }

    /// For a device on which every operation takes far longer than on hardware, as a simulated one: cases of thousands
    /// of operations do with fewer.
    #[must_use]
    pub fn slow(mut self, slow: bool) -> Self {
        self.setting.slow = slow;
        self
    }

    /// With cases of one's own instead of [`all`].
    #[must_use]
    pub fn cases(mut self, cases: Vec<Case<B>>) -> Self {
        self.cases = cases;
        self
    }

    /// Runs the chosen cases one after the other, telling each outcome as it comes.
    pub fn run(&self, selection: &Selection, mut tell: impl FnMut(&str, &Outcome)) -> Report {
        let mut report = Report::new(self.backend);
        let chosen = self.cases.iter().filter(|case| selection.takes(&case.name, case.level));
        // Held until the end, so that every case gets the same device.
        let held = match panics::caught(|| (self.open)(&self.selector)) {
            Ok(Ok(device)) => device,
            Ok(Err(error)) => {
                let reason = error.to_string();
                for case in chosen {
                    report.add(&case.name, Outcome::Skipped(reason.clone()));
                }
                report.reason = Some(reason);
                return report;
            }
            Err(panic) => {
                report.add("opening the device", Outcome::Failed(format!("it panicked: {panic}")));
                return report;
            }
        };
        report.device = Some(format!("{} ({})", held.name(), held.info().name));
        report.ran_on = Some(self.ran_on);
        let is_case = |name: &str| self.cases.iter().any(|case| case.name == name);
        for name in self.expectations.unknown(is_case) {
            report.add(name, Outcome::Failed("expectations name it, and there is no such case".to_owned()));
        }
        for case in chosen {
            let outcome = within_limit(&case.name, || self.judge(case));
            tell(&case.name, &outcome);
            report.add(&case.name, outcome);
        }
        if report.passed + report.failed == 0 {
            report.reason = Some("no case was chosen, or all were skipped".to_owned());
        }
        report
    }

    fn judge(&self, case: &Case<B>) -> Outcome {
        if let Some(reason) = self.expectations.skipped(&case.name) {
            return Outcome::Skipped(reason.to_owned());
        }
        let outcome = self.attempt(case);
        match (self.expectations.known_failure(&case.name), outcome) {
            (None, outcome) => outcome,
            (Some(_), Outcome::Failed(_)) => Outcome::Passed,
            (Some(reason), Outcome::Passed) => {
                Outcome::Failed(format!("it passes, and is expected to fail: {reason}"))
            }
            (Some(_), skipped) => skipped,
        }
    }

    /// Runs one case, and compares the statistics of its devices before and after.
    fn attempt(&self, case: &Case<B>) -> Outcome {
        let attempt = panics::caught(|| {
            let device = (self.open)(&self.selector)?;
            let second = (self.second)(&device);
            let lab = Lab::new(device, second, self.setting.clone());
            let before = lab.devices().map(settle).collect::<Result<Vec<_>>>()?;
            (case.run)(&lab)?;
            let after = lab.devices().map(settle).collect::<Result<Vec<_>>>()?;
            if let Some(error) = lab.devices().flat_map(Device::take_errors).next() {
                return Err(Stop::Failed(format!("an error was left that no call returned: {error}")));
            }
            let sum = |counts: &[Alive], of: fn(&Alive) -> u64| counts.iter().map(of).sum::<u64>();
            let is_right = sum(&before, |alive| alive.allocated) + lab.leaked()
                == sum(&after, |alive| alive.allocated)
                && sum(&before, |alive| alive.driver) + lab.leaked() >= sum(&after, |alive| alive.driver);
            if !is_right && !lab.was_reset() {
                return Err(Stop::Failed(format!(
                    "blocks of memory alive: {before:?} before, {after:?} after"
                )));
            }
            Ok(())
        });
        // Whatever a case that failed has left must not make the next one fail.
        match attempt {
            Ok(Ok(())) => Outcome::Passed,
            Ok(Err(Stop::Skipped(reason))) => Outcome::Skipped(reason),
            Ok(Err(Stop::Failed(message))) => self.clear(message),
            Err(panic) => self.clear(panic),
        }
    }

    fn clear(&self, message: String) -> Outcome {
        if let Ok(device) = (self.open)(&self.selector) {
            let _ = device.synchronize();
            device.take_errors();
        }
        Outcome::Failed(message)
    }
}

/// Blocks of memory that are alive.
#[derive(Debug)]
struct Alive {
    /// Blocks that resources have allocated.
    allocated: u64,
    /// The driver's, of which these are parts.
    driver: u64,
}

/// Waits for everything, frees dropped memory, and counts the blocks that are alive.
fn settle<B: Backend>(device: &Device<B>) -> Result<Alive> {
    device.synchronize()?;
    device.flush()?;
    let counters = device.counters();
    let report = device.memory_report()?;
    let outermost = report.kinds.iter().filter_map(|kind| kind.resources.first());
    Ok(Alive {
        allocated: outermost.map(|resource| resource.statistics.blocks as u64).sum(),
        driver: counters.allocations.saturating_sub(counters.releases),
    })
}

/// The first device of the backend that is not `device` itself.
fn another<B: Backend>(device: &Device<B>) -> Option<Device<B>> {
    let mut others = B::devices().ok()?.into_iter().filter(|info| info != device.info());
    others.find_map(|info| Device::select(DeviceSelector::ordinal(info.backend, info.ordinal)).ok())
}

impl<B: Backend> std::fmt::Debug for Suite<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Suite")
            .field("backend", &self.backend)
            .field("selector", &self.selector)
            .field("cases", &self.cases.len())
            .finish_non_exhaustive()
    }
}
