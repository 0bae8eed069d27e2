//! Compiling source text to machine code for one device.

use crate::{NAME, api::NvrtcApi, error::Status, probe};
use cudarc::nvrtc::sys::nvrtcProgram;
use gpumem_core::{CompileOptions, Error, ErrorKind, Result, c_text};
use std::{
    ffi::{CString, c_char, c_int},
    ptr::{null, null_mut},
};

const OPERATION: &str = "compile";
/// Threads of a warp, on every device of NVIDIA's.
pub(crate) const WAVE_SIZE: u32 = 32;
/// Keeps a product and a sum apart: NVRTC contracts by default.
const NO_CONTRACTION: &str = "--fmad=false";
/// Options by which a user says how products and sums are computed.
const DECIDE_CONTRACTION: [&str; 4] = ["--fmad", "-fmad", "--use_fast_math", "-use_fast_math"];

/// Compiles `source` to a cubin. PTX would not do: an NVRTC that is newer than the driver writes PTX that the driver
/// does not read.
pub(crate) fn compile(source: &str, architecture: &str, options: &CompileOptions) -> Result<Vec<u8>> {
    let api = &probe::nvrtc(OPERATION)?.api;
    let source = c_string(source, "the source text has a zero byte in it")?;
    let flags = options.flags_without_contraction(NO_CONTRACTION, &DECIDE_CONTRACTION);
    let mut options = Vec::with_capacity(flags.len() + 1);
    if !flags.iter().any(|flag| flag.starts_with("--gpu-architecture") || flag.starts_with("-arch")) {
        options.push(c_string(&format!("--gpu-architecture={architecture}"), "")?);
    }
    for flag in &flags {
        options.push(c_string(flag, "an option has a zero byte in it")?);
    }
    let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();

    let mut program = Program { api, raw: null_mut() };
    // SAFETY: the source ends with a zero; there are no headers; the program outlives neither.
    let status = unsafe {
        api.nvrtcCreateProgram(&mut program.raw, source.as_ptr(), c"gpumem.cu".as_ptr(), 0, null(), null())
    };
    status.ok().map_err(|status| failed(status, String::new()))?;
    let count = c_int::try_from(options.len()).map_err(|_| build("there are too many options".to_owned()))?;
    // SAFETY: the program is alive; there are `count` options, each ended by a zero.
    let status = unsafe { api.nvrtcCompileProgram(program.raw, count, options.as_ptr()) };
    status.ok().map_err(|status| failed(status, program.log()))?;
    program.cubin()
}

/// Compiles for an architecture by its name, of which this machine need have no device.
pub(crate) fn compile_for(architecture: &str, source: &str, options: &CompileOptions) -> Result<Vec<u8>> {
    let probe::Nvrtc { api, version } = probe::nvrtc(OPERATION)?;
    let known = known(api)?;
    if !number(architecture).is_some_and(|number| known.contains(&number)) {
        let known: Vec<String> = known.iter().map(|number| format!("sm_{number}")).collect();
        let known = known.join(", ");
        return Err(build(format!(
            "{version} does not know the architecture {architecture:?}, only {known}"
        )));
    }
    compile(source, architecture, options)
}

