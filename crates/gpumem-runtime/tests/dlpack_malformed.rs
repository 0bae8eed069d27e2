//! DLPack tensors from sensible to absurd, with a fixed seed: each is imported correctly or refused with a typed error,
//! each is deleted exactly once, and none causes a panic.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use gpumem_core::ErrorKind;
use gpumem_host::Host;
use gpumem_runtime::{
    Device, DlpackTensor, ImportedArray,
    dlpack::abi::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor},
};
use ndarray::{ArrayD, Dimension, IxDyn};
use proptest::{prelude::*, test_runner::TestRunner};
use std::{
    cell::Cell,
    ffi::c_void,
    ptr::{self, NonNull},
    sync::atomic::{AtomicUsize, Ordering},
};

/// Elements of the memory that tensors point into.
const LEN: usize = 64;

static DELETED: AtomicUsize = AtomicUsize::new(0);

/// The fields of a tensor.
#[derive(Debug, Clone)]
struct Says {
    versioned: bool,
    version: (u32, u32),
    flags: u64,
    /// Elements after the start of the memory; `None` for a null address.
    data: Option<usize>,
    byte_offset: u64,
    device: (i32, i32),
    dtype: (u8, u8, u16),
    /// Another number of axes than there are, if it is not a plausible one.
    ndim: Option<i32>,
    shape: Option<Vec<i64>>,
    strides: Option<Vec<i64>>,
    deleter: bool,
}

fn number() -> impl Strategy<Value = i64> {
    let edges = [i64::MIN, i64::MIN + 1, -(1 << 62), -1, 0, 1, 1 << 31, 1 << 61, 1 << 62, i64::MAX];
    prop_oneof![4 => -9i64..10, 2 => prop::sample::select(edges.to_vec()), 1 => any::<i64>()]
}

fn says() -> impl Strategy<Value = Says> {
    let shape = prop::collection::vec(prop_oneof![12 => 0i64..5, 1 => number()], 0..4);
    let shape = prop_oneof![30 => shape.prop_map(Some), 1 => Just(None)];
    let steps = prop::collection::vec(prop_oneof![10 => -6i64..7, 1 => number()], 4);
    let dtype = prop_oneof![12 => Just((1, 32, 1)), 1 => any::<(u8, u8, u16)>()];
    let device = prop_oneof![12 => Just((1, 0)), 1 => any::<(i32, i32)>(), 1 => (0i32..15, 0i32..2)];
    let data = prop_oneof![16 => (0..LEN).prop_map(Some), 1 => Just(None)];
    let offset = prop_oneof![8 => Just(0u64), 2 => (0..LEN as u64).prop_map(|at| 4 * at), 1 => any::<u64>()];
    let ndim =
        prop_oneof![20 => Just(None), 1 => prop_oneof![Just(-1), Just(65), any::<i32>()].prop_map(Some)];
    let version = prop_oneof![12 => (Just(1u32), 0u32..9), 1 => any::<(u32, u32)>()];
    let flags = prop_oneof![6 => 0u64..4, 1 => any::<u64>()];
    (
        (shape, prop::option::of(steps), dtype, device, data),
        (offset, ndim, version, flags, any::<[bool; 2]>()),
    )
        .prop_map(
            |(
                (shape, steps, dtype, device, data),
                (byte_offset, ndim, version, flags, [versioned, deleter]),
            )| {
                // Numbers of axes that are believed must be true: the producer of a tensor promises it.
                let ndim = ndim.filter(|count| !(0..=64).contains(count));
                let strides = steps.map(|steps| steps[..shape.as_ref().map_or(0, Vec::len)].to_vec());
                Says {
                    versioned,
                    version,
                    flags,
                    data,
                    byte_offset,
                    device,
                    dtype,
                    ndim,
                    shape,
                    strides,
                    deleter,
                }
            },
        )
}

/// A tensor with its numbers, freed by its deleter.
#[repr(C)]
struct Block<H> {
    head: H,
    _numbers: [Vec<i64>; 2],
}

unsafe extern "C" fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: made by `tensor`, deleted once.
    drop(unsafe { Box::from_raw(tensor.cast::<Block<DLManagedTensorVersioned>>()) });
    DELETED.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn delete_unversioned(tensor: *mut DLManagedTensor) {
    // SAFETY: made by `tensor`, deleted once.
    drop(unsafe { Box::from_raw(tensor.cast::<Block<DLManagedTensor>>()) });
    DELETED.fetch_add(1, Ordering::SeqCst);
}

