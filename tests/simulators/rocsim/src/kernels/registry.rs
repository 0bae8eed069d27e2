//! Kernels of the program as functions that the program registers.

use super::{Descriptor, Refusal};
use crate::{
    abi::DispatchPacket,
    memory::{Fault, Span, span},
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    ffi::{CStr, CString, c_char, c_void},
    sync::LazyLock,
};

/// The body of a kernel: it does the work of the whole grid. Anything but 0 is a trap, which stops the queue.
///
/// `arguments` is the kernel's argument block in the layout of the compiled kernel, readable by the host. Device
/// addresses in it are reached with [`Dispatch::translate`].
pub type KernelBody = unsafe extern "C" fn(arguments: *const c_void, dispatch: *const Dispatch) -> i32;

/// The launch as its body sees it. New fields are added at the end.
#[derive(Debug)]
#[repr(C)]
pub struct Dispatch {
    /// Size of this structure in bytes.
    pub bytes: u32,
    /// The node of the GPU, counted from 1.
    pub node: u32,
    /// Work-items of the whole grid along x, y and z.
    pub grid: [u32; 3],
    /// Work-items of a work-group along x, y and z.
    pub workgroup: [u32; 3],
    /// Bytes of group memory, dynamic ones included.
    pub group_segment_bytes: u32,
    /// Length of the argument block in bytes; 0 if the compiler has not said it.
    pub kernarg_bytes: u32,
    /// The kernel's name.
    pub name: *const c_char,
    /// The value registered with the body.
    pub context: *mut c_void,
    /// Gives the host's address for `bytes` bytes of the GPU's memory, valid until the body returns, or null if they
    /// are not mapped for this GPU: the body returns then, and the access is reported as a memory fault. May be
    /// called from any thread.
    pub translate: unsafe extern "C" fn(dispatch: *const Dispatch, address: u64, bytes: u64) -> *mut c_void,
    /// The simulator's own.
    pub private: *const c_void,
    /// Bytes of group memory that the kernel declares itself; the rest of `group_segment_bytes` is dynamic.
    pub group_segment_fixed_bytes: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    body: KernelBody,
    context: usize,
}

static BODIES: LazyLock<Mutex<HashMap<String, Entry>>> = LazyLock::new(Mutex::default);

/// Registers a body, in place of an earlier one of that name.
pub(crate) fn register(name: String, body: KernelBody, context: *mut c_void) {
    BODIES.lock().insert(name, Entry { body, context: context as usize });
}

/// Forgets a body. False if there was none.
pub(crate) fn unregister(name: &str) -> bool {
    BODIES.lock().remove(name).is_some()
}

/// Memory that a running body has asked for.
struct Launch {
    node: u32,
    spans: Mutex<Vec<Span>>,
    fault: Mutex<Option<Fault>>,
}

unsafe extern "C" fn translate(dispatch: *const Dispatch, address: u64, bytes: u64) -> *mut c_void {
    // SAFETY: the body passes the structure that it was called with, which is alive until it returns.
    let launch = unsafe { &*(*dispatch).private.cast::<Launch>() };
    match span(launch.node, address, bytes) {
        Ok(found) => {
            let start = found.as_ptr();
            let mut spans = launch.spans.lock();
            if !spans.iter().any(|held| held.same_backing(&found)) {
                spans.push(found);
            }
            start.cast()
        }
        Err(fault) => {
            launch.fault.lock().get_or_insert(fault);
            std::ptr::null_mut()
        }
    }
}

/// Runs the body of that name, or gives `None` if there is none.
pub(super) fn run(
    name: &str,
    node: u32,
    packet: &DispatchPacket,
    descriptor: &Descriptor,
) -> Option<Result<(), Refusal>> {
    let Descriptor { kernarg_bytes, group_segment_fixed_bytes, .. } = *descriptor;
    let Entry { body, context } = *BODIES.lock().get(name)?;
    let c_name = CString::new(name).ok()?;
    // A kernel without arguments may have no block at all.
    let arguments = if kernarg_bytes == 0 && packet.kernarg_address == 0 {
        None
    } else {
        match span(node, packet.kernarg_address, u64::from(kernarg_bytes.max(1))) {
            Ok(arguments) => Some(arguments),
            Err(fault) => return Some(Err(Refusal::Fault(fault))),
        }
    };
    let launch = Launch { node, spans: Mutex::default(), fault: Mutex::default() };
    let dispatch = Dispatch {
        bytes: size_of::<Dispatch>() as u32,
        node,
        grid: packet.grid_size,
        workgroup: packet.workgroup_size.map(u32::from),
        group_segment_bytes: packet.group_segment_size,
        kernarg_bytes,
        name: c_name.as_ptr(),
        context: context as *mut c_void,
        translate,
        private: (&raw const launch).cast(),
        group_segment_fixed_bytes,
    };
    let block = arguments.as_ref().map_or(std::ptr::null(), |span| span.as_ptr().cast_const());
    // SAFETY: the code that registered the body promised that it takes these; both are alive until it returns.
    let code = unsafe { body(block.cast(), &dispatch) };
    Some(match launch.fault.into_inner() {
        Some(fault) => Err(Refusal::Fault(fault)),
        None if code != 0 => {
            eprintln!("rocsim: the host function of kernel {name} has returned {code}");
            Err(Refusal::Trap)
        }
        None => Ok(()),
    })
}

/// The name in a C string, or `None` for null and for text that is not UTF-8.
///
/// # Safety
/// `name` is null or a C string.
pub(crate) unsafe fn name_of(name: *const c_char) -> Option<String> {
    if name.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { CStr::from_ptr(name) }.to_str().ok()?.to_owned())
}
