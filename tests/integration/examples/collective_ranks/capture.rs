//! A stream that is being captured into a graph.

use crate::ranks::Rank;
use gpumem::{
    Stream,
    collectives::{InPlace, Options, Sum},
};
use std::ffi::{CStr, c_void};

/// Looks a function of the driver up.
fn function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the driver is loaded already; its names end with a zero.
    let found = unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        if library.is_null() { library } else { libc::dlsym(library, name.as_ptr()) }
    };
    (!found.is_null()).then_some(found)
}

fn capture_on(stream: &Stream) -> Option<impl FnOnce()> {
    let (begin, end) = (function(c"cuStreamBeginCapture_v2")?, function(c"cuStreamEndCapture")?);
    let raw = stream.raw_handle().unwrap().0;
    // SAFETY: the driver's functions have these types.
    let (begin, end) = unsafe {
        (
            std::mem::transmute::<*mut c_void, extern "C" fn(u64, i32) -> i32>(begin),
            std::mem::transmute::<*mut c_void, extern "C" fn(u64, *mut *mut c_void) -> i32>(end),
        )
    };
    // Relaxed: calls of other libraries do not end the capture.
    assert_eq!(begin(raw, 2), 0, "the capture begins");
    Some(move || {
        let mut graph = std::ptr::null_mut();
        assert_eq!(end(raw, &mut graph), 0, "the capture ends: nothing has invalidated it");
    })
}

pub(crate) fn capture(rank: &Rank) {
    let (comm, stream) = (rank.join(&Options::new()), rank.stream());
    let mut array = stream.to_device(&[1_i32]).unwrap();
    comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    stream.synchronize().unwrap();
    let Some(end) = capture_on(&stream) else {
        rank.say("skipped: there is no driver of CUDA");
        return;
    };
    let refused = comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap_err();
    end();
    rank.say(&refused.to_string());
    assert!(refused.to_string().contains("captures"), "{refused}");
    comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    let size = rank.size as i32;
    assert_eq!(array.copy_to_host().unwrap().to_vec(), [size * size]);
}
