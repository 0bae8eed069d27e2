//! Modules: they load, and have no kernels. No more than a few at a time, so that one that is never unloaded is seen.

use crate::{INVALID_HANDLE, OUT_OF_MEMORY, driver};
use cudarc::driver::sys::*;
use std::{
    collections::BTreeSet,
    ffi::{c_uint, c_void},
    ptr::without_provenance_mut,
    sync::Mutex,
};

/// Most modules at a time.
const MOST: usize = 16;

/// The handles of those that are loaded.
static LOADED: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

driver! {
    #[Unsafe]
    in _device fn cuModuleLoadDataEx(
        module: *mut CUmodule,
        _image: *const c_void,
        _count: c_uint,
        _options: *mut CUjit_option,
        _values: *mut *mut c_void,
    ) {
        let mut loaded = LOADED.lock().unwrap();
        let free = (1..=MOST).find(|handle| !loaded.contains(handle)).ok_or(OUT_OF_MEMORY)?;
        loaded.insert(free);
        // SAFETY: a place for a handle, says the caller.
        unsafe { module.write(without_provenance_mut(free)) };
        Ok(())
    }

    #[Unsafe]
    in _device fn cuModuleUnload(module: CUmodule) {
        match LOADED.lock().unwrap().remove(&module.addr()) {
            true => Ok(()),
            false => Err(INVALID_HANDLE),
        }
    }
}
