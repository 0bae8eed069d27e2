//! The library's functions.

use crate::{
    Fault,
    communicator::{Communicator, FAULTS, INVALID_USAGE, REMOTE_ERROR, SUCCESS, SYSTEM_ERROR, has},
    meeting::{Kind, NOTHING, Operation},
};
use std::{
    cell::RefCell,
    ffi::{c_char, c_int, c_void},
    sync::{
        Arc, Once,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// Plants a fault, or ends it.
#[unsafe(no_mangle)]
pub extern "C" fn nccl_double_fault(fault: Fault, is_on: bool) {
    let bit = 1 << fault as u32;
    if is_on {
        FAULTS.fetch_or(bit, Ordering::SeqCst)
    } else {
        FAULTS.fetch_and(!bit, Ordering::SeqCst)
    };
}

/// Communicators that are alive.
static ALIVE: AtomicU64 = AtomicU64::new(0);

/// The number of communicators that were neither destroyed nor aborted.
#[unsafe(no_mangle)]
pub extern "C" fn nccl_double_alive() -> u64 {
    ALIVE.load(Ordering::SeqCst)
}

/// Registrations that were not taken back.
static REGISTERED: AtomicU64 = AtomicU64::new(0);

/// The number of registrations of memory that were not taken back.
#[unsafe(no_mangle)]
pub extern "C" fn nccl_double_registered() -> u64 {
    REGISTERED.load(Ordering::SeqCst)
}

type Handle = *const Communicator;

/// As the real library, it cleans up at the end of the process: calls after that end it with a crash.
pub(crate) fn check_alive() {
    if IS_OVER.load(Ordering::SeqCst) {
        eprintln!("the library is called after its clean-up");
        std::process::abort();
    }
}

static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Registers the clean-up, once there is a communicator.
fn clean_up_at_exit() {
    unsafe extern "C" {
        fn atexit(run: extern "C" fn()) -> c_int;
    }
    extern "C" fn clean_up() {
        IS_OVER.store(true, Ordering::SeqCst);
        // Time in which other threads show themselves.
        thread::sleep(Duration::from_millis(300));
    }
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        // SAFETY: the handler touches an atomic and sleeps.
        unsafe { atexit(clean_up) };
    });
}

/// Operations of one rank on one stream.
struct Batch {
    communicator: Arc<Communicator>,
    stream: *mut c_void,
    operations: Vec<Operation>,
}

