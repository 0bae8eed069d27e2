//! Whether graphs are HIP's own: what the user asks for, and what HIP has.

use crate::{NAME, probe::Driver};
use gpumem_core::{Error, ErrorKind, Result};
use gpumem_sys::hip::Version;
use std::{env, ffi::OsStr};

/// Why not, if they are not.
pub(crate) type OwnGraphs = Result<(), &'static str>;

/// Graphs are enqueued call by call unless this variable asks for HIP's.
const VARIABLE: &str = "GPUMEM_ROC_GRAPHS";

/// Older versions mix up the arguments of launches: of a kernel that several graphs launch (ROCm/hip#2550), of launches that were
/// changed (ROCm/clr#42). They refuse kernels of modules (ROCm/hip#2450), and free the caller's memory (ROCm/clr#138).
const OLDEST: Version = Version::new(60_400_000);

const NEEDED: &[&str] = &[
    "hipStreamBeginCapture",
    "hipStreamGetCaptureInfo_v2",
    "hipStreamEndCapture",
    "hipGraphGetNodes",
    "hipGraphInstantiateWithFlags",
    "hipGraphExecKernelNodeSetParams",
    "hipGraphLaunch",
    "hipGraphExecDestroy",
    "hipGraphDestroy",
];

/// What is known before they are tested; `None` if they are to be.
pub(crate) fn choose(driver: &Driver) -> Result<Option<OwnGraphs>> {
    let asked = is_asked(env::var_os(VARIABLE).as_deref())?;
    Ok(if !asked {
        Some(Err("HIP's own graphs are used where GPUMEM_ROC_GRAPHS=native asks for them"))
    } else if driver.version < OLDEST {
        Some(Err("HIP's own graphs are used from version 6.4 on, and this HIP is older"))
    } else if driver.hip.missing().any(|name| NEEDED.contains(&name)) {
        Some(Err("this HIP lacks a function of graphs"))
    } else {
        None
    })
}

fn is_asked(value: Option<&OsStr>) -> Result<bool> {
    match value.map(|value| value.to_str().map(str::trim)) {
        None | Some(Some("" | "replayed")) => Ok(false),
        Some(Some("native")) => Ok(true),
        _ => {
            let why = "GPUMEM_ROC_GRAPHS is native or replayed";
            Err(Error::new(NAME, "open", ErrorKind::InvalidArgument { why }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_has_two_values() {
        let read = |value: &str| is_asked(Some(OsStr::new(value))).ok();
        assert_eq!(is_asked(None).ok(), Some(false));
        assert_eq!(["", "replayed", " native "].map(read), [Some(false), Some(false), Some(true)]);
        assert_eq!(["1", "Native", "native,replayed"].map(read), [None; 3]);
    }
}
