//! Modules and kernels. An image is a cubin, a fat binary or PTX, as hipRTC of this library makes them.

use super::exports;
use crate::{
    launch,
    state::{not_null, on_device, put},
    types::{
        hipDeviceptr_t, hipError_t, hipFunction_attribute, hipFunction_t, hipJitOption, hipModule_t,
        hipStream_t,
    },
};
use cudarc::driver::sys::CUfunction_attribute_enum as Attribute;
use std::{
    ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void},
    fs,
    os::unix::ffi::OsStrExt,
    ptr::{null_mut, with_exposed_provenance_mut},
};

/// # Safety
/// As for [`hipModuleLoadData`].
unsafe fn load(module: *mut hipModule_t, image: *const c_void) -> hipError_t {
    on_device(|cuda| {
        not_null(module)?;
        // SAFETY: the caller's image.
        unsafe { launch::check_image(image)? };
        let mut found = null_mut();
        // SAFETY: a place for a handle; the caller's image, which is one that the driver knows.
        unsafe { cuda.api.cuModuleLoadData(&mut found, image) }.hip()?;
        // SAFETY: the caller's promise.
        unsafe { put(module, found) }
    })
}

exports! {
    fn hipModuleLoad(module: *mut hipModule_t, file: *const c_char) -> hipError_t {
        if file.is_null() {
            return crate::state::call(|| Err(hipError_t::INVALID_VALUE));
        }
        // SAFETY: the caller's text, which ends with a zero.
        let path = OsStr::from_bytes(unsafe { CStr::from_ptr(file) }.to_bytes());
        match fs::read(path) {
            Ok(mut image) => {
                // Text ends with a zero then, and a program that is too short to be one can be looked at.
                image.resize(image.len() + 32, 0);
                // SAFETY: the image lives during the call.
                unsafe { load(module, image.as_ptr().cast()) }
            }
            Err(_) => crate::state::call(|| Err(hipError_t::FILE_NOT_FOUND)),
        }
    }

    fn hipModuleLoadData(module: *mut hipModule_t, image: *const c_void) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { load(module, image) }
    }

    /// AMD's library ignores the options, and so does this.
    fn hipModuleLoadDataEx(
        module: *mut hipModule_t,
        image: *const c_void,
        _count: c_uint,
        _options: *mut hipJitOption,
        _values: *mut *mut c_void,
    ) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { load(module, image) }
    }

    fn hipModuleUnload(module: hipModule_t) -> hipError_t {
        on_device(|cuda| {
            if module.is_null() {
                return Err(hipError_t::INVALID_HANDLE);
            }
            // SAFETY: the caller's module, which is not used again.
            unsafe { cuda.api.cuModuleUnload(module) }.hip()
        })
    }

    fn hipModuleGetFunction(
        function: *mut hipFunction_t,
        module: hipModule_t,
        name: *const c_char,
    ) -> hipError_t {
        on_device(|cuda| {
            not_null(function)?;
            not_null(name)?;
            if module.is_null() {
                return Err(hipError_t::INVALID_HANDLE);
            }
            // SAFETY: room for a handle, the caller's module, and text that ends with a zero.
            unsafe { cuda.api.cuModuleGetFunction(function, module, name) }.hip()
        })
    }

    fn hipModuleGetGlobal(
        address: *mut hipDeviceptr_t,
        bytes: *mut usize,
        module: hipModule_t,
        name: *const c_char,
    ) -> hipError_t {
        on_device(|cuda| {
            not_null(name)?;
            if module.is_null() {
                return Err(hipError_t::INVALID_HANDLE);
            }
            let (mut start, mut length) = (0, 0);
            // SAFETY: places for an address and a size, the caller's module, and text that ends with a zero.
            unsafe { cuda.api.cuModuleGetGlobal_v2(&mut start, &mut length, module, name) }.hip()?;
            // SAFETY: the caller's promise.
            unsafe {
                put(address, with_exposed_provenance_mut(start as usize))?;
                put(bytes, length)
            }
        })
    }

    fn hipModuleLaunchKernel(
        function: hipFunction_t,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: hipStream_t,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> hipError_t {
        on_device(|cuda| {
            if function.is_null() {
                return Err(hipError_t::INVALID_DEVICE_FUNCTION);
            }
            // SAFETY: the caller's list.
            let mut list = unsafe { launch::extra(extra)? };
            let extra = list.as_mut().map_or(null_mut(), |list| list.as_mut_ptr());
            // SAFETY: the caller's kernel, arguments and stream.
            unsafe {
                cuda.api.cuLaunchKernel(
                    function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra,
                )
            }
            .hip()
        })
    }

    /// The numbers from 0 to 9 are CUDA's.
    fn hipFuncGetAttribute(
        value: *mut c_int,
        attribute: hipFunction_attribute,
        function: hipFunction_t,
    ) -> hipError_t {
        const ATTRIBUTES: [Attribute; 10] = [
            Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
            Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
            Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
            Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
            Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS,
            Attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION,
            Attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION,
            Attribute::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA,
            Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
        ];
        on_device(|cuda| {
            not_null(value)?;
            if function.is_null() {
                return Err(hipError_t::INVALID_DEVICE_FUNCTION);
            }
            let attribute = ATTRIBUTES.get(attribute as usize).ok_or(hipError_t::INVALID_VALUE)?;
            // SAFETY: room for a number, and the caller's kernel.
            unsafe { cuda.api.cuFuncGetAttribute(value, *attribute, function) }.hip()
        })
    }

    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        function: hipFunction_t,
        threads: c_int,
        shared: usize,
    ) -> hipError_t {
        on_device(|cuda| {
            not_null(blocks)?;
            // SAFETY: room for a number, and the caller's kernel.
            unsafe { cuda.api.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared) }
                .hip()
        })
    }

    fn hipModuleOccupancyMaxPotentialBlockSize(
        grid: *mut c_int,
        threads: *mut c_int,
        function: hipFunction_t,
        shared: usize,
        limit: c_int,
    ) -> hipError_t {
        on_device(|cuda| {
            not_null(grid)?;
            not_null(threads)?;
            // SAFETY: room for two numbers, and the caller's kernel.
            unsafe { cuda.api.cuOccupancyMaxPotentialBlockSize(grid, threads, function, None, shared, limit) }
                .hip()
        })
    }
}
