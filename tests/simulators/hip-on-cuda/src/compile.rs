//! hipRTC's programs, compiled by NVRTC.

use crate::{
    driver::{NvrtcApi, Status},
    options,
    properties::Reader,
    state::{self, log},
    types::hiprtcResult,
};
use cudarc::nvrtc::sys::nvrtcProgram;
use std::{
    env,
    ffi::{CStr, CString, c_char, c_int},
    ptr::null_mut,
    sync::OnceLock,
};

/// The result of translating a hipRTC call.
pub(crate) type Compiled<T = ()> = Result<T, hiprtcResult>;

/// Names that HIP's compiler knows and NVRTC does not.
pub(crate) const PRELUDE: &CStr =
    match CStr::from_bytes_with_nul(concat!(include_str!("prelude.h"), "\0").as_bytes()) {
        Ok(text) => text,
        Err(_) => c"#error the prelude has a zero byte in it",
    };
const PRELUDE_NAME: &CStr = c"hip_on_cuda_prelude.h";

/// HIP's own headers that a program may include, though hipRTC needs none of them.
const HEADERS: [(&CStr, &CStr); 3] =
    [(PRELUDE_NAME, PRELUDE), (c"hip/hip_runtime.h", c""), (c"hip/hip_runtime_api.h", c"")];

