//! Names of kernels, asked from the loader of the HSA runtime that has loaded them.

use std::{
    ffi::{CStr, c_char, c_void},
    mem::transmute,
    sync::OnceLock,
};

type HsaStatus = u32;

const SUCCESS: HsaStatus = 0;
const INFO_BREAK: HsaStatus = 1;
const EXTENSION_AMD_LOADER: u16 = 0x201;
const SYMBOL_INFO_TYPE: u32 = 0;
const SYMBOL_INFO_NAME_LENGTH: u32 = 1;
const SYMBOL_INFO_NAME: u32 = 2;
const SYMBOL_INFO_KERNEL_OBJECT: u32 = 22;
const SYMBOL_KIND_KERNEL: u32 = 1;

type SymbolCallback = unsafe extern "C" fn(u64, u64, u64, *mut c_void) -> HsaStatus;
type HandleCallback = unsafe extern "C" fn(u64, *mut c_void) -> HsaStatus;
type IterateHandles = unsafe extern "C" fn(HandleCallback, *mut c_void) -> HsaStatus;
type IterateSymbols = unsafe extern "C" fn(u64, u64, SymbolCallback, *mut c_void) -> HsaStatus;
type SymbolInfo = unsafe extern "C" fn(u64, u32, *mut c_void) -> HsaStatus;
type ExtensionTable = unsafe extern "C" fn(u16, u16, usize, *mut c_void) -> HsaStatus;

/// The functions of the HSA runtime that are needed. Agents, executables and symbols are handles of 64 bits.
#[derive(Clone, Copy)]
struct Runtime {
    iterate_agents: IterateHandles,
    iterate_symbols: IterateSymbols,
    symbol_info: SymbolInfo,
    iterate_executables: IterateHandles,
}

/// `hsa_ven_amd_loader_1_03_pfn_t`.
#[repr(C)]
#[derive(Default)]
struct LoaderTable {
    other: [Option<unsafe extern "C" fn()>; 6],
    iterate_executables: Option<IterateHandles>,
}

impl Runtime {
    fn get() -> Option<Self> {
        static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
        *RUNTIME.get_or_init(|| {
            // SAFETY: the runtime is loaded already (it calls us), the names and types are those of its headers.
            unsafe { Self::load() }
        })
    }

    /// # Safety
    /// If the HSA runtime is loaded, it has the interface of `hsa.h` 1.x.
    unsafe fn load() -> Option<Self> {
        // SAFETY: with RTLD_NOLOAD nothing is loaded and no initialiser runs.
        let library =
            unsafe { libc::dlopen(c"libhsa-runtime64.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        if library.is_null() {
            return None;
        }
        let symbol = |name: &CStr| {
            // SAFETY: the handle is valid and the name a C string.
            let address = unsafe { libc::dlsym(library, name.as_ptr()) };
            (!address.is_null()).then_some(address)
        };
        let extension_table = symbol(c"hsa_system_get_major_extension_table")?;
        let iterate_agents = symbol(c"hsa_iterate_agents")?;
        let iterate_symbols = symbol(c"hsa_executable_iterate_agent_symbols")?;
        let symbol_info = symbol(c"hsa_executable_symbol_get_info")?;
        let mut table = LoaderTable::default();
        // SAFETY: the functions have these types in the runtime's headers; the table has room for the answer.
        unsafe {
            let extension_table = transmute::<*mut c_void, ExtensionTable>(extension_table);
            let room = size_of::<LoaderTable>();
            if extension_table(EXTENSION_AMD_LOADER, 1, room, (&raw mut table).cast()) != SUCCESS {
                return None;
            }
            Some(Self {
                iterate_agents: transmute::<*mut c_void, IterateHandles>(iterate_agents),
                iterate_symbols: transmute::<*mut c_void, IterateSymbols>(iterate_symbols),
                symbol_info: transmute::<*mut c_void, SymbolInfo>(symbol_info),
                iterate_executables: table.iterate_executables?,
            })
        }
    }
}

/// The search, as the callbacks see it.
struct Search {
    runtime: Runtime,
    executable: u64,
    kernel_object: u64,
    name: Option<String>,
}

/// The name of the kernel whose object is at that address, without the suffix `.kd`.
pub(super) fn kernel_name(kernel_object: u64) -> Option<String> {
    let runtime = Runtime::get()?;
    let mut search = Search { runtime, executable: 0, kernel_object, name: None };
    // SAFETY: the callbacks get the search back, which outlives the call.
    unsafe { (runtime.iterate_executables)(visit_executable, (&raw mut search).cast()) };
    let name = search.name?;
    Some(name.strip_suffix(".kd").map_or(name.clone(), str::to_owned))
}

unsafe extern "C" fn visit_executable(executable: u64, search: *mut c_void) -> HsaStatus {
    // The place of one that was destroyed, which the runtime keeps in its list. Asking it would end the search.
    if executable == 0 {
        return SUCCESS;
    }
    // SAFETY: the pointer is the one that `kernel_name` has passed, and no other code uses the search.
    let runtime = unsafe {
        let search = search.cast::<Search>();
        (*search).executable = executable;
        (*search).runtime
    };
    // SAFETY: as above, one level deeper.
    unsafe { (runtime.iterate_agents)(visit_agent, search) }
}

unsafe extern "C" fn visit_agent(agent: u64, search: *mut c_void) -> HsaStatus {
    // SAFETY: as in `visit_executable`.
    unsafe {
        let Search { runtime, executable, .. } = *search.cast::<Search>();
        (runtime.iterate_symbols)(executable, agent, visit_symbol, search)
    }
}

unsafe extern "C" fn visit_symbol(
    _executable: u64,
    _agent: u64,
    symbol: u64,
    data: *mut c_void,
) -> HsaStatus {
    // SAFETY: as in `visit_executable`; no other reference to the search exists during this call.
    let search = unsafe { &mut *data.cast::<Search>() };
    let ask = |what: u32, answer: *mut c_void| {
        // SAFETY: the symbol is alive during the iteration, and `answer` has room for the attribute.
        unsafe { (search.runtime.symbol_info)(symbol, what, answer) == SUCCESS }
    };
    let (mut kind, mut object, mut length) = (0u32, 0u64, 0u32);
    let found = ask(SYMBOL_INFO_TYPE, (&raw mut kind).cast())
        && kind == SYMBOL_KIND_KERNEL
        && ask(SYMBOL_INFO_KERNEL_OBJECT, (&raw mut object).cast())
        && object == search.kernel_object
        && ask(SYMBOL_INFO_NAME_LENGTH, (&raw mut length).cast());
    if !found {
        return SUCCESS;
    }
    let mut name: Vec<c_char> = vec![0; length as usize + 1];
    if ask(SYMBOL_INFO_NAME, name.as_mut_ptr().cast()) {
        // SAFETY: the buffer is one longer than the name and was zeroed.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) };
        search.name = Some(name.to_string_lossy().into_owned());
    }
    INFO_BREAK
}
