//! Other libraries at work on our arrays and our streams (law 15): cudarc's safe types, and cuBLAS.

use crate::{Case, Skip, fixture::Lab};
use cudarc::driver::{CudaContext, sys::CUstream};
use gpumem_core::RawStream;
use gpumem_cuda::Cuda;
use gpumem_runtime::{Device, DeviceArray, RawAccess};
use libloading::Library;
use ndarray::{Array1, Array2, Ix2, s};
use std::{
    ffi::{c_int, c_void},
    ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut},
};

pub(crate) const CASES: &[Case] =
    &[("cudarcs_safe_types_work_on_our_arrays", cudarc_works), ("cublas_works_on_our_arrays", cublas_works)];

fn handle(stream: RawStream) -> CUstream {
    with_exposed_provenance_mut(stream.0 as usize)
}

fn cudarc_works(lab: &Lab) -> Result<(), Skip> {
    let theirs = CudaContext::new(0).unwrap();
    let device: Device<Cuda> = Device::open("cuda:0").unwrap();
    let (producer, middle, consumer) =
        (device.stream().unwrap(), device.stream().unwrap(), device.stream().unwrap());
    let length = 1 << 20;
    let mut array = device.to_device(&Array1::from_elem(length, 1.0f32)).unwrap();
    let source = device.to_device(&Array1::from_elem(length / 4, 5.0f32)).unwrap();
    // The fill comes late: a copy that does not wait for it is overwritten.
    let gate = lab.close_raw(handle(producer.raw_handle().unwrap()));
    producer.fill(&mut array, 2.0).unwrap();
    let uses = [RawAccess::write(&mut array), RawAccess::read(&source)];
    // SAFETY: cudarc's work uses the stream of this scope and only the two arrays named.
    let refused = unsafe {
        middle.raw_scope(&uses, |parts| -> Result<(), cudarc::driver::DriverError> {
            let stream = theirs.wrap_borrowed_stream(handle(parts.stream));
            let mut ours = stream.upgrade_device_ptr::<f32>(parts.addresses[0], length);
            let theirs = stream.upgrade_device_ptr::<f32>(parts.addresses[1], length / 4);
            let done = stream
                .memset_zeros(&mut ours.slice_mut(..length / 4))
                .and_then(|()| stream.memcpy_dtod(&theirs, &mut ours.slice_mut(length / 4..length / 2)));
            // The memory stays ours.
            ours.leak();
            theirs.leak();
            done
        })
    };
    let copy = consumer.copy_to_host(&array).unwrap();
    drop(gate);
    refused.unwrap().unwrap();
    let quarters = [0.0f32, 5.0, 2.0, 2.0];
    let view = copy.view().unwrap();
    for (index, value) in quarters.into_iter().enumerate() {
        let quarter = view.slice(s![index * length / 4..(index + 1) * length / 4]);
        assert!(quarter.iter().all(|element| *element == value), "quarter {index} is {}", quarter[0]);
    }
    Ok(())
}

/// The four functions of cuBLAS that a product takes, by the signatures of its documentation.
struct Cublas {
    library: Library,
}

type Create = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
type Destroy = unsafe extern "C" fn(*mut c_void) -> c_int;
type SetStream = unsafe extern "C" fn(*mut c_void, CUstream) -> c_int;
type Sgemm = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const f32,
    *const f32,
    c_int,
    *const f32,
    c_int,
    *const f32,
    *mut f32,
    c_int,
) -> c_int;

impl Cublas {
    fn load() -> Result<Self, Skip> {
        let names = ["libcublas.so.13", "libcublas.so.12", "libcublas.so"];
        // SAFETY: a library of this name is cuBLAS.
        let library = names.iter().find_map(|name| unsafe { Library::new(*name) }.ok());
        Ok(Self { library: library.ok_or("cuBLAS is not installed")? })
    }

    /// # Safety
    /// `T` is the function's type.
    unsafe fn function<T: Copy>(&self, name: &[u8]) -> T {
        // SAFETY: the caller's promise.
        *unsafe { self.library.get::<T>(name) }.unwrap()
    }
}

/// `C = A B`, of whole arrays in C order: cuBLAS counts in columns, so that it computes the transposes.
fn cublas_works(lab: &Lab) -> Result<(), Skip> {
    let cublas = Cublas::load()?;
    let device: Device<Cuda> = Device::open("cuda:0").unwrap();
    let (producer, middle, consumer) =
        (device.stream().unwrap(), device.stream().unwrap(), device.stream().unwrap());
    let (m, n, k) = (70, 50, 90);
    let a = Array2::from_shape_fn((m, k), |(i, j)| ((i + 2 * j) % 7) as f32);
    let b = Array2::from_shape_fn((k, n), |(i, j)| ((3 * i + j) % 5) as f32);
    // cuBLAS uses the current context.
    let theirs = CudaContext::new(0).unwrap();
    theirs.bind_to_thread().unwrap();
    let mut cublas_handle = null_mut();
    // SAFETY: the functions have these types.
    let (create, destroy, set_stream, sgemm): (Create, Destroy, SetStream, Sgemm) = unsafe {
        (
            cublas.function(b"cublasCreate_v2\0"),
            cublas.function(b"cublasDestroy_v2\0"),
            cublas.function(b"cublasSetStream_v2\0"),
            cublas.function(b"cublasSgemm_v2\0"),
        )
    };
    // SAFETY: a place for a handle.
    assert_eq!(unsafe { create(&mut cublas_handle) }, 0);
    let on_device = device.to_device(&b).unwrap();
    let mut left = device.device_array::<f32, _>((m, k)).unwrap();
    let mut product = device.device_array::<f32, _>((m, n)).unwrap();
    let (one, zero) = (1.0f32, 0.0f32);
    let multiply = |left: &DeviceArray<f32, Ix2, Cuda>, product: &mut DeviceArray<f32, Ix2, Cuda>| {
        let uses = [RawAccess::read(left), RawAccess::read(&on_device), RawAccess::write(product)];
        // SAFETY: the product runs on the stream of this scope, reads two arrays and writes the third.
        let status = unsafe {
            middle.raw_scope(&uses, |parts| {
                let at = |index: usize| parts.addresses[index] as usize;
                let set = set_stream(cublas_handle, handle(parts.stream));
                let (m, n, k) = (m as c_int, n as c_int, k as c_int);
                let (a, b) = (with_exposed_provenance(at(0)), with_exposed_provenance(at(1)));
                let c = with_exposed_provenance_mut(at(2));
                set | sgemm(cublas_handle, 0, 0, n, m, k, &one, b, n, a, k, &zero, c, n)
            })
        };
        assert_eq!(status.unwrap(), 0);
    };
    // Once with zeros: the first call loads kernels, and waits for the device to do so.
    multiply(&left, &mut product);
    device.synchronize().unwrap();
    let gate = lab.close_raw(handle(producer.raw_handle().unwrap()));
    producer.copy_to_device(&mut left, &a).unwrap();
    multiply(&left, &mut product);
    let result = consumer.copy_to_host(&product).unwrap();
    drop(gate);
    // Small whole numbers: exact in any order.
    assert_eq!(result.view().unwrap(), a.dot(&b));
    // SAFETY: made above, and its work is done.
    assert_eq!(unsafe { destroy(cublas_handle) }, 0);
    Ok(())
}
