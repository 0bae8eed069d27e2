//! hipRTC, on NVRTC.

use super::exports;
use crate::{
    compile::{Compiled, Program, RESULTS},
    types::{hiprtcProgram, hiprtcResult},
    version::Version,
};
use std::{
    ffi::{CStr, c_char, c_int},
    ptr::null_mut,
    slice,
};

fn result(body: impl FnOnce() -> Compiled) -> hiprtcResult {
    body().err().unwrap_or(hiprtcResult::SUCCESS)
}

/// A program of the caller's.
///
/// # Safety
/// `program` is null or one that was made here and is used by one thread at a time.
unsafe fn program<'a>(program: hiprtcProgram) -> Compiled<&'a mut Program> {
    // SAFETY: the caller's promise.
    unsafe { program.as_mut() }.ok_or(hiprtcResult::INVALID_PROGRAM)
}

/// A text of the caller's.
///
/// # Safety
/// `text` is null or ends with a zero, and stays as it is.
unsafe fn text<'a>(text: *const c_char) -> Compiled<&'a CStr> {
    if text.is_null() {
        return Err(hiprtcResult::INVALID_INPUT);
    }
    // SAFETY: the caller's promise; not null.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// A list of texts of the caller's.
///
/// # Safety
/// `start` leads to `count` addresses of such texts, or there are none.
unsafe fn texts<'a>(start: *const *const c_char, count: c_int) -> Compiled<Vec<&'a CStr>> {
    let count = usize::try_from(count).map_err(|_| hiprtcResult::INVALID_INPUT)?;
    if count == 0 {
        return Ok(Vec::new());
    }
    if start.is_null() {
        return Err(hiprtcResult::INVALID_INPUT);
    }
    // SAFETY: the caller's promise; not null.
    unsafe { slice::from_raw_parts(start, count).iter().map(|address| text(*address)).collect() }
}

/// # Safety
/// `target` is null or leads to room for a value.
unsafe fn put<T>(target: *mut T, value: T) -> Compiled {
    // SAFETY: the caller's promise.
    unsafe { crate::state::put(target, value) }.map_err(|_| hiprtcResult::INVALID_INPUT)
}

/// # Safety
/// `target` is null or leads to room for all the bytes.
unsafe fn put_bytes(target: *mut c_char, bytes: &[u8]) -> Compiled {
    if target.is_null() {
        return Err(hiprtcResult::INVALID_INPUT);
    }
    // SAFETY: the caller's promise; not null.
    unsafe { target.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    Ok(())
}

exports! {
    fn hiprtcGetErrorString(code: hiprtcResult) -> *const c_char {
        let name = RESULTS.iter().find(|(result, _)| *result == code).map_or("Invalid HIPRTC error code\0", |pair| pair.1);
        name.as_ptr().cast()
    }

    /// The version of hipRTC that is played.
    fn hiprtcVersion(major: *mut c_int, minor: *mut c_int) -> hiprtcResult {
        let [of_major, of_minor] = Version::current().of_compiler();
        result(|| {
            // SAFETY: the caller's promise.
            unsafe {
                put(major, of_major)?;
                put(minor, of_minor)
            }
        })
    }

    fn hiprtcCreateProgram(
        made: *mut hiprtcProgram,
        source: *const c_char,
        name: *const c_char,
        count: c_int,
        headers: *mut *const c_char,
        names: *mut *const c_char,
    ) -> hiprtcResult {
        result(|| {
            // SAFETY: the caller's promises.
            let (source, headers, names) =
                unsafe { (text(source)?, texts(headers, count)?, texts(names, count)?) };
            // SAFETY: as above; a program need not have a name.
            let name = unsafe { text(name) }.ok();
            let pairs = names.into_iter().zip(headers);
            let headers = pairs.map(|(name, header)| (name.to_owned(), header.to_owned())).collect();
            if made.is_null() {
                return Err(hiprtcResult::INVALID_INPUT);
            }
            let program = Box::new(Program::new(source, name, headers));
            // SAFETY: the caller's promise.
            unsafe { put(made, Box::into_raw(program)) }
        })
    }

    fn hiprtcDestroyProgram(made: *mut hiprtcProgram) -> hiprtcResult {
        result(|| {
            // SAFETY: the caller's promise.
            let place = unsafe { made.as_mut() }.ok_or(hiprtcResult::INVALID_INPUT)?;
            if place.is_null() {
                return Err(hiprtcResult::INVALID_PROGRAM);
            }
            // SAFETY: a program that was made here, which is not used again.
            drop(unsafe { Box::from_raw(*place) });
            *place = null_mut();
            Ok(())
        })
    }

    fn hiprtcAddNameExpression(made: hiprtcProgram, expression: *const c_char) -> hiprtcResult {
        // SAFETY: the caller's promises.
        result(|| unsafe { program(made)?.add_expression(text(expression)?) })
    }

    /// Options are translated; whatever architecture they name, the code is for this thread's device. Compiling a
    /// program twice is an error.
    fn hiprtcCompileProgram(made: hiprtcProgram, count: c_int, options: *mut *const c_char) -> hiprtcResult {
        // SAFETY: the caller's promises.
        result(|| unsafe { program(made)?.compile(&texts(options, count)?) })
    }

    fn hiprtcGetLoweredName(
        made: hiprtcProgram,
        expression: *const c_char,
        name: *mut *const c_char,
    ) -> hiprtcResult {
        // SAFETY: the caller's promises.
        result(|| unsafe { put(name, program(made)?.lowered(text(expression)?)?) })
    }

    /// With the zero at the end. AMD's library does not count it.
    fn hiprtcGetProgramLogSize(made: hiprtcProgram, bytes: *mut usize) -> hiprtcResult {
        // SAFETY: the caller's promises.
        result(|| unsafe { put(bytes, program(made)?.log().len()) })
    }

    fn hiprtcGetProgramLog(made: hiprtcProgram, log: *mut c_char) -> hiprtcResult {
        // SAFETY: the caller's promises.
        result(|| unsafe { put_bytes(log, program(made)?.log()) })
    }

    /// A cubin.
    fn hiprtcGetCodeSize(made: hiprtcProgram, bytes: *mut usize) -> hiprtcResult {
        // SAFETY: the caller's promises.
        result(|| unsafe { put(bytes, program(made)?.code().len()) })
    }

    fn hiprtcGetCode(made: hiprtcProgram, code: *mut c_char) -> hiprtcResult {
        // SAFETY: the caller's promises.
        result(|| unsafe { put_bytes(code, program(made)?.code()) })
    }
}
