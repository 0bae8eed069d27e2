//! DLPack, against a producer and a consumer of our own that know the header only.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use gpumem_core::{DescriptorError, ErrorKind, LayoutError};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{Device, DlpackTensor, ImportedArray};
use ndarray::{Array1, Array2, ArrayD, Ix1, Ix2, IxDyn, s};
use std::{
    ffi::c_void,
    ptr::{self, NonNull},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// dlpack.h, written down a second time.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: [i32; 2],
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Versioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: Tensor,
}

#[repr(C)]
struct Unversioned {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Unversioned)>,
}

/// The data that the test's producer keeps for a tensor.
struct Producer {
    deleted: Arc<AtomicUsize>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _memory: Arc<Vec<f32>>,
}

unsafe extern "C" fn delete(tensor: *mut Versioned) {
    // SAFETY: made by `produce`, deleted once.
    unsafe {
        let tensor = Box::from_raw(tensor);
        let producer = Box::from_raw(tensor.context.cast::<Producer>());
        producer.deleted.fetch_add(1, Ordering::SeqCst);
    }
}

/// A tensor over `memory`, with fields as `change` sets them.
fn produce(
    memory: &Arc<Vec<f32>>,
    shape: &[i64],
    strides: Option<&[i64]>,
    deleted: &Arc<AtomicUsize>,
    change: impl FnOnce(&mut Versioned),
) -> DlpackTensor {
    let (shape, has_strides) = (shape.to_vec(), strides.is_some());
    let strides = strides.unwrap_or_default().to_vec();
    let producer = Box::new(Producer { deleted: deleted.clone(), shape, strides, _memory: memory.clone() });
    let producer = Box::into_raw(producer);
    // SAFETY: just made.
    let (ndim, shape, strides) = unsafe {
        let producer = &mut *producer;
        (producer.shape.len() as i32, producer.shape.as_mut_ptr(), producer.strides.as_mut_ptr())
    };
    let mut tensor = Box::new(Versioned {
        version: [1, 1],
        context: producer.cast(),
        deleter: Some(delete),
        flags: 0,
        tensor: Tensor {
            data: memory.as_ptr().cast_mut().cast(),
            device: [1, 0],
            ndim,
            code: 2,
            bits: 32,
            lanes: 1,
            shape,
            strides: if has_strides { strides } else { ptr::null_mut() },
            byte_offset: 0,
        },
    });
    change(&mut tensor);
    // SAFETY: a tensor by the header, whose memory its producer keeps.
    unsafe { DlpackTensor::from_versioned(NonNull::from(Box::leak(tensor)).cast()) }
}

fn device() -> Device<Host> {
    Device::open("host").unwrap()
}

fn counting() -> Arc<Vec<f32>> {
    Arc::new((0..24u8).map(f32::from).collect())
}

#[test]
fn foreign_tensors_are_imported_without_a_copy() {
    let (device, memory, deleted) = (device(), counting(), Arc::new(AtomicUsize::new(0)));
    type Described<'a> = (&'a [i64], u64, Option<&'a [i64]>, Vec<f32>);
    let cases: [Described<'_>; 7] = [
        (&[2, 12], 0, None, (0..24).map(|at| at as f32).collect()),
        (&[3, 2], 0, Some(&[1, 3]), vec![0., 3., 1., 4., 2., 5.]),
        (&[2, 2], 23, Some(&[-12, -1]), vec![23., 22., 11., 10.]),
        (&[2, 3], 5, Some(&[1, 0]), vec![5., 5., 5., 6., 6., 6.]),
        (&[], 7, None, vec![7.]),
        (&[1, 2], 7, Some(&[i64::MAX, 2]), vec![7., 9.]),
        (&[4, 0], 0, Some(&[i64::MIN, 1]), vec![]),
    ];
    for (at, (shape, offset, strides, expected)) in cases.into_iter().enumerate() {
        let tensor = produce(&memory, shape, strides, &deleted, |tensor| {
            tensor.tensor.byte_offset = 4 * offset;
            tensor.flags = u64::from(at % 2 == 0);
        });
        let array: ImportedArray<f32, IxDyn, Host> = device.from_dlpack(tensor, None).unwrap();
        assert_eq!(array.is_read_only(), at % 2 == 0);
        if !expected.is_empty() {
            assert_eq!(array.address(), memory.as_ptr().addr() as u64 + 4 * offset);
        }
        let shape: Vec<usize> = shape.iter().map(|&length| length as usize).collect();
        assert_eq!(array.copy_to_host().unwrap(), ArrayD::from_shape_vec(shape, expected).unwrap());
        drop(array);
        device.flush().unwrap();
        assert_eq!(deleted.load(Ordering::SeqCst), at + 1, "deleted once, after the last use");
    }
    assert_eq!(Arc::strong_count(&memory), 1);
}