macro_rules! results {
    ($($constant:ident = $number:literal $name:literal,)*) => {
        impl hiprtcResult {
            $(#[doc = concat!("`", $name, "`")] pub const $constant: Self = Self($number);)*
        }

        /// All results with their names in the header. Their numbers are NVRTC's.
        pub const RESULTS: &[(hiprtcResult, &str)] = &[$((hiprtcResult::$constant, concat!($name, "\0")),)*];
    };
}

results! {
    SUCCESS = 0 "HIPRTC_SUCCESS",
    OUT_OF_MEMORY = 1 "HIPRTC_ERROR_OUT_OF_MEMORY",
    PROGRAM_CREATION_FAILURE = 2 "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
    INVALID_INPUT = 3 "HIPRTC_ERROR_INVALID_INPUT",
    INVALID_PROGRAM = 4 "HIPRTC_ERROR_INVALID_PROGRAM",
    INVALID_OPTION = 5 "HIPRTC_ERROR_INVALID_OPTION",
    COMPILATION = 6 "HIPRTC_ERROR_COMPILATION",
    BUILTIN_OPERATION_FAILURE = 7 "HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE",
    NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8 "HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
    NO_LOWERED_NAMES_BEFORE_COMPILATION = 9 "HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
    NAME_EXPRESSION_NOT_VALID = 10 "HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
    INTERNAL_ERROR = 11 "HIPRTC_ERROR_INTERNAL_ERROR",
}

impl From<Status> for hiprtcResult {
    fn from(Status(code): Status) -> Self {
        if code <= Self::INTERNAL_ERROR.0 { Self(code) } else { Self::INTERNAL_ERROR }
    }
}

fn check(status: Status) -> Compiled {
    match hiprtcResult::from(status) {
        hiprtcResult::SUCCESS => Ok(()),
        error => Err(error),
    }
}

fn nvrtc() -> Result<&'static NvrtcApi, &'static str> {
    static NVRTC: OnceLock<Result<NvrtcApi, String>> = OnceLock::new();
    NVRTC.get_or_init(NvrtcApi::load).as_ref().map_err(String::as_str)
}

/// The architecture to compile for: that of the calling thread's device. Without one, `HIP_ON_CUDA_ARCH`, so that
/// kernels can be compiled on a machine without a GPU.
fn architecture() -> Option<String> {
    let device = || Reader::new(state::cuda()?, state::device())?.architecture();
    env::var("HIP_ON_CUDA_ARCH").ok().filter(|name| !name.is_empty()).or_else(|| device().ok())
}

/// A program of hipRTC. NVRTC sees it when it is compiled.
#[derive(Debug)]
pub struct Program {
    source: CString,
    name: CString,
    headers: Vec<(CString, CString)>,
    expressions: Vec<CString>,
    native: Option<nvrtcProgram>,
    log: Vec<u8>,
    code: Vec<u8>,
}

impl Program {
    /// A program with headers as pairs of name and text.
    pub(crate) fn new(source: &CStr, name: Option<&CStr>, headers: Vec<(CString, CString)>) -> Self {
        Self {
            source: source.to_owned(),
            name: name.filter(|name| !name.is_empty()).unwrap_or(c"kernels.hip").to_owned(),
            headers,
            expressions: Vec::new(),
            native: None,
            log: Vec::new(),
            code: Vec::new(),
        }
    }

    /// The source as NVRTC gets it. Messages keep the lines of the program.
    fn text(&self) -> Vec<u8> {
        let mut text = b"#include \"".to_vec();
        text.extend(PRELUDE_NAME.to_bytes());
        text.extend(b"\"\n#line 1 \"");
        text.extend(self.name.to_bytes());
        text.extend(b"\"\n");
        text.extend(self.source.to_bytes());
        text
    }

    pub(crate) fn add_expression(&mut self, expression: &CStr) -> Compiled {
        if self.native.is_some() {
            return Err(hiprtcResult::NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
        }
        self.expressions.push(expression.to_owned());
        Ok(())
    }

    pub(crate) fn compile(&mut self, options: &[&CStr]) -> Compiled {
        if self.native.is_some() {
            return Err(hiprtcResult::INVALID_PROGRAM);
        }
        let api = match nvrtc() {
            Ok(api) => api,
            Err(reason) => return Err(self.fail(hiprtcResult::INTERNAL_ERROR, reason)),
        };
        let Some(architecture) = architecture() else {
            let reason = "there is no device to compile for, and HIP_ON_CUDA_ARCH names none";
            return Err(self.fail(hiprtcResult::INTERNAL_ERROR, reason));
        };
        let mut texts = Vec::new();
        for option in options {
            texts.push(option.to_str().map_err(|_| hiprtcResult::INVALID_OPTION)?);
        }
        let options: Vec<CString> = options::translate(texts, &architecture)
            .into_iter()
            .map(|option| CString::new(option).map_err(|_| hiprtcResult::INVALID_OPTION))
            .collect::<Result<_, _>>()?;

        let source = CString::new(self.text()).map_err(|_| hiprtcResult::INVALID_INPUT)?;
        let headers = HEADERS.iter().copied();
        let headers = headers.chain(self.headers.iter().map(|(name, text)| (&**name, &**text)));
        let (names, contents): (Vec<_>, Vec<_>) =
            headers.map(|(name, text)| (name.as_ptr(), text.as_ptr())).unzip();
        let count = c_int::try_from(names.len()).map_err(|_| hiprtcResult::INVALID_INPUT)?;
        let mut native = null_mut();
        // SAFETY: all texts end with a zero and live during the call; there are as many as is said.
        check(unsafe {
            let (source, name) = (source.as_ptr(), self.name.as_ptr());
            api.nvrtcCreateProgram(&mut native, source, name, count, contents.as_ptr(), names.as_ptr())
        })?;
        self.native = Some(native);
        for expression in &self.expressions {
            // SAFETY: the program is alive, and the text ends with a zero.
            check(unsafe { api.nvrtcAddNameExpression(native, expression.as_ptr()) })?;
        }
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(options.len()).map_err(|_| hiprtcResult::INVALID_OPTION)?;
        // SAFETY: the program is alive; there are as many options as is said, each ended by a zero.
        let outcome = check(unsafe { api.nvrtcCompileProgram(native, count, options.as_ptr()) });
        // SAFETY: the functions write as many bytes as they have announced.
        unsafe {
            self.log = read(
                |bytes| api.nvrtcGetProgramLogSize(native, bytes),
                |to| api.nvrtcGetProgramLog(native, to),
            );
            if outcome.is_ok() {
                self.code =
                    read(|bytes| api.nvrtcGetCUBINSize(native, bytes), |to| api.nvrtcGetCUBIN(native, to));
            }
        }
        outcome
    }

    /// Puts this library's reason where the compiler's log would be.
    fn fail(&mut self, error: hiprtcResult, reason: &str) -> hiprtcResult {
        log(reason);
        self.log = format!("hip-on-cuda: {reason}\0").into_bytes();
        error
    }

    /// The compiler's words with the zero at their end; nothing before it has run.
    pub(crate) fn log(&self) -> &[u8] {
        &self.log
    }

    /// The machine code; nothing if it was not compiled.
    pub(crate) fn code(&self) -> &[u8] {
        &self.code
    }

    /// The name that the compiler has given to an expression, which lives as long as the program.
    pub(crate) fn lowered(&self, expression: &CStr) -> Compiled<*const c_char> {
        let (Some(native), Ok(api)) = (self.native, nvrtc()) else {
            return Err(hiprtcResult::NO_LOWERED_NAMES_BEFORE_COMPILATION);
        };
        let mut name = std::ptr::null();
        // SAFETY: the program is alive, the text ends with a zero, and there is a place for an address.
        check(unsafe { api.nvrtcGetLoweredName(native, expression.as_ptr(), &mut name) })?;
        Ok(name)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let (Some(mut native), Ok(api)) = (self.native, nvrtc()) {
            // SAFETY: the program is ours and is not used again.
            let _ = unsafe { api.nvrtcDestroyProgram(&mut native) };
        }
    }
}

/// Asks for the number of bytes, then reads them; returns none if either fails.
///
/// # Safety
/// `content` writes no more bytes than `size` has said.
unsafe fn read(
    size: impl FnOnce(&mut usize) -> Status,
    content: impl FnOnce(*mut c_char) -> Status,
) -> Vec<u8> {
    let mut bytes = 0;
    if size(&mut bytes) != Status(0) || bytes == 0 {
        return Vec::new();
    }
    let mut buffer = vec![0u8; bytes];
    if content(buffer.as_mut_ptr().cast()) == Status(0) { buffer } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_nvrtc_are_hiprtcs() {
        assert_eq!(check(Status(0)), Ok(()));
        assert_eq!(check(Status(6)), Err(hiprtcResult::COMPILATION));
        assert_eq!(check(Status(14)), Err(hiprtcResult::INTERNAL_ERROR));
        for (index, (result, name)) in RESULTS.iter().enumerate() {
            assert_eq!(result.0 as usize, index, "{name}");
        }
    }

    #[test]
    fn the_prelude_comes_first_and_lines_keep_their_numbers() {
        let program = Program::new(c"first line", Some(c"a.hip"), Vec::new());
        let text = String::from_utf8(program.text()).unwrap();
        assert_eq!(text, "#include \"hip_on_cuda_prelude.h\"\n#line 1 \"a.hip\"\nfirst line");
        assert!(PRELUDE.to_bytes().starts_with(b"// What HIP's compiler knows"));
        assert_eq!(Program::new(c"", Some(c""), Vec::new()).name.as_c_str(), c"kernels.hip");
    }

    #[test]
    fn without_a_compiler_the_log_says_so() {
        if nvrtc().is_ok() {
            println!("skipped: there is a compiler here");
            return;
        }
        let mut program = Program::new(c"", None, Vec::new());
        assert_eq!(program.compile(&[]), Err(hiprtcResult::INTERNAL_ERROR));
        let log = CStr::from_bytes_with_nul(program.log()).unwrap().to_str().unwrap();
        assert!(log.starts_with("hip-on-cuda: ") && log.contains(" is not found"), "{log}");
        assert_eq!(program.lowered(c"f<1>"), Err(hiprtcResult::NO_LOWERED_NAMES_BEFORE_COMPILATION));
        assert!(program.code().is_empty());
    }
}