fn tensor(says: &Says, start: *mut u32) -> DlpackTensor {
    let numbers = |found: &Option<Vec<i64>>| found.clone().unwrap_or_default();
    let mut numbers = [numbers(&says.shape), numbers(&says.strides)];
    let mut pointer = |which: usize, there: bool| match there {
        true => numbers[which].as_mut_ptr(),
        false => ptr::null_mut(),
    };
    let (code, bits, lanes) = says.dtype;
    let dl_tensor = DLTensor {
        data: says.data.map_or(ptr::null_mut(), |at| start.wrapping_add(at).cast::<c_void>()),
        device: DLDevice { device_type: says.device.0, device_id: says.device.1 },
        ndim: says.ndim.unwrap_or(says.shape.as_ref().map_or(1, |shape| shape.len() as i32)),
        dtype: DLDataType { code, bits, lanes },
        shape: pointer(0, says.shape.is_some()),
        strides: pointer(1, says.strides.is_some()),
        byte_offset: says.byte_offset,
    };
    let manager_ctx = ptr::null_mut();
    if says.versioned {
        let deleter = says.deleter.then_some(delete_versioned as unsafe extern "C" fn(_));
        let version = DLPackVersion { major: says.version.0, minor: says.version.1 };
        let head = DLManagedTensorVersioned { version, manager_ctx, deleter, flags: says.flags, dl_tensor };
        let block = NonNull::from(Box::leak(Box::new(Block { head, _numbers: numbers })));
        // SAFETY: a tensor laid out as the header says, with arbitrary values.
        unsafe { DlpackTensor::from_versioned(block.cast()) }
    } else {
        let deleter = says.deleter.then_some(delete_unversioned as unsafe extern "C" fn(_));
        let head = DLManagedTensor { dl_tensor, manager_ctx, deleter };
        let block = NonNull::from(Box::leak(Box::new(Block { head, _numbers: numbers })));
        // SAFETY: as above.
        unsafe { DlpackTensor::from_unversioned(block.cast()) }
    }
}

/// The elements that a sensible tensor describes: 0 to 63 from the start on. `None` where one of them is outside, which
/// only the owner of host memory knows.
fn model(says: &Says) -> Option<ArrayD<u32>> {
    let shape: Vec<usize> = says.shape.as_ref()?.iter().map(|&length| length as usize).collect();
    // An axis without a stride may be as long as one likes.
    shape.iter().try_fold(1usize, |all, &length| all.checked_mul(length)).filter(|all| *all <= 4096)?;
    let mut packed = vec![1i64; shape.len()];
    for axis in (1..shape.len()).rev() {
        packed[axis - 1] = packed[axis] * shape[axis] as i64;
    }
    let strides = says.strides.as_ref().unwrap_or(&packed);
    let first = i128::from(says.byte_offset) + 4 * says.data? as i128;
    let mut inside = true;
    let elements = ArrayD::from_shape_fn(IxDyn(&shape), |index| {
        let index = index.slice().iter().zip(strides);
        let byte = first + index.map(|(&at, &step)| 4 * at as i128 * i128::from(step)).sum::<i128>();
        inside &= (0..4 * LEN as i128).contains(&byte) && byte % 4 == 0;
        (byte / 4) as u32
    });
    inside.then_some(elements)
}

#[test]
fn tensors_are_taken_or_refused_and_deleted_once() {
    let device = Device::<Host>::open("host").unwrap();
    let mut memory: Vec<u32> = (0..LEN as u32).collect();
    let start = memory.as_mut_ptr();
    let (taken, expected_deletions) = (Cell::new(0), Cell::new(0));
    let cases = if cfg!(miri) { 20 } else { 4000 };
    let mut runner = TestRunner::new_with_rng(
        ProptestConfig { failure_persistence: None, cases, ..ProptestConfig::default() },
        prop::test_runner::TestRng::from_seed(prop::test_runner::RngAlgorithm::ChaCha, &[8; 32]),
    );
    let result = runner.run(&says(), |says| {
        let found: Result<ImportedArray<u32, IxDyn, Host>, _> =
            device.from_dlpack(tensor(&says, start), None);
        match &found {
            Err(error) => {
                let typed = matches!(error.kind(), ErrorKind::Descriptor(_) | ErrorKind::Layout(_));
                prop_assert!(typed, "{error:?}");
            }
            Ok(array) => {
                prop_assert_eq!(array.is_read_only(), says.versioned && says.flags & 1 != 0);
                if array.is_empty() {
                    prop_assert!(array.copy_to_host().is_ok());
                } else if let Some(expected) = model(&says) {
                    prop_assert_eq!(array.copy_to_host().unwrap(), expected);
                    taken.set(taken.get() + 1);
                }
            }
        }
        drop(found);
        device.flush().unwrap();
        expected_deletions.set(expected_deletions.get() + usize::from(says.deleter));
        prop_assert_eq!(DELETED.load(Ordering::SeqCst), expected_deletions.get());
        Ok(())
    });
    result.unwrap();
    let taken = taken.get();
    assert!(cfg!(miri) || taken > 300, "only {taken} tensors were sensible");
    assert!(memory.iter().copied().eq(0..LEN as u32));
}

/// The pages of memory at the end of the address space end at no address.
#[test]
fn a_tensor_at_the_end_of_the_address_space_is_taken_or_refused() {
    let device = Device::<Host>::open("host").unwrap();
    let mut memory = [0u32; 1];
    let (start, place) = (memory.as_mut_ptr(), u64::MAX - 255);
    let says = Says {
        versioned: true,
        version: (1, 0),
        flags: 0,
        data: Some(0),
        byte_offset: place - start.addr() as u64,
        device: (1, 0),
        dtype: (1, 32, 1),
        ndim: None,
        shape: Some(vec![4]),
        strides: None,
        deleter: false,
    };
    let found: Result<ImportedArray<u32, IxDyn, Host>, _> = device.from_dlpack(tensor(&says, start), None);
    drop(found);
    device.flush().unwrap();
    assert_eq!(device.take_errors(), []);
}