#[test]
fn memory_imported_twice_can_be_written() {
    let (device, deleted) = (device(), Arc::new(AtomicUsize::new(0)));
    let memory = counting();
    let take = || produce(&memory, &[24], None, &deleted, |_| ());
    let first: ImportedArray<f32, Ix1, Host> = device.from_dlpack(take(), None).unwrap();
    let second: ImportedArray<f32, Ix1, Host> = device.from_dlpack(take(), None).unwrap();
    let mut written = first.try_into_array().unwrap();
    written.fill(2.5).unwrap();
    assert_eq!(second.copy_to_host().unwrap(), Array1::from_elem(24, 2.5));
    drop(written);
    device.flush().unwrap();
    assert_eq!(deleted.load(Ordering::SeqCst), 1);
    let mut written = second.try_into_array().unwrap();
    written.fill(1.5).unwrap();
    drop(written);
    device.flush().unwrap();
    assert_eq!((deleted.load(Ordering::SeqCst), memory[23]), (2, 1.5));
}

#[test]
fn faulty_tensors_are_refused_and_deleted() {
    let (device, memory, deleted) = (device(), counting(), Arc::new(AtomicUsize::new(0)));
    let mut refused = 0;
    let mut refuse = |change: &dyn Fn(&mut Versioned), right: &dyn Fn(&ErrorKind) -> bool| {
        let tensor = produce(&memory, &[2, 3], Some(&[3, 1]), &deleted, |tensor| change(tensor));
        let found: Result<ImportedArray<f32, Ix2, Host>, _> = device.from_dlpack(tensor, None);
        let error = found.map(drop).unwrap_err();
        assert!(right(error.kind()), "{error:?}");
        refused += 1;
        assert_eq!(deleted.load(Ordering::SeqCst), refused, "a refused tensor is deleted too");
    };
    use DescriptorError as Bad;
    let version = |kind: &ErrorKind| matches!(kind, ErrorKind::Descriptor(Bad::Version { .. }));
    refuse(&|tensor| tensor.version = [2, 0], &version);
    refuse(&|tensor| tensor.version = [0, 8], &version);
    let name = |kind: &ErrorKind| matches!(kind, ErrorKind::Descriptor(Bad::TypeName { .. }));
    refuse(&|tensor| tensor.tensor.lanes = 4, &name);
    refuse(&|tensor| tensor.tensor.bits = 4, &name);
    refuse(&|tensor| tensor.tensor.code = 17, &name);
    let element = |kind: &ErrorKind| matches!(kind, ErrorKind::Descriptor(Bad::ElementType { .. }));
    refuse(&|tensor| tensor.tensor.code = 0, &element);
    refuse(&|tensor| tensor.tensor.bits = 64, &element);
    let length = |kind: &ErrorKind| matches!(kind, ErrorKind::Descriptor(Bad::Length { .. }));
    refuse(&|tensor| tensor.tensor.ndim = -1, &length);
    refuse(&|tensor| tensor.tensor.ndim = i32::MAX, &length);
    // SAFETY: the shape of the tensor has two lengths.
    refuse(&|tensor| unsafe { *tensor.tensor.shape = -2 }, &length);
    let place = |kind: &ErrorKind| matches!(kind, ErrorKind::Descriptor(Bad::Place { .. }));
    refuse(&|tensor| tensor.tensor.device = [2, 0], &place);
    refuse(&|tensor| tensor.tensor.device = [-5, 9], &place);
    let missing = |kind: &ErrorKind| matches!(kind, ErrorKind::Descriptor(Bad::Missing { .. }));
    refuse(&|tensor| tensor.tensor.shape = ptr::null_mut(), &missing);
    let null = |kind: &ErrorKind| matches!(kind, ErrorKind::Descriptor(Bad::NullAddress { .. }));
    refuse(&|tensor| (tensor.tensor.data, tensor.tensor.byte_offset) = (ptr::null_mut(), 64), &null);
    let space = |kind: &ErrorKind| matches!(kind, ErrorKind::Descriptor(Bad::AddressSpace { .. }));
    refuse(&|tensor| tensor.tensor.byte_offset = u64::MAX - 3, &space);
    let layout = |kind: &ErrorKind| matches!(kind, ErrorKind::Layout(_));
    refuse(&|tensor| tensor.tensor.byte_offset = 2, &layout);
    // SAFETY: as above.
    refuse(&|tensor| unsafe { *tensor.tensor.strides = i64::MAX / 2 }, &layout);
    // SAFETY: as above.
    refuse(&|tensor| unsafe { *tensor.tensor.shape = i64::MAX }, &layout);
    let tensor = produce(&memory, &[6], None, &deleted, |_| ());
    let rank: Result<ImportedArray<f32, Ix2, Host>, _> = device.from_dlpack(tensor, None);
    let rank = rank.map(drop).unwrap_err();
    assert!(matches!(rank.kind(), ErrorKind::Layout(LayoutError::RankMismatch { .. })), "{rank}");
}

