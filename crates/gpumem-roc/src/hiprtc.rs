//! Compiling source text to a code object for one device.

use crate::{NAME, info, probe};
use gpumem_core::{CompileOptions, Error, ErrorKind, Result, c_text, process::PerProcess};
use gpumem_sys::{
    MissingSymbol,
    hip::{Hiprtc, Version, hiprtcProgram, hiprtcResult},
};
use parking_lot::Mutex;
use std::{
    ffi::{CStr, CString, c_char, c_int},
    ptr::null_mut,
};

const OPERATION: &str = "compile";
/// Keeps a product and a sum apart: hipRTC contracts by default.
const NO_CONTRACTION: &str = "-ffp-contract=off";
/// The same memory is seen as numbers of several types: dynamic shared memory, and what changes atomically.
const ANY_ALIASING: &str = "-fno-strict-aliasing";
/// Options by which a user says how products and sums are computed.
const DECIDE_CONTRACTION: [&str; 3] = ["-ffp-contract", "-ffast-math", "-Ofast"];

/// Held while hipRTC compiles. Its compiler (comgr, which is LLVM) keeps options in global variables, so that two
/// compilations at the same time can end it, and hipRTC does not promise to take a lock itself.
static COMPILER: PerProcess<Mutex<()>> = PerProcess::new(Mutex::default);

/// Compiles `source` to a code object for `isa`, an architecture with its features as the device names it.
pub(crate) fn compile(source: &str, isa: &str, compile_options: &CompileOptions) -> Result<Vec<u8>> {
    let probe::Rtc { api, version, hip } = probe::hiprtc(OPERATION)?;
    if !is_known(info::base(isa), *hip) {
        return Err(build(format!("{version} does not know the architecture {isa:?}")));
    }
    let source = c_string(source, "the source text has a zero byte in it")?;
    let flags = compile_options.flags_without_contraction(NO_CONTRACTION, &DECIDE_CONTRACTION);
    let options: Vec<CString> = options(info::base(isa), &flags)?
        .iter()
        .map(|flag| c_string(flag, "an option has a zero byte in it"))
        .collect::<Result<_>>()?;

    let alone = COMPILER.get().lock();
    let mut program = Program { api, raw: null_mut() };
    let compiled = program.compile(&source, &options);
    // Before the next one may compile.
    let destroyed = program.destroy();
    drop(alone);
    // Without the lock: a subscriber may compile.
    if let Err(answer) = destroyed {
        gpumem_core::tell!(warn: "a hipRTC program could not be destroyed: {answer}");
    }
    compiled
}

/// Compiles for an architecture by its name; this machine needs no such device. `text` returns the source for a wave
/// size.
pub(crate) fn compile_for(
    architecture: &str,
    text: &dyn Fn(u32) -> String,
    options: &CompileOptions,
) -> Result<Vec<u8>> {
    let Some(wave_size) = wave_size(info::base(architecture)) else {
        return Err(build(format!("{architecture:?} is no name of an architecture of AMD's")));
    };
    compile(&text(wave_size), architecture, options)
}

/// Work-items of a wave on an architecture; `None` if its name is none. It has a decimal generation, and two digits after it.
fn wave_size(architecture: &str) -> Option<u32> {
    let digits = architecture.strip_prefix("gfx")?;
    let (generation, rest) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
    let is_hexadecimal = rest.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let is_decimal = generation.bytes().all(|digit| digit.is_ascii_digit());
    let generation: u32 = (is_hexadecimal && is_decimal).then(|| generation.parse().ok()).flatten()?;
    Some(if generation >= 10 { 32 } else { 64 })
}

/// Whether there is a hipRTC that compiles for `isa`.
pub(crate) fn serves(isa: &str) -> bool {
    probe::hiprtc(OPERATION).is_ok_and(|rtc| is_known(info::base(isa), rtc.hip))
}

