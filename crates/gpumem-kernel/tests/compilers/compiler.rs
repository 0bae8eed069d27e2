//! NVRTC and hipRTC, which have the same functions under two names.

use libloading::Library;
use std::{
    ffi::{CString, c_char, c_int, c_void},
    mem::ManuallyDrop,
    ptr::{null, null_mut},
    sync::{Mutex, PoisonError},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    Nvrtc,
    Hiprtc,
}

type Create = unsafe extern "C" fn(
    *mut *mut c_void,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(*mut c_void, c_int, *const *const c_char) -> c_int;
type Size = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
type Read = unsafe extern "C" fn(*mut c_void, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut *mut c_void) -> c_int;

/// hipRTC 5.2 does not bear two threads at once, and writes its listings to the process's current folder.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub(crate) struct Compiler {
    library: ManuallyDrop<Library>,
    prefix: &'static str,
    /// The kind of the result: PTX of NVRTC, which is readable without a disassembler, or code of hipRTC.
    result: &'static str,
}

impl Compiler {
    pub(crate) fn load(flavour: Flavour) -> Option<Self> {
        let (variable, prefix, result, names): (_, _, _, &[&str]) = match flavour {
            Flavour::Nvrtc => {
                ("GPUMEM_NVRTC", "nvrtc", "PTX", &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"])
            }
            Flavour::Hiprtc => (
                "GPUMEM_HIPRTC",
                "hiprtc",
                "Code",
                &["libhiprtc.so.7", "libhiprtc.so.6", "libamdhip64.so.6", "libamdhip64.so.5"],
            ),
        };
        let wished = std::env::var(variable).ok();
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        // A caller that names a library wants no other one.
        let wished = wished.as_deref();
        let mut names = wished.as_slice().iter().chain(if wished.is_some() { &[] } else { names }).copied();
        // SAFETY: a library of this name is the compiler.
        let library = names.find_map(|name| unsafe { Library::new(name) }.ok())?;
        // Never unloaded: its threads and exit handlers stay.
        Some(Self { library: ManuallyDrop::new(library), prefix, result })
    }

    /// # Safety
    /// `T` is the function's type.
    unsafe fn function<T: Copy>(&self, name: &str) -> T {
        let name = format!("{}{name}\0", self.prefix);
        // SAFETY: the caller's promise.
        *unsafe { self.library.get::<T>(name.as_bytes()) }.unwrap()
    }

    /// Compiles to PTX or a code object, or gives the log.
    pub(crate) fn compile(&self, text: &str, architecture: &str) -> Result<Vec<u8>, String> {
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        self.compile_to(self.result, text, architecture, &[])
    }

    /// Compiles with one more option.
    pub(crate) fn compile_with(
        &self,
        text: &str,
        architecture: &str,
        option: &str,
    ) -> Result<Vec<u8>, String> {
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        self.compile_to(self.result, text, architecture, &[option])
    }

    /// As [`compile`](Self::compile), and takes a warning for an error.
    #[allow(dead_code)] // other test programs share this file
    pub(crate) fn compile_without_warnings(&self, text: &str, architecture: &str) -> Result<Vec<u8>, String> {
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let (code, log) = self.compile_with_log(self.result, text, architecture, &[])?;
        if log.trim_matches(['\0', '\n', ' ']).is_empty() { Ok(code) } else { Err(log) }
    }

    /// Compiles to machine code of a real architecture with NVRTC.
    pub(crate) fn cubin(&self, text: &str, architecture: &str) -> Result<Vec<u8>, String> {
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        self.compile_to("CUBIN", text, architecture, &[])
    }

    /// Compiles to a code object with hipRTC, and gives the assembler text that it makes on the way: it is the only place
    /// that shows barriers which are no instruction.
    pub(crate) fn listing(&self, text: &str, architecture: &str) -> Result<String, String> {
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, folder) = (std::env::current_dir().unwrap(), tempfile::tempdir().unwrap());
        std::env::set_current_dir(folder.path()).unwrap();
        let outcome = self.compile_to(self.result, text, architecture, &["--save-temps"]);
        std::env::set_current_dir(before).unwrap();
        outcome?;
        let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let listing = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "s"));
        Ok(std::fs::read_to_string(listing.expect("--save-temps leaves a listing")).unwrap())
    }

    fn compile_to(
        &self,
        result: &str,
        text: &str,
        architecture: &str,
        more: &[&str],
    ) -> Result<Vec<u8>, String> {
        self.compile_with_log(result, text, architecture, more).map(|(code, _)| code)
    }

    fn compile_with_log(
        &self,
        result: &str,
        text: &str,
        architecture: &str,
        more: &[&str],
    ) -> Result<(Vec<u8>, String), String> {
        let text = CString::new(text).unwrap();
        let architecture = format!("--gpu-architecture={architecture}");
        let options = [architecture.as_str()].into_iter().chain(more.iter().copied());
        let options: Vec<_> = options.map(|option| CString::new(option).unwrap()).collect();
        let pointers: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).unwrap();
        let mut program = null_mut();
        // SAFETY: the functions have these types in both libraries; all texts end with a zero and outlive the program,
        // and every buffer has the size that was asked for.
        unsafe {
            let create = self.function::<Create>("CreateProgram");
            assert_eq!(create(&mut program, text.as_ptr(), c"program".as_ptr(), 0, null(), null()), 0);
            let status = self.function::<Compile>("CompileProgram")(program, count, pointers.as_ptr());
            let read = |size: &str, content: &str| {
                let mut bytes = 0;
                assert_eq!(self.function::<Size>(size)(program, &mut bytes), 0);
                let mut buffer = vec![0u8; bytes];
                assert_eq!(self.function::<Read>(content)(program, buffer.as_mut_ptr().cast()), 0);
                buffer
            };
            let log = String::from_utf8_lossy(&read("GetProgramLogSize", "GetProgramLog")).into_owned();
            let outcome = match status {
                0 => Ok((read(&format!("Get{result}Size"), &format!("Get{result}")), log)),
                _ => Err(log),
            };
            self.function::<Destroy>("DestroyProgram")(&mut program);
            outcome
        }
    }
}