/// Reads a tensor as a consumer does that knows the header only.
fn consume(tensor: &Tensor) -> (Vec<i64>, Vec<i64>, Vec<f32>) {
    assert_eq!((tensor.device, tensor.code, tensor.bits, tensor.lanes), ([1, 0], 2, 32, 1));
    let axes = tensor.ndim as usize;
    // SAFETY: as many numbers as axes; the strides are always there.
    let numbers = |at: *mut i64| (0..axes).map(|axis| unsafe { *at.wrapping_add(axis) }).collect::<Vec<_>>();
    let (shape, strides) = (numbers(tensor.shape), numbers(tensor.strides));
    let mut elements = Vec::new();
    for index in ndarray::indices(shape.iter().map(|&length| length as usize).collect::<Vec<_>>()) {
        let index = index.into_pattern_vec();
        let step: i64 = index.iter().zip(&strides).map(|(&at, stride)| at as i64 * stride).sum();
        let at = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize).cast::<f32>();
        // SAFETY: an element of the tensor.
        elements.push(unsafe { *at.wrapping_offset(step as isize) });
    }
    (shape, strides, elements)
}

trait Indices {
    fn into_pattern_vec(self) -> Vec<usize>;
}

impl Indices for IxDyn {
    fn into_pattern_vec(self) -> Vec<usize> {
        ndarray::Dimension::slice(&self).to_vec()
    }
}

#[test]
fn arrays_are_exported_and_imported_again() {
    let device = device();
    let host = Array2::from_shape_fn((4, 6), |(i, j)| (10 * i + j) as f32);
    let array = device.to_device(&host).unwrap();
    let views = [
        (array.view().into_dyn(), host.view().into_dyn()),
        (array.t().into_dyn(), host.t().into_dyn()),
        (array.slice(s![..;-2, 1..;3]).unwrap().into_dyn(), host.slice(s![..;-2, 1..;3]).into_dyn()),
        (array.slice(s![3, 4]).unwrap().into_dyn(), host.slice(s![3, 4]).into_dyn()),
        (array.slice(s![2..2, ..]).unwrap().into_dyn(), host.slice(s![2..2, ..]).into_dyn()),
    ];
    for (view, expected) in views {
        let tensor = view.lend_to_host().unwrap().into_dlpack().unwrap();
        assert!(tensor.is_read_only());
        let raw = tensor.into_versioned().unwrap().cast::<Versioned>();
        // SAFETY: a tensor that is ours now.
        let said = unsafe { raw.as_ref() };
        assert_eq!((said.version, said.flags), ([1, 0], 1));
        let (shape, _, elements) = consume(&said.tensor);
        assert_eq!(shape, expected.shape().iter().map(|&length| length as i64).collect::<Vec<_>>());
        assert_eq!(elements, expected.iter().copied().collect::<Vec<_>>());
        assert_eq!(said.tensor.data.is_null(), expected.is_empty());
        // SAFETY: given back unchanged.
        let tensor = unsafe { DlpackTensor::from_versioned(raw.cast()) };
        let back: ImportedArray<f32, IxDyn, Host> = device.from_dlpack(tensor, None).unwrap();
        assert_eq!(back.copy_to_host().unwrap(), expected);
        assert!(back.try_into_array().is_err());
    }
    let wide = array
        .slice(s![0, ..])
        .unwrap()
        .broadcast((3, 6))
        .unwrap()
        .lend_to_host()
        .unwrap()
        .into_dlpack()
        .unwrap();
    let raw = wide.into_versioned().unwrap().cast::<Versioned>();
    // SAFETY: a tensor that is ours now, deleted once.
    unsafe {
        let (shape, strides, elements) = consume(&raw.as_ref().tensor);
        assert_eq!((shape, strides, elements[17]), (vec![3, 6], vec![0, 1], 5.0));
        raw.as_ref().deleter.unwrap()(raw.as_ptr());
    }
}