/// Whether hipRTC of that HIP knows the architecture. That of ROCm 5 ends the process otherwise (LLVM's fatal error for an
/// unknown processor); from ROCm 6 on it says so itself. Names that are none of AMD's are not its business.
fn is_known(architecture: &str, hip: Version) -> bool {
    // The processors of LLVM 14, with which ROCm 5.2 compiles, and those that came with 5.3 and 5.7.
    const OF_5_2: &str = "gfx600 gfx601 gfx602 gfx700 gfx701 gfx702 gfx703 gfx704 gfx705 gfx801 gfx802 gfx803 gfx805 \
        gfx810 gfx900 gfx902 gfx904 gfx906 gfx908 gfx909 gfx90a gfx90c gfx1010 gfx1011 gfx1012 gfx1013 gfx1030 gfx1031 \
        gfx1032 gfx1033 gfx1034 gfx1035";
    const OF_5_3: &str = "gfx940 gfx1036 gfx1100 gfx1101 gfx1102 gfx1103";
    const OF_5_7: &str = "gfx941 gfx942";
    if !architecture.starts_with("gfx") || hip >= Version::new(60_000_000) {
        return true;
    }
    [(OF_5_2, 0), (OF_5_3, 50_300_000), (OF_5_7, 50_700_000)].iter().any(|(names, since)| {
        hip >= Version::new(*since) && names.split(' ').any(|name| name == architecture)
    })
}

/// Adds the architecture, and what every kernel needs, to the options. Any other than the device's is refused: the device could
/// not run the image, and hipRTC of ROCm 5 ends the process if it does not know the name.
fn options(architecture: &str, flags: &[String]) -> Result<Vec<String>> {
    let names = |flag: &str| -> Vec<String> {
        let separators = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, ':' | '+' | '-' | '_'));
        flag.split(separators)
            .filter(|word| word.starts_with("gfx") || word.starts_with("amdgcn"))
            .map(str::to_owned)
            .collect()
    };
    let asks = |flag: &String| {
        ["--gpu-architecture", "--offload-arch", "-march", "-mcpu", "-arch", "--target", "-target"]
            .iter()
            .any(|option| flag.starts_with(option))
    };
    let named: Vec<String> = flags.iter().flat_map(|flag| names(flag)).collect();
    if let Some(other) = named.iter().find(|name| info::base(name) != architecture) {
        let log = format!("the options ask for the architecture {other:?}, and the device is {architecture}");
        return Err(build(log));
    }
    if named.is_empty() && flags.iter().any(asks) {
        let log = format!(
            "the options ask for an architecture that is none of AMD's; the device is {architecture}"
        );
        return Err(build(log));
    }
    let mut options = vec![ANY_ALIASING.to_owned()];
    if named.is_empty() {
        options.push(format!("--gpu-architecture={architecture}"));
    }
    options.extend(flags.iter().cloned());
    Ok(options)
}

struct Program {
    api: &'static Hiprtc,
    raw: hiprtcProgram,
}

impl Program {
    /// Compiles a source into the program. The caller is alone.
    fn compile(&mut self, source: &CStr, options: &[CString]) -> Result<Vec<u8>> {
        let mut options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the source ends with a zero; there are no headers, and hipRTC reads none; the program outlives neither.
        let created = unsafe {
            self.api.hiprtcCreateProgram(
                &mut self.raw,
                source.as_ptr(),
                c"gpumem.hip".as_ptr(),
                0,
                null_mut(),
                null_mut(),
            )
        };
        check(created, String::new)?;
        let count =
            c_int::try_from(options.len()).map_err(|_| build("there are too many options".to_owned()))?;
        // SAFETY: the program is alive; there are `count` options, each ended by a zero, none of which hipRTC writes.
        let compiled = unsafe { self.api.hiprtcCompileProgram(self.raw, count, options.as_mut_ptr()) };
        check(compiled, || self.log())?;
        self.code()
    }

    /// The compiler's words, or nothing where it has none.
    fn log(&self) -> String {
        let mut bytes = 0;
        // SAFETY: the program is alive; a place for a size.
        let answer = unsafe { self.api.hiprtcGetProgramLogSize(self.raw, &mut bytes) };
        if answer != Ok(hiprtcResult::HIPRTC_SUCCESS) || bytes == 0 {
            return String::new();
        }
        let mut log = vec![0 as c_char; bytes + 1];
        // SAFETY: the buffer has the length that was asked for.
        if unsafe { self.api.hiprtcGetProgramLog(self.raw, log.as_mut_ptr()) }
            != Ok(hiprtcResult::HIPRTC_SUCCESS)
        {
            return String::new();
        }
        c_text::read(&log).trim_end().to_owned()
    }

