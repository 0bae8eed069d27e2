//! AMD's disassembler, from the comgr library that comes with every ROCm.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    fmt,
    mem::transmute,
    sync::OnceLock,
};

type ReadMemory = unsafe extern "C" fn(u64, *mut c_char, u64, *mut c_void) -> u64;
type PrintInstruction = unsafe extern "C" fn(*const c_char, *mut c_void);
type PrintAddress = unsafe extern "C" fn(u64, *mut c_void);
type Create =
    unsafe extern "C" fn(*const c_char, ReadMemory, PrintInstruction, PrintAddress, *mut u64) -> c_int;
type Destroy = unsafe extern "C" fn(u64) -> c_int;
type Disassemble = unsafe extern "C" fn(u64, u64, *mut c_void, *mut u64) -> c_int;

/// The longest instruction of any architecture, in bytes.
pub(super) const LONGEST: usize = 20;

/// The functions of comgr that are needed.
#[derive(Clone, Copy)]
struct Library {
    create: Create,
    destroy: Destroy,
    disassemble: Disassemble,
}

impl Library {
    /// The library, loaded once; `None` where it is not installed.
    fn get() -> Option<Self> {
        static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
        *LIBRARY.get_or_init(|| {
            // SAFETY: loading comgr runs its initialisers, which have no preconditions.
            unsafe { Self::load() }
        })
    }

    /// # Safety
    /// A library of comgr's name has comgr's interface of version 2 or 3.
    unsafe fn load() -> Option<Self> {
        // The newest knows most instruction sets. A newer ROCm beside the system comes before the system's.
        let names = [c"libamd_comgr.so.3", c"libamd_comgr.so.2"];
        let open = |name: &&CStr| {
            // SAFETY: the name is a C string; the caller vouches for the library.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            (!handle.is_null()).then_some(handle)
        };
        let library = names.iter().find_map(open)?;
        let symbol = |name: &CStr| {
            // SAFETY: the handle is valid and the name a C string.
            let address = unsafe { libc::dlsym(library, name.as_ptr()) };
            (!address.is_null()).then_some(address)
        };
        let create = symbol(c"amd_comgr_create_disassembly_info")?;
        let destroy = symbol(c"amd_comgr_destroy_disassembly_info")?;
        let disassemble = symbol(c"amd_comgr_disassemble_instruction")?;
        // SAFETY: the functions have these types in `amd_comgr.h`.
        unsafe {
            Some(Self {
                create: transmute::<*mut c_void, Create>(create),
                destroy: transmute::<*mut c_void, Destroy>(destroy),
                disassemble: transmute::<*mut c_void, Disassemble>(disassemble),
            })
        }
    }
}

/// Why no disassembler could be made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// comgr is not installed.
    Library,
    /// comgr does not know the instruction set.
    Isa(String),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Library => f.write_str("AMD's comgr (libamd_comgr.so.2 or 3) is not installed"),
            Missing::Isa(name) => write!(f, "AMD's comgr does not know {name}"),
        }
    }
}

/// One instruction as comgr prints it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    /// Its length in bytes.
    pub(super) bytes: u64,
    /// Where it branches to, if it does and says so.
    pub(super) target: Option<u64>,
}

/// The disassembler of one instruction set.
pub(super) struct Disassembler {
    library: Library,
    info: u64,
}

/// The data of the callbacks.
struct Request<'a> {
    address: u64,
    code: &'a [u8],
    text: String,
    target: Option<u64>,
}

impl Disassembler {
    /// The disassembler of an instruction set such as `gfx906`.
    pub(super) fn new(isa: &str) -> Result<Self, Missing> {
        let library = Library::get().ok_or(Missing::Library)?;
        let unknown = || Missing::Isa(isa.to_owned());
        let name = CString::new(format!("amdgcn-amd-amdhsa--{isa}")).map_err(|_| unknown())?;
        let mut info = 0;
        // SAFETY: the name is a C string, the callbacks have comgr's types, and the result is written to our word.
        let status = unsafe {
            (library.create)(name.as_ptr(), read_memory, print_instruction, print_address, &mut info)
        };
        if status == 0 { Ok(Self { library, info }) } else { Err(unknown()) }
    }

    /// The instruction at an address; `code` begins with it. `None` if the bytes are no instruction.
    pub(super) fn line(&self, address: u64, code: &[u8]) -> Option<Line> {
        let code = code.get(..LONGEST).unwrap_or(code);
        let mut request = Request { address, code, text: String::new(), target: None };
        let mut bytes = 0;
        // SAFETY: the callbacks get the request back, which outlives the call.
        let status =
            unsafe { (self.library.disassemble)(self.info, address, (&raw mut request).cast(), &mut bytes) };
        let Request { text, target, .. } = request;
        (status == 0 && bytes != 0).then_some(Line { text, bytes, target })
    }
}

impl Drop for Disassembler {
    fn drop(&mut self) {
        // SAFETY: the handle was made by comgr and is released once.
        unsafe { (self.library.destroy)(self.info) };
    }
}

impl fmt::Debug for Disassembler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disassembler").finish_non_exhaustive()
    }
}

unsafe extern "C" fn read_memory(from: u64, to: *mut c_char, bytes: u64, request: *mut c_void) -> u64 {
    // SAFETY: comgr passes the request of `line`.
    let request = unsafe { &*request.cast::<Request<'_>>() };
    let Some(code) = from.checked_sub(request.address).and_then(|start| request.code.get(start as usize..))
    else {
        return 0;
    };
    let count = code.len().min(bytes as usize);
    // SAFETY: comgr's buffer has room for `bytes`, and does not overlap them.
    unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), to.cast(), count) };
    count as u64
}

unsafe extern "C" fn print_instruction(text: *const c_char, request: *mut c_void) {
    // SAFETY: comgr passes the request of `line`, and the text is a C string.
    unsafe {
        let request = &mut *request.cast::<Request<'_>>();
        request.text = CStr::from_ptr(text).to_string_lossy().trim().to_owned();
    }
}

unsafe extern "C" fn print_address(address: u64, request: *mut c_void) {
    // SAFETY: comgr passes the request of `line`.
    unsafe { (*request.cast::<Request<'_>>()).target = Some(address) };
}
