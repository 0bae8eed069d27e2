//! What a declaration holds, whatever the types of its parameters.

use super::Needs;
use crate::{
    HostForm,
    identifier::check_name,
    images::Images,
    simt::{Executor, ParameterInfo},
    source::{Bounds, LaunchBounds, MOST_CONSTANT_BYTES, uses_constants},
};
use gpumem_core::{Error, ErrorKind, HostFunction, Result};
use std::{
    panic::{RefUnwindSafe, UnwindSafe},
    sync::{Arc, OnceLock},
};

/// Environment variable: `1` runs all kernels of a program in check mode on the host, but for those that say
/// otherwise ([`KernelDef::race_checks`](crate::KernelDef::race_checks)).
pub const ENV_RACE_CHECKS: &str = "GPUMEM_RACE_CHECKS";

pub(crate) type HostBody = dyn Fn(Executor) -> HostFunction + Send + Sync;

/// A name, a portable source for GPUs, a body for the host.
#[derive(Clone, Default)]
pub(crate) struct Declaration {
    pub(crate) name: String,
    /// The name in errors, where it is not the symbol.
    pub(crate) shown: Option<String>,
    pub(crate) source: Option<String>,
    /// One of its functions that leads to a call of itself.
    pub(crate) circle: Option<&'static str>,
    /// As far as it is known.
    pub(crate) needs: Needs,
    pub(crate) images: Images,
    pub(crate) host: Option<Arc<HostBody>>,
    pub(crate) form: Option<HostForm>,
    pub(crate) shared_bytes: usize,
    pub(crate) constant_bytes: usize,
    pub(crate) flags: Vec<String>,
    pub(crate) contract: bool,
    pub(crate) bounds: Bounds,
    pub(crate) launch_bounds: Option<LaunchBounds>,
    /// Of the environment if `None`.
    pub(crate) check: Option<bool>,
    pub(super) seal: Seal,
}

// A body that panics ends its launch, on whichever thread.
impl UnwindSafe for Declaration {}
impl RefUnwindSafe for Declaration {}

/// Whether the programs of a declaration may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Seal {
    /// They may: the author answers for all of them, as [`KernelDef::new`](crate::KernelDef::new) requires.
    #[default]
    Open,
    /// They may not: [`KernelDef::sealed`](crate::KernelDef::sealed).
    Sealed,
    /// They were replaced all the same.
    Broken,
}

impl Declaration {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), constant_bytes: MOST_CONSTANT_BYTES, ..Self::default() }
    }

    /// Notes that a program, or how a compiler reads it, is set.
    pub(super) fn note_replaced(&mut self) {
        if self.seal == Seal::Sealed {
            self.seal = Seal::Broken;
        }
    }

    /// Refuses a declaration whose code no author has promised to be sound, a name that would be more than a name in its source, calls
    /// without end, and what there is no room for.
    pub(super) fn check(&self, parameters: &[ParameterInfo]) -> Result<()> {
        check_name(&self.name)?;
        if let Some(function) = self.circle {
            // No device has a stack for it, and on the host its end would be that of the process.
            let log = format!("the function {function} leads to a call of itself: write a loop");
            return Err(Error::new("", "load", ErrorKind::Build { log }));
        }
        self.needs.check(self.form, uses_constants(parameters))?;
        let why = "the programs, bodies, flags and bounds of this kernel are sealed; `unsafe { declaration.unsealed() }` allows others";
        match self.seal {
            Seal::Broken => Err(Error::new("", "load", ErrorKind::InvalidArgument { why })),
            Seal::Open | Seal::Sealed => Ok(()),
        }
    }

    /// The name in errors.
    pub(crate) fn shown(&self) -> &str {
        self.shown.as_ref().unwrap_or(&self.name)
    }

    /// Whether the host runs it in check mode.
    pub(super) fn is_checked(&self) -> bool {
        static OF_PROGRAM: OnceLock<bool> = OnceLock::new();
        let of_program =
            || std::env::var(ENV_RACE_CHECKS).is_ok_and(|text| matches!(text.trim(), "1" | "on" | "yes"));
        self.check.unwrap_or_else(|| *OF_PROGRAM.get_or_init(of_program))
    }
}