    /// Destroys the program. What hipRTC says, if it does not do so.
    fn destroy(mut self) -> Result<(), String> {
        if self.raw.is_null() {
            return Ok(());
        }
        // SAFETY: the program is ours and is not used again.
        match unsafe { self.api.hiprtcDestroyProgram(&mut self.raw) } {
            Ok(hiprtcResult::HIPRTC_SUCCESS) => Ok(()),
            answer => Err(format!("{answer:?}")),
        }
    }

    fn code(&self) -> Result<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: the program is compiled; a place for a size.
        check(unsafe { self.api.hiprtcGetCodeSize(self.raw, &mut bytes) }, || self.log())?;
        let mut code = vec![0u8; bytes];
        // SAFETY: the buffer has the length that was asked for.
        check(unsafe { self.api.hiprtcGetCode(self.raw, code.as_mut_ptr().cast::<c_char>()) }, || {
            self.log()
        })?;
        Ok(code)
    }
}

fn c_string(text: &str, problem: &str) -> Result<CString> {
    CString::new(text).map_err(|_| build(problem.to_owned()))
}

fn build(log: String) -> Error {
    Error::new(NAME, OPERATION, ErrorKind::Build { log })
}

/// The error for a failed call: the compiler's words, or the name of the code where it has none.
fn check(answer: Result<hiprtcResult, MissingSymbol>, log: impl FnOnce() -> String) -> Result<()> {
    match answer {
        Ok(hiprtcResult::HIPRTC_SUCCESS) => Ok(()),
        Ok(result) => {
            let log = log();
            Err(build(if log.is_empty() { name(result) } else { log }))
        }
        Err(MissingSymbol(_)) => {
            let what = "compiling (this version of hipRTC lacks a function)";
            Err(Error::new(NAME, OPERATION, ErrorKind::Unsupported { what }))
        }
    }
}

fn name(result: hiprtcResult) -> String {
    const NAMES: &str = "OUT_OF_MEMORY PROGRAM_CREATION_FAILURE INVALID_INPUT INVALID_PROGRAM \
        INVALID_OPTION COMPILATION BUILTIN_OPERATION_FAILURE NO_NAME_EXPRESSIONS_AFTER_COMPILATION \
        NO_LOWERED_NAMES_BEFORE_COMPILATION NAME_EXPRESSION_NOT_VALID INTERNAL_ERROR";
    let code = result.0;
    let name = code.checked_sub(1).and_then(|at| NAMES.split(' ').nth(at as usize));
    name.map_or_else(|| format!("hipRTC reports {code}"), |name| format!("HIPRTC_ERROR_{name} ({code})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn the_architecture_is_the_devices() {
        let own = |flags: &[&str]| options("gfx90a", &strings(flags));
        assert_eq!(own(&["-O3"]).unwrap(), [ANY_ALIASING, "--gpu-architecture=gfx90a", "-O3"]);
        for flag in ["--offload-arch=gfx90a", "--gpu-architecture=gfx90a:xnack-", "-mcpu=gfx90a"] {
            assert_eq!(own(&[flag]).unwrap(), [ANY_ALIASING, flag]);
        }
    }

    #[test]
    fn unknown_architectures_never_reach_the_compiler() {
        let [old, later, last, new] = [50_221_153, 50_300_000, 50_731_921, 60_032_830].map(Version::new);
        for (architecture, known) in [
            ("gfx906", [true; 4]),
            ("gfx1030", [true; 4]),
            ("gfx1100", [false, true, true, true]),
            ("gfx942", [false, false, true, true]),
            ("gfx1201", [false, false, false, true]),
            ("gfx", [false, false, false, true]),
            ("gfx90", [false, false, false, true]),
            ("sm_90", [true; 4]),
        ] {
            let found = [old, later, last, new].map(|version| is_known(architecture, version));
            assert_eq!(found, known, "{architecture}");
        }
    }

    #[test]
    fn another_architecture_never_reaches_the_compiler() {
        for flags in [
            &["--gpu-architecture=gfx906"][..],
            &["--offload-arch=gfx9999"],
            &["--offload-arch", "gfx9-4-generic"],
            &["-mcpu=gfx90"],
            &["--gpu-architecture=sm_90"],
            &["--offload-arch=gfx90a", "--offload-arch=gfx908"],
            &["--gpu-architecture=amdgcn-amd-amdhsa--gfx906"],
        ] {
            let error = options("gfx90a", &strings(flags)).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Build { .. }), "{flags:?}: {error}");
            assert!(error.to_string().contains("gfx90a"), "{error}");
        }
    }
}
