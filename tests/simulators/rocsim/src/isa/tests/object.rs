//! Code objects: compiled by hipRTC, loaded into memory of the simulated GPU.

use crate::{
    abi::MemFlags,
    memory::{self, span},
};
use libloading::Library;
use std::{
    collections::HashMap,
    ffi::{CString, c_char, c_int, c_void},
    sync::{Mutex, OnceLock},
};

/// Says why a test does nothing, or fails where that is not allowed.
pub(super) fn skip(reason: &str) {
    assert!(std::env::var_os("ROCSIM_REQUIRE").is_none(), "{reason}");
    println!("skipped: {reason}");
}

/// The libraries with AMD's compiler: ROCm 7, 6 and 5. A newer ROCm beside the system comes before the system's.
const COMPILERS: [&str; 3] = ["libhiprtc.so.7", "libhiprtc.so.6", "libamdhip64.so.5"];

/// The first that is there, with its place in the list.
fn hiprtc() -> Option<&'static (usize, Library)> {
    static LIBRARY: OnceLock<Option<(usize, Library)>> = OnceLock::new();
    // SAFETY: loading HIP has no preconditions.
    let load = |name: &&str| unsafe { Library::new(*name) }.ok();
    let first = || COMPILERS.iter().enumerate().find_map(|(at, name)| Some((at, load(name)?)));
    LIBRARY.get_or_init(first).as_ref()
}

/// Whether the compiler is that of ROCm 6 or 7.
pub(super) fn is_newer() -> bool {
    hiprtc().is_some_and(|(at, _)| COMPILERS[*at] != "libamdhip64.so.5")
}

/// Compiles a text with AMD's compiler. Prints the reason and returns `None` if there is no compiler.
pub(super) fn compile(text: &str, isa: &str, flags: &[&str]) -> Option<Vec<u8>> {
    // The compiler keeps options in variables of the process.
    static ALONE: Mutex<()> = Mutex::new(());
    let Some((_, library)) = hiprtc() else {
        skip("AMD's compiler (libamdhip64.so.5, libhiprtc.so.6 or 7) is not installed");
        return None;
    };
    let _alone = ALONE.lock().unwrap();
    let text = CString::new(text).unwrap();
    let options: Vec<CString> = std::iter::once(format!("--gpu-architecture={isa}"))
        .chain(flags.iter().map(|flag| (*flag).to_owned()))
        .map(|option| CString::new(option).unwrap())
        .collect();
    let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    type Create = unsafe extern "C" fn(
        *mut *mut c_void,
        *const c_char,
        *const c_char,
        c_int,
        *const c_void,
        *const c_void,
    ) -> c_int;
    type Compile = unsafe extern "C" fn(*mut c_void, c_int, *const *const c_char) -> c_int;
    type Size = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
    type Get = unsafe extern "C" fn(*mut c_void, *mut c_char) -> c_int;
    // SAFETY: the functions have these types in `hiprtc.h`, and the buffers are as long as it says.
    unsafe {
        let mut program = std::ptr::null_mut();
        let none = std::ptr::null();
        let create = library.get::<Create>(b"hiprtcCreateProgram").unwrap();
        assert_eq!(create(&mut program, text.as_ptr(), c"test.hip".as_ptr(), 0, none, none), 0);
        let compile = library.get::<Compile>(b"hiprtcCompileProgram").unwrap();
        let status = compile(program, options.len() as c_int, options.as_ptr());
        let get = |size: &[u8], get: &[u8]| {
            let mut bytes = 0;
            assert_eq!(library.get::<Size>(size).unwrap()(program, &mut bytes), 0);
            let mut found = vec![0u8; bytes + 1];
            assert_eq!(library.get::<Get>(get).unwrap()(program, found.as_mut_ptr().cast()), 0);
            found.truncate(bytes);
            found
        };
        if status != 0 {
            let log = get(b"hiprtcGetProgramLogSize", b"hiprtcGetProgramLog");
            panic!("{}", String::from_utf8_lossy(&log));
        }
        Some(get(b"hiprtcGetCodeSize", b"hiprtcGetCode"))
    }
}

fn word<const N: usize>(bytes: &[u8], at: u64) -> [u8; N] {
    bytes[at as usize..at as usize + N].try_into().unwrap()
}
fn u16_at(bytes: &[u8], at: u64) -> u64 {
    u16::from_le_bytes(word(bytes, at)).into()
}
fn u32_at(bytes: &[u8], at: u64) -> u64 {
    u32::from_le_bytes(word(bytes, at)).into()
}
fn u64_at(bytes: &[u8], at: u64) -> u64 {
    u64::from_le_bytes(word(bytes, at))
}

