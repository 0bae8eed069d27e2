//! Which call of the double fails, and how.

use gpumem_core::{Error, ErrorKind, Result, user_code::as_another_thread};
use gpumem_host::Device;
use parking_lot::Mutex;
use std::{
    collections::{HashMap, HashSet},
    fmt,
    thread::{self, ThreadId},
};

/// The effect at the chosen call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The call fails and does nothing. A wait that fails has not waited.
    Refuse,
    /// The device is lost in that moment.
    Lose,
}

/// Counts the calls that can fail, and makes one of them fail.
#[derive(Debug, Default)]
pub struct Script(Mutex<State>, Mutex<Option<During>>);

/// What happens inside a call of an operation.
struct During(&'static str, Box<dyn FnOnce() + Send>);

impl fmt::Debug for During {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("During").field(&self.0).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    calls: u64,
    of_each: HashMap<&'static str, u64>,
    planned: Option<(u64, Trouble)>,
    struck: Option<&'static str>,
    callers: HashSet<ThreadId>,
}

impl Script {
    /// The error of a refused call.
    pub const REFUSED: ErrorKind = ErrorKind::Driver { code: 99, name: "REFUSED" };
    /// Why a device was lost.
    pub const CAUSE: &'static str = "it fell off the bus";

    /// Counts from zero again; with a plan, call number `plan.0` (from 0) is in trouble.
    pub fn begin(&self, plan: Option<(u64, Trouble)>) {
        *self.0.lock() = State { planned: plan, ..State::default() };
    }

    /// Runs `act` inside the next call of an operation, before the call does anything. It may plan trouble for that call, as number 0.
    pub fn during(&self, operation: &'static str, act: impl FnOnce() + Send + 'static) {
        *self.1.lock() = Some(During(operation, Box::new(act)));
    }

    /// Calls since [`begin`](Self::begin).
    pub fn calls(&self) -> u64 {
        self.0.lock().calls
    }

    /// Calls of an operation since [`begin`](Self::begin).
    pub fn calls_of(&self, operation: &str) -> u64 {
        self.0.lock().of_each.get(operation).copied().unwrap_or_default()
    }

    /// The threads that have called since [`begin`](Self::begin).
    pub fn callers(&self) -> HashSet<ThreadId> {
        self.0.lock().callers.clone()
    }

    /// The call that the trouble struck.
    pub fn struck(&self) -> Option<&'static str> {
        self.0.lock().struck
    }

    /// Counts a call of `operation` on `device`.
    pub(crate) fn call(&self, device: &Device, operation: &'static str) -> Result<()> {
        let during = self.1.lock().take_if(|during| during.0 == operation);
        if let Some(During(_, act)) = during {
            act();
        }
        let trouble = {
            let mut state = self.0.lock();
            let number = state.calls;
            state.calls += 1;
            *state.of_each.entry(operation).or_default() += 1;
            state.callers.insert(thread::current().id());
            let due = state.planned.filter(|(at, _)| *at == number).map(|(_, trouble)| trouble);
            if due.is_some() {
                state.struck = Some(operation);
            }
            due
        };
        match trouble {
            None => Ok(()),
            Some(Trouble::Refuse) => Err(Error::new(crate::double::NAME, operation, Self::REFUSED)),
            Some(Trouble::Lose) => {
                // The call itself goes on and meets a device that is gone.
                as_another_thread(|| device.lose(Self::CAUSE));
                Ok(())
            }
        }
    }
}