thread_local! {
    /// How many groups are open on this thread, and what was called in them.
    static OPEN: RefCell<(usize, Vec<Batch>)> = const { RefCell::new((0, Vec::new())) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> u32 {
    // SAFETY: a place for a number.
    unsafe { version.write(22809) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclGetUniqueId(id: *mut [u8; 128]) -> u32 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut bytes = [0; 128];
    bytes[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::SeqCst).to_le_bytes());
    // SAFETY: a place for an identity.
    unsafe { id.write(bytes) };
    SUCCESS
}

#[repr(C)]
struct UniqueId([u8; 128]);

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommInitRank(made: *mut Handle, size: c_int, id: UniqueId, rank: c_int) -> u32 {
    clean_up_at_exit();
    while has(Fault::HangingInit) {
        thread::sleep(Duration::from_millis(5));
    }
    match Communicator::join(id.0, rank as usize, size as usize) {
        Ok(communicator) => {
            ALIVE.fetch_add(1, Ordering::SeqCst);
            // SAFETY: a place for a handle.
            unsafe { made.write(Arc::into_raw(communicator)) };
            SUCCESS
        }
        Err(status) => status,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommDestroy(communicator: Handle) -> u32 {
    check_alive();
    // The real one takes long too.
    thread::sleep(Duration::from_millis(20));
    check_alive();
    // SAFETY: a handle is used once for the last time.
    drop(unsafe { Arc::from_raw(communicator) });
    ALIVE.fetch_sub(1, Ordering::SeqCst);
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommAbort(communicator: Handle) -> u32 {
    check_alive();
    while has(Fault::HangingAbort) {
        thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: as above.
    unsafe { Arc::from_raw(communicator) }.abort();
    ALIVE.fetch_sub(1, Ordering::SeqCst);
    check_alive();
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommRegister(_: Handle, memory: To, bytes: usize, handle: *mut *mut c_void) -> u32 {
    check_alive();
    if memory.is_null() || bytes == 0 {
        return INVALID_USAGE;
    }
    REGISTERED.fetch_add(1, Ordering::SeqCst);
    // SAFETY: a place for a handle.
    unsafe { handle.write(Box::into_raw(Box::new(memory as usize)).cast()) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommDeregister(_: Handle, handle: *mut c_void) -> u32 {
    check_alive();
    if has(Fault::FailingDeregister) {
        return SYSTEM_ERROR;
    }
    // SAFETY: a handle is taken back once.
    drop(unsafe { Box::from_raw(handle.cast::<usize>()) });
    REGISTERED.fetch_sub(1, Ordering::SeqCst);
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommGetAsyncError(_: Handle, error: *mut u32) -> u32 {
    check_alive();
    // SAFETY: a place for a number.
    unsafe { error.write(if has(Fault::AsynchronousError) { REMOTE_ERROR } else { SUCCESS }) };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn ncclGetErrorString(_: u32) -> *const c_char {
    c"an error of the double".as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn ncclGetLastError(_: Handle) -> *const c_char {
    c"".as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn ncclGroupStart() -> u32 {
    OPEN.with_borrow_mut(|open| open.0 += 1);
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn ncclGroupEnd() -> u32 {
    let batches = OPEN.with_borrow_mut(|(open, batches)| match *open {
        0 => None,
        1 => {
            *open = 0;
            Some(std::mem::take(batches))
        }
        _ => {
            *open -= 1;
            Some(Vec::new())
        }
    });
    let Some(batches) = batches else { return INVALID_USAGE };
    if has(Fault::FailingCalls) && !batches.is_empty() {
        return SYSTEM_ERROR;
    }
    let together: Vec<_> = batches
        .into_iter()
        .map(|batch| (batch.communicator.number(batch.operations), batch.stream))
        .collect();
    if has(Fault::WaitingCalls) {
        for (calls, _) in &together {
            let status = calls.wait_for_calls();
            if status != SUCCESS {
                return status;
            }
        }
    }
    together.into_iter().map(|(calls, stream)| calls.enqueue(stream)).max().unwrap_or(SUCCESS)
}

/// # Safety
/// The handle is alive.
unsafe fn call(communicator: Handle, stream: *mut c_void, operation: Operation) -> u32 {
    // SAFETY: the handle keeps the communicator alive meanwhile.
    let communicator = unsafe {
        Arc::increment_strong_count(communicator);
        Arc::from_raw(communicator)
    };
    ncclGroupStart();
    OPEN.with_borrow_mut(|(_, batches)| {
        let own = batches
            .iter_mut()
            .find(|batch| Arc::ptr_eq(&batch.communicator, &communicator) && batch.stream == stream);
        match own {
            Some(batch) => batch.operations.push(operation),
            None => batches.push(Batch { communicator, stream, operations: vec![operation] }),
        }
    });
    ncclGroupEnd()
}

macro_rules! operations {
    ($(fn $name:ident($($argument:ident: $type:ty),*) => $kind:expr, { $($field:ident: $value:expr),* };)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type,)* communicator: Handle, stream: *mut c_void) -> u32 {
            let mut operation = Operation { kind: $kind, ..NOTHING };
            $(operation.$field = $value;)*
            // SAFETY: the handle is alive.
            unsafe { call(communicator, stream, operation) }
        }
    )*};
}

type From = *const c_void;
type To = *mut c_void;

operations! {
    fn ncclAllReduce(from: From, to: To, count: usize, number: u32, reduction: u32)
        => Kind::AllReduce, { from: from, to: to, count: count, number: number, reduction: reduction };
    fn ncclReduce(from: From, to: To, count: usize, number: u32, reduction: u32, root: c_int)
        => Kind::Reduce { root: root as usize }, { from: from, to: to, count: count, number: number, reduction: reduction };
    fn ncclBroadcast(from: From, to: To, count: usize, number: u32, root: c_int)
        => Kind::Broadcast { root: root as usize }, { from: from, to: to, count: count, number: number };
    fn ncclAllGather(from: From, to: To, count: usize, number: u32)
        => Kind::AllGather, { from: from, to: to, count: count, number: number };
    fn ncclReduceScatter(from: From, to: To, count: usize, number: u32, reduction: u32)
        => Kind::ReduceScatter, { from: from, to: to, count: count, number: number, reduction: reduction };
    fn ncclAlltoAll(from: From, to: To, count: usize, number: u32)
        => Kind::AllToAll, { from: from, to: to, count: count, number: number };
    fn ncclSend(from: From, count: usize, number: u32, peer: c_int)
        => Kind::Send { to: peer as usize }, { from: from, count: count, number: number };
    fn ncclRecv(to: To, count: usize, number: u32, peer: c_int)
        => Kind::Receive { from: peer as usize }, { to: to, count: count, number: number };
}