/// A code object in memory of the GPU.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) node: u32,
    address: u64,
    /// Offset and size by name.
    symbols: HashMap<String, (u64, u64)>,
}

impl Object {
    /// Loads a code object, which may be the last entry of a bundle.
    pub(super) fn load(node: u32, code: &[u8]) -> Self {
        let code = unbundled(code);
        assert!(code.starts_with(b"\x7fELF"));
        let segments: Vec<u64> = (0..u16_at(code, 56)).map(|i| u64_at(code, 32) + i * 56).collect();
        let loaded: Vec<u64> = segments.into_iter().filter(|at| u32_at(code, *at) == 1).collect();
        let end = loaded.iter().map(|at| u64_at(code, at + 16) + u64_at(code, at + 40)).max().unwrap();
        let address = memory::allocate(node, end + 4096, MemFlags::default()).unwrap();
        memory::map(address, end, &[node]).unwrap();
        let mut image = vec![0u8; end as usize];
        for at in loaded {
            let (from, to, bytes) = (
                u64_at(code, at + 8) as usize,
                u64_at(code, at + 16) as usize,
                u64_at(code, at + 32) as usize,
            );
            image[to..to + bytes].copy_from_slice(&code[from..from + bytes]);
        }
        let sections: Vec<u64> = (0..u16_at(code, 60)).map(|i| u64_at(code, 40) + i * 64).collect();
        let of_kind = |kind: u64| sections.iter().copied().filter(move |at| u32_at(code, at + 4) == kind);
        let mut symbols = HashMap::new();
        let mut values = vec![];
        for section in of_kind(11) {
            let names = u64_at(code, u64_at(code, 40) + u32_at(code, section + 40) * 64 + 24);
            for at in entries(code, section) {
                let name = &code[(names + u32_at(code, at)) as usize..];
                let name = name.split(|byte| *byte == 0).next().unwrap();
                let (value, size) = (u64_at(code, at + 8), u64_at(code, at + 16));
                values.push(value);
                symbols.insert(String::from_utf8_lossy(name).into_owned(), (value, size));
            }
        }
        for section in of_kind(4) {
            for at in entries(code, section) {
                let (kind, symbol) = (u32_at(code, at + 8), u32_at(code, at + 12));
                let value = match kind {
                    13 => address + u64_at(code, at + 16),
                    3 => address + values[symbol as usize] + u64_at(code, at + 16),
                    _ => panic!("a relocation of kind {kind}"),
                };
                let to = u64_at(code, at) as usize;
                image[to..to + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        let to = span(node, address, end).unwrap();
        // SAFETY: the span is as long as the image, and no other code knows it yet.
        unsafe { std::ptr::copy_nonoverlapping(image.as_ptr(), to.as_ptr(), image.len()) };
        Self { node, address, symbols }
    }

    /// The address of a kernel's descriptor.
    pub(super) fn kernel(&self, name: &str) -> u64 {
        self.symbol(&format!("{name}.kd"))
    }

    /// The address of a variable or a function.
    pub(super) fn symbol(&self, name: &str) -> u64 {
        self.address + self.symbols.get(name).unwrap_or_else(|| panic!("no {name}")).0
    }

    /// The kernels' names, with the addresses and lengths of their code.
    pub(super) fn functions(&self) -> Vec<(&str, u64, u64)> {
        let is_kernel = |name: &str| self.symbols.contains_key(&format!("{name}.kd"));
        let found = self.symbols.iter().filter(|(name, _)| is_kernel(name));
        found.map(|(name, (value, size))| (name.as_str(), self.address + value, *size)).collect()
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        memory::free(self.address);
    }
}

fn entries(code: &[u8], section: u64) -> impl Iterator<Item = u64> {
    let start = u64_at(code, section + 24);
    (start..start + u64_at(code, section + 32)).step_by(24)
}

fn unbundled(code: &[u8]) -> &[u8] {
    if !code.starts_with(b"__CLANG_OFFLOAD_BUNDLE__") {
        return code;
    }
    let (mut at, mut found) = (32, &code[..0]);
    for _ in 0..u64_at(code, 24) {
        let (start, size, name) = (u64_at(code, at), u64_at(code, at + 8), u64_at(code, at + 16));
        if size != 0 {
            found = &code[start as usize..(start + size) as usize];
        }
        at += 24 + name;
    }
    found
}
