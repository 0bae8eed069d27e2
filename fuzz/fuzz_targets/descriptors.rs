//! Descriptors of other libraries with anything in them: DLPack tensors and the CUDA Array Interface. Each is taken or
//! refused with a typed error, a tensor is deleted exactly once, and elements inside the memory are read correctly.
#![no_main]

use arbitrary::Arbitrary;
use gpumem_core::ErrorKind;
use gpumem_host::Host;
use gpumem_runtime::{
    CudaArrayInterface, Device, DlpackTensor, ElementType, ImportedArray,
    dlpack::abi::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor},
};
use libfuzzer_sys::fuzz_target;
use ndarray::IxDyn;
use std::{
    ffi::c_void,
    ptr::{self, NonNull},
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
};

const LEN: usize = 64;

static DEVICE: LazyLock<Device<Host>> = LazyLock::new(|| Device::open("host").expect("the host is there"));
static MEMORY: LazyLock<Vec<u32>> = LazyLock::new(|| (0..LEN as u32).collect());
static DELETED: AtomicUsize = AtomicUsize::new(0);

#[derive(Arbitrary, Debug)]
struct Said {
    /// Elements after the start of the memory: an address outside is only seen through `offset`.
    at: Option<u8>,
    offset: i64,
    shape: Option<Vec<i64>>,
    steps: Option<Vec<i64>>,
    plain_type: bool,
    dtype: (u8, u8, u16),
    plain_place: bool,
    place: (i32, i32),
    versioned: bool,
    version: u32,
    flags: u64,
    typestr: String,
    mask: bool,
    stream: Option<i64>,
    as_dlpack: bool,
}

/// A tensor of either form, with its numbers.
#[repr(C)]
struct Block<H> {
    head: H,
    _numbers: [Vec<i64>; 2],
}

unsafe extern "C" fn delete<H>(tensor: *mut H) {
    // SAFETY: made by `tensor`, deleted once.
    drop(unsafe { Box::from_raw(tensor.cast::<Block<H>>()) });
    DELETED.fetch_add(1, Ordering::SeqCst);
}

/// The address of element `[0, 0, ..]`.
fn address(said: &Said) -> u64 {
    said.at.map_or(0, |at| MEMORY.as_ptr().expose_provenance() as u64 + 4 * u64::from(at % LEN as u8))
}

fn tensor(said: &Said) -> DlpackTensor {
    let axes = said.shape.as_ref().map_or(0, Vec::len);
    let mut steps = said.steps.clone().unwrap_or_default();
    steps.resize(axes, 1);
    let (code, bits, lanes) = if said.plain_type { (1, 32, 1) } else { said.dtype };
    let (device_type, device_id) = if said.plain_place { (1, 0) } else { said.place };
    let mut numbers = [said.shape.clone().unwrap_or_default(), steps];
    let [shape, strides] = &mut numbers;
    let dl_tensor = DLTensor {
        data: ptr::with_exposed_provenance_mut::<c_void>(address(said) as usize),
        device: DLDevice { device_type, device_id },
        ndim: axes as i32,
        dtype: DLDataType { code, bits, lanes },
        shape: if said.shape.is_some() { shape.as_mut_ptr() } else { ptr::null_mut() },
        strides: if said.steps.is_some() { strides.as_mut_ptr() } else { ptr::null_mut() },
        byte_offset: said.offset as u64,
    };
    let manager_ctx = ptr::null_mut();
    if said.versioned {
        let version = DLPackVersion { major: said.version, minor: 0 };
        let (deleter, flags) = (Some(delete as unsafe extern "C" fn(_)), said.flags);
        let head = DLManagedTensorVersioned { version, manager_ctx, deleter, flags, dl_tensor };
        let block = Box::leak(Box::new(Block { head, _numbers: numbers }));
        // SAFETY: a tensor laid out as the header says, with arbitrary values; it is read only where they are true.
        return unsafe { DlpackTensor::from_versioned(NonNull::from(block).cast()) };
    }
    let deleter = Some(delete as unsafe extern "C" fn(_));
    let block = Box::leak(Box::new(Block {
        head: DLManagedTensor { dl_tensor, manager_ctx, deleter },
        _numbers: numbers,
    }));
    // SAFETY: as above.
    unsafe { DlpackTensor::from_unversioned(NonNull::from(block).cast()) }
}

fn interface(said: &Said) -> Option<CudaArrayInterface> {
    let typestr = match said.plain_type {
        true => ElementType::of::<u32>(),
        false => said.typestr.parse().ok()?,
    };
    Some(CudaArrayInterface {
        shape: said.shape.clone()?,
        typestr,
        data: (address(said).wrapping_add_signed(said.offset), said.flags & 1 != 0),
        strides: said.steps.clone(),
        descr: None,
        mask: said.mask,
        version: i64::from(said.version),
        stream: said.stream,
    })
}

fuzz_target!(|said: Said| {
    let before = DELETED.load(Ordering::SeqCst);
    let found: Result<ImportedArray<u32, IxDyn, Host>, _> = match said.as_dlpack {
        true => DEVICE.from_dlpack(tensor(&said), None),
        false => {
            let Some(says) = interface(&said) else { return };
            // Handles are believed: only names without a handle are tried.
            if says.stream.is_some_and(|stream| stream > 2) {
                return;
            }
            // SAFETY: the memory is alive for ever; it is read only where the descriptor is true.
            unsafe { DEVICE.from_cuda_array_interface(&says, ()) }
        }
    };
    match &found {
        Err(error) => {
            let typed = matches!(
                error.kind(),
                ErrorKind::Descriptor(_) | ErrorKind::Layout(_) | ErrorKind::InvalidArgument { .. }
            );
            assert!(typed, "{error:?}");
        }
        Ok(array) => {
            let start = MEMORY.as_ptr().addr() as i128;
            let first = i128::from(array.address());
            let reach = |sign: isize| -> i128 {
                let steps = array.shape().iter().zip(array.strides());
                steps
                    .map(|(&length, &step)| (length as i128 - 1) * i128::from((sign * step).max(0) as i64))
                    .sum()
            };
            let inside = first - reach(-1) >= start && first + reach(1) + 4 <= start + 4 * LEN as i128;
            if array.is_empty() || (inside && array.len() <= 1 << 12) {
                let host = array.copy_to_host().expect("it is there");
                assert!(host.iter().all(|element| *element < LEN as u32));
            }
        }
    }
    drop(found);
    DEVICE.flush().expect("nothing is pending");
    assert_eq!(DELETED.load(Ordering::SeqCst) - before, usize::from(said.as_dlpack));
});