#[test]
fn the_stream_passed_to_the_producer_is_waited_for() {
    for seed in 0..8 {
        let raw = Host::open_with(&HostOptions::new().adversarial(seed)).unwrap();
        let device = Device::<Host>::from_raw(raw);
        let mut array = device.to_device(&Array1::from_elem(16, 1f32)).unwrap();
        let (theirs, ours) = (device.stream().unwrap(), device.stream().unwrap());
        let (memory, deleted) = (Arc::new(Vec::new()), Arc::new(AtomicUsize::new(0)));
        let data = ptr::with_exposed_provenance_mut(array.address() as usize);
        device.synchronize().unwrap();
        for value in 1..30 {
            theirs.fill(&mut array, value as f32).unwrap();
            let tensor = produce(&memory, &[16], None, &deleted, |tensor| tensor.tensor.data = data);
            let taken: ImportedArray<f32, Ix1, Host> = device.from_dlpack(tensor, Some(&theirs)).unwrap();
            match value % 3 {
                // This library has not used it, whatever the producer is still doing there.
                0 => {
                    let before = deleted.load(Ordering::SeqCst);
                    drop(taken);
                    assert_eq!(deleted.load(Ordering::SeqCst), before + 1);
                }
                1 => {
                    let copy = ours.to_device(&taken).unwrap();
                    drop(taken);
                    assert_eq!(copy.copy_to_host().unwrap(), Array1::from_elem(16, value as f32));
                }
                _ => assert_eq!(taken.copy_to_host().unwrap(), Array1::from_elem(16, value as f32)),
            }
        }
        // On the very stream the order is the stream's own.
        theirs.fill(&mut array, 99.0).unwrap();
        let tensor = produce(&memory, &[16], None, &deleted, |tensor| tensor.tensor.data = data);
        let taken: ImportedArray<f32, Ix1, Host> = device.from_dlpack(tensor, Some(&theirs)).unwrap();
        let copy = theirs.to_device(&taken).unwrap();
        drop(taken);
        assert_eq!(copy.copy_to_host().unwrap(), Array1::from_elem(16, 99.0));
        device.flush().unwrap();
        assert_eq!(deleted.load(Ordering::SeqCst), 30);
    }
}

#[test]
fn the_older_form_carries_writable_tensors() {
    let device = device();
    let mut array = device.to_device(&Array1::from_elem(5, 1.0f32)).unwrap();
    assert!(array.lend_to_host().unwrap().into_dlpack_unversioned().is_err(), "it cannot say read-only");
    let tensor = array.lend_mut_to_host().unwrap().into_dlpack_unversioned().unwrap();
    drop(array);
    device.flush().unwrap();
    let raw = tensor.into_unversioned().unwrap().cast::<Unversioned>();
    // SAFETY: a tensor that is ours now, deleted once; the loan keeps the memory.
    unsafe {
        let (shape, _, elements) = consume(&raw.as_ref().tensor);
        assert_eq!((shape, elements), (vec![5], vec![1.0; 5]));
        *raw.as_ref().tensor.data.cast::<f32>() = 7.0;
        let tensor = DlpackTensor::from_unversioned(raw.cast());
        let back: ImportedArray<f32, Ix1, Host> = device.from_dlpack(tensor, None).unwrap();
        assert_eq!(back.get(0).unwrap(), 7.0);
    }
    device.flush().unwrap();
}

#[test]
fn arrays_that_dlpack_cannot_describe_are_errors() {
    let device = device();
    let says = |error: gpumem_core::Error| match error.kind() {
        ErrorKind::Descriptor(DescriptorError::Inexpressible { what, .. }) => *what,
        other => panic!("{other:?}"),
    };
    let records = device.device_array::<[u16; 3], _>(4).unwrap();
    assert_eq!(
        says(records.lend_to_host().unwrap().into_dlpack().unwrap_err()),
        "elements that are no numbers"
    );
    let array = device.device_array::<f32, _>(4).unwrap();
    let loan = array.lend(&device.stream().unwrap()).unwrap();
    assert_eq!(says(loan.into_dlpack().unwrap_err()), "the stream of memory of the host");
    // A field of records: its strides are no multiple of the element.
    #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    #[repr(C)]
    struct Odd {
        mass: f32,
        bytes: [u8; 6],
        rest: u16,
        rank: u16,
        last: u16,
    }
    let odd = device.device_array::<Odd, _>(3).unwrap();
    let field = odd.field(gpumem_runtime::field!(Odd, bytes)).unwrap();
    assert!(field.lend_to_host().unwrap().into_dlpack().is_err());
    let pinned = device.pinned_array::<f32, _>((2, 2)).unwrap();
    let tensor = pinned.lend_to_host().unwrap().into_dlpack().unwrap();
    assert_eq!(tensor.device().unwrap().device_type, 1);
}