/// The number in the name of an architecture: 90 of `sm_90`, and of `sm_90a`, which has more.
fn number(architecture: &str) -> Option<c_int> {
    let digits = architecture.strip_prefix("sm_")?;
    let digits = digits.strip_suffix(['a', 'f']).unwrap_or(digits);
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// The numbers of the architectures that NVRTC compiles for.
fn known(api: &NvrtcApi) -> Result<Vec<c_int>> {
    let mut count = 0;
    // SAFETY: a place for a number.
    unsafe { api.nvrtcGetNumSupportedArchs(&mut count) }
        .ok()
        .map_err(|status| failed(status, String::new()))?;
    let mut numbers = vec![0; usize::try_from(count).unwrap_or_default()];
    // SAFETY: as many places as it has said.
    unsafe { api.nvrtcGetSupportedArchs(numbers.as_mut_ptr()) }
        .ok()
        .map_err(|status| failed(status, String::new()))?;
    Ok(numbers)
}

struct Program {
    api: &'static NvrtcApi,
    raw: nvrtcProgram,
}

impl Program {
    /// The compiler's words, or nothing where it has none.
    fn log(&self) -> String {
        let mut bytes = 0;
        // SAFETY: the program is alive; a place for a size.
        if !unsafe { self.api.nvrtcGetProgramLogSize(self.raw, &mut bytes) }.is_success() {
            return String::new();
        }
        let mut log = vec![0 as c_char; bytes];
        // SAFETY: the buffer has the length that was asked for.
        if !unsafe { self.api.nvrtcGetProgramLog(self.raw, log.as_mut_ptr()) }.is_success() {
            return String::new();
        }
        c_text::read(&log).trim_end().to_owned()
    }

    fn cubin(&self) -> Result<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: the program is compiled; a place for a size.
        let status = unsafe { self.api.nvrtcGetCUBINSize(self.raw, &mut bytes) };
        status.ok().map_err(|status| failed(status, self.log()))?;
        if bytes == 0 {
            let log =
                "the options ask for a virtual architecture (compute_), for which there is no machine code";
            return Err(build(log.to_owned()));
        }
        let mut cubin = vec![0u8; bytes];
        // SAFETY: the buffer has the length that was asked for.
        let status = unsafe { self.api.nvrtcGetCUBIN(self.raw, cubin.as_mut_ptr().cast::<c_char>()) };
        status.ok().map_err(|status| failed(status, self.log()))?;
        Ok(cubin)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: the program is ours and is not used again.
            let status = unsafe { self.api.nvrtcDestroyProgram(&mut self.raw) };
            if !status.is_success() {
                gpumem_core::tell!(warn: "an NVRTC program could not be destroyed: {}", name(status));
            }
        }
    }
}

fn c_string(text: &str, problem: &str) -> Result<CString> {
    CString::new(text).map_err(|_| build(problem.to_owned()))
}

fn build(log: String) -> Error {
    Error::new(NAME, OPERATION, ErrorKind::Build { log })
}

/// The error for a failed call: the compiler's words, or the name of the code where it has none.
fn failed(status: Status, log: String) -> Error {
    build(if log.is_empty() { name(status) } else { log })
}

fn name(status: Status) -> String {
    const NAMES: &str = "OUT_OF_MEMORY PROGRAM_CREATION_FAILURE INVALID_INPUT INVALID_PROGRAM \
        INVALID_OPTION COMPILATION BUILTIN_OPERATION_FAILURE NO_NAME_EXPRESSIONS_AFTER_COMPILATION \
        NO_LOWERED_NAMES_BEFORE_COMPILATION NAME_EXPRESSION_NOT_VALID INTERNAL_ERROR \
        TIME_FILE_WRITE_FAILED NO_PCH_CREATE_ATTEMPTED PCH_CREATE_HEAP_EXHAUSTED PCH_CREATE CANCELLED \
        TIME_TRACE_FILE_WRITE_FAILED BUSY";
    let code = status.0;
    let name = code.checked_sub(1).and_then(|at| NAMES.split(' ').nth(at as usize));
    name.map_or_else(|| format!("NVRTC reports {code}"), |name| format!("NVRTC_ERROR_{name} ({code})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_architectures_have_a_number() {
        let names = [
            "sm_90",
            "sm_90a",
            "sm_100f",
            "sm_",
            "sm_a",
            "sm_+9",
            "sm_90aa",
            "sm_9 0",
            "compute_90",
            "gfx90a",
        ];
        let numbers = [Some(90), Some(90), Some(100), None, None, None, None, None, None, None];
        assert_eq!(names.map(number), numbers);
    }
}
