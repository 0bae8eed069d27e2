//! The streams that the double works on, which the test gives it.

use std::{ffi::c_void, sync::OnceLock};

/// Work of a stream that may have to wait. No thread waits for it.
#[repr(C)]
#[derive(Debug)]
pub struct Work {
    /// Goes on with it; true when it is done. Otherwise it calls `wake(waker)` when it can go on, once.
    pub poll: unsafe extern "C" fn(data: *mut c_void, wake: Wake, waker: *mut c_void) -> bool,
    /// Frees it.
    pub free: unsafe extern "C" fn(data: *mut c_void),
    /// Its own data.
    pub data: *mut c_void,
}

/// Wakes work. Called once for each waker.
pub type Wake = unsafe extern "C" fn(waker: *mut c_void);

/// What the double needs of a device.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Platform {
    /// The current device of the thread; 0 if there is none.
    pub current: extern "C" fn() -> u64,
    /// Told when a communicator of that device ends: the number is not used again.
    pub forget: extern "C" fn(device: u64),
    /// Enqueues work on a stream of a device. It frees the work in any case.
    pub enqueue: unsafe extern "C" fn(device: u64, stream: u64, work: Work) -> bool,
}

static PLATFORM: OnceLock<Platform> = OnceLock::new();

/// Gives the double its streams, before any other call.
#[unsafe(no_mangle)]
pub extern "C" fn nccl_double_platform(platform: Platform) {
    let _ = PLATFORM.set(platform);
}

pub(crate) fn platform() -> Option<&'static Platform> {
    PLATFORM.get()
}

/// Wakes a stream when it is dropped.
#[derive(Debug)]
pub(crate) struct Waker(pub(crate) Wake, pub(crate) *mut c_void);

// SAFETY: the platform's wakers may be called on any thread.
unsafe impl Send for Waker {}

impl Drop for Waker {
    fn drop(&mut self) {
        // SAFETY: called once for this waker.
        unsafe { (self.0)(self.1) };
    }
}
