//! Memory of other libraries, described by the CUDA Array Interface.

use super::tools::same;
use crate::{Lab, Level, Verdict, refused, refused_layout};
use gpumem_core::{Backend, DescriptorError, DriverDevice, ErrorKind, LayoutError, Result};
use gpumem_runtime::{
    CudaArrayInterface, DescrField, Device, DeviceArray, HasCudaArrayInterface, Scalar, cuda_array,
    is_cuda_array,
};
use ndarray::{Array1, Array2, Array3, ArrayD, Ix1, Ix2, Ix3, IxDyn, s};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

cases! { Level::Interchange;
    arrays_of_others_are_taken,
    descriptors_are_checked,
    presence_is_all_that_is_asked,
    addresses_are_checked,
    read_only_is_honoured,
    an_import_waits_for_its_stream,
    an_unused_import_releases_its_owner_at_once,
    an_import_keeps_its_owner,
    objects_are_sources_of_copies,
    owned_arrays_are_adopted_where_that_is_possible,
}

/// Another library's array: memory, and its interface. Counts its drops.
struct Object<B: Backend> {
    says: CudaArrayInterface,
    _memory: Option<Arc<DeviceArray<u32, Ix1, B>>>,
    dropped: Arc<AtomicUsize>,
}

// SAFETY: every descriptor that is not refused describes memory that the object holds; the cases see to its order.
unsafe impl<B: Backend> HasCudaArrayInterface for Object<B> {
    fn cuda_array_interface(&self) -> Result<CudaArrayInterface> {
        Ok(self.says.clone())
    }
}

impl<B: Backend> Drop for Object<B> {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

fn object<B: Backend>(says: CudaArrayInterface) -> Object<B> {
    Object { says, _memory: None, dropped: Arc::default() }
}

/// 0 to 23 in memory of the device, ready.
fn memory<B: Backend>(device: &Device<B>) -> Verdict<Arc<DeviceArray<u32, Ix1, B>>> {
    let memory = device.to_device(&Array1::from_iter(0..24u32))?;
    device.synchronize()?;
    Ok(Arc::new(memory))
}

fn says<B: Backend>(memory: &Arc<DeviceArray<u32, Ix1, B>>, shape: &[i64]) -> Verdict<CudaArrayInterface> {
    Ok(CudaArrayInterface {
        shape: shape.to_vec(),
        typestr: "<u4"
            .parse()
            .map_err(|error| gpumem_core::Error::new("", "parse", ErrorKind::from(error)))?,
        data: (memory.address(), false),
        strides: None,
        descr: None,
        mask: false,
        version: 3,
        stream: None,
    })
}

fn arrays_of_others_are_taken<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let memory = memory(device)?;
    let flat = Array1::from_iter(0..24u32);
    let whole =
        flat.clone().into_shape_with_order((2, 3, 4)).map_err(|_| crate::Stop::Failed("shape".into()))?;
    // (shape, first element, strides in elements) and the same of ndarray.
    type Described<'a> = (&'a [i64], u64, Option<&'a [i64]>, ArrayD<u32>);
    let cases: [Described<'_>; 8] = [
        (&[2, 3, 4], 0, None, whole.clone().into_dyn()),
        (&[2, 3, 4], 0, Some(&[12, 4, 1]), whole.clone().into_dyn()),
        (&[4, 3, 2], 0, Some(&[1, 4, 12]), whole.t().to_owned().into_dyn()),
        (&[2, 2, 2], 2, Some(&[12, 8, -2]), whole.slice(s![.., ..;2, ..;-2]).mapv(|v| v - 1).into_dyn()),
        (&[24], 23, Some(&[-1]), flat.slice(s![..;-1]).to_owned().into_dyn()),
        (&[3, 5], 7, Some(&[1, 0]), ArrayD::from_shape_fn(IxDyn(&[3, 5]), |index| 7 + index[0] as u32)),
        (&[], 9, None, ArrayD::from_elem(IxDyn(&[]), 9)),
        (&[0, 7], 3, Some(&[-400, 1]), ArrayD::zeros(IxDyn(&[0, 7]))),
    ];
    for (shape, first, strides, expected) in cases {
        let mut says = says(&memory, shape)?;
        says.data.0 += 4 * first;
        says.strides = strides.map(|strides| strides.iter().map(|stride| 4 * stride).collect());
        let array = device.as_cuda_array::<u32, IxDyn, _>(object::<B>(says))?;
        let host = array.copy_to_host()?;
        same(host.view(), expected.view());
        if !expected.is_empty() {
            assert_eq!(array.address(), memory.address() + 4 * first, "no copy was made");
        }
    }
    let mut null = says(&memory, &[4, 0])?;
    null.data.0 = 0;
    assert!(device.as_cuda_array::<u32, Ix2, _>(object::<B>(null))?.is_empty());
    // Fields of records lie at strides that are no multiple of their own size.
    let mut field = says(&memory, &[4])?;
    field.typestr = "|V8".parse().map_err(|_| crate::Stop::Failed("type".into()))?;
    field.strides = Some(vec![20]);
    let fields = device.as_cuda_array::<[u32; 2], Ix1, _>(object::<B>(field))?;
    assert_eq!(fields.copy_to_host()?.to_vec(), [[0, 1], [5, 6], [10, 11], [15, 16]]);
    Ok(())
}

fn descriptors_are_checked<B: Backend>(lab: &Lab<B>) -> Verdict {
    let memory = memory(lab.device())?;
    let good = says(&memory, &[2, 3])?;
    let take = |change: &dyn Fn(&mut CudaArrayInterface)| {
        let mut says = good.clone();
        change(&mut says);
        lab.device().as_cuda_array::<u32, Ix2, _>(object::<B>(says)).map(drop)
    };
    take(&|_| ())?;
    use DescriptorError as Bad;
    type Change<'a> = &'a dyn Fn(&mut CudaArrayInterface);
    let bad =
        |kind: &ErrorKind, is: &dyn Fn(&Bad) -> bool| matches!(kind, ErrorKind::Descriptor(bad) if is(bad));
    type Refusal<'a, E> = (Change<'a>, &'a dyn Fn(&E) -> bool);
    let cases: [Refusal<'_, Bad>; 12] = [
        (&|d| d.version = 4, &|bad| matches!(bad, Bad::Version { .. })),
        (&|d| d.version = -1, &|bad| matches!(bad, Bad::Version { .. })),
        (&|d| d.mask = true, &|bad| matches!(bad, Bad::Mask)),
        (&|d| d.typestr.bytes = 8, &|bad| matches!(bad, Bad::ElementType { .. })),
        (&|d| d.typestr.kind = gpumem_runtime::ElementKind::Int, &|bad| {
            matches!(bad, Bad::ElementType { .. })
        }),
        (&|d| d.shape[0] = -2, &|bad| matches!(bad, Bad::Length { axis: 0, length: -2 })),
        (&|d| d.data.0 = 0, &|bad| matches!(bad, Bad::NullAddress { bytes: 24 })),
        (&|d| d.data.0 = u64::MAX - 3, &|bad| matches!(bad, Bad::AddressSpace { .. })),
        (&|d| (d.data.0, d.strides) = (8, Some(vec![-12, 4])), &|bad| {
            matches!(bad, Bad::AddressSpace { .. })
        }),
        (&|d| d.stream = Some(0), &|bad| matches!(bad, Bad::Stream { found: 0, .. })),
        (&|d| d.stream = Some(-7), &|bad| matches!(bad, Bad::Stream { .. })),
        (
            &|d| {
                d.descr = Some(vec![DescrField {
                    name: "x".into(),
                    element: d.typestr,
                    shape: vec![usize::MAX, 9],
                }])
            },
            &|bad| matches!(bad, Bad::Fields { .. }),
        ),
    ];
    for (change, is) in cases {
        refused(take(change), |kind| bad(kind, is))?;
    }
    let layouts: [Refusal<'_, LayoutError>; 6] = [
        (&|d| d.shape = vec![6], &|bad| matches!(bad, LayoutError::RankMismatch { found: 1, expected: 2 })),
        (&|d| d.strides = Some(vec![12]), &|bad| matches!(bad, LayoutError::RankMismatch { .. })),
        (&|d| d.strides = Some(vec![12, 2]), &|bad| {
            matches!(bad, LayoutError::Misaligned { bytes: 2, align: 4 })
        }),
        (&|d| d.data.0 += 1, &|bad| matches!(bad, LayoutError::Misaligned { .. })),
        (&|d| d.shape = vec![i64::MAX, 3], &|bad| matches!(bad, LayoutError::TooLarge { .. })),
        (&|d| d.strides = Some(vec![i64::MIN, 4]), &|bad| matches!(bad, LayoutError::TooLarge { .. })),
    ];
    for (change, is) in layouts {
        refused_layout(take(change), is)?;
    }
    // Before version 3 there is no stream; the field is ignored.
    take(&|d| (d.version, d.stream) = (2, Some(0)))?;
    take(&|d| d.descr = Some(vec![DescrField { name: String::new(), element: d.typestr, shape: vec![] }]))?;
    Ok(())
}

fn presence_is_all_that_is_asked<B: Backend>(lab: &Lab<B>) -> Verdict {
    struct Sometimes(bool);
    // SAFETY: it describes nothing.
    unsafe impl HasCudaArrayInterface for Sometimes {
        fn has_cuda_array_interface(&self) -> bool {
            self.0
        }
        fn cuda_array_interface(&self) -> Result<CudaArrayInterface> {
            let field = "__cuda_array_interface__";
            Err(gpumem_core::Error::new("", "getattr", ErrorKind::from(DescriptorError::Missing { field })))
        }
    }
    assert!(is_cuda_array(&Sometimes(true)) && !is_cuda_array(&Arc::new(Sometimes(false))));
    let missing = |kind: &ErrorKind| matches!(kind, ErrorKind::Descriptor(DescriptorError::Missing { .. }));
    refused(lab.device().as_cuda_array::<u8, Ix1, _>(Sometimes(true)), missing)?;
    refused(lab.device().to_device(&cuda_array::<u8, Ix1>(&Sometimes(false))), missing)
}

fn addresses_are_checked<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let memory = memory(device)?;
    match device.raw().pointer_info(memory.address()) {
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. }) => {
            return crate::skip("the backend cannot tell the owner of an address");
        }
        found => {
            let Some(found) = found? else { return super::tools::fail("memory without an allocation") };
            assert_eq!(found.ordinal, device.info().ordinal);
            assert!(found.end > memory.address(), "it goes as far as the byte that was asked about");
            // From any byte of it the same end can be reached.
            assert_eq!(device.raw().pointer_info(found.end - 1)?, Some(found));
        }
    }
    let host = [0u32; 24];
    let mut says = says(&memory, &[24])?;
    let place = |kind: &ErrorKind| matches!(kind, ErrorKind::Descriptor(DescriptorError::Place { .. }));
    says.data.0 = host.as_ptr().addr() as u64;
    refused(device.as_cuda_array::<u32, Ix1, _>(object::<B>(says.clone())), place)?;
    // An array that runs out of the memory of every device.
    says.data.0 = memory.address();
    says.strides = Some(vec![1 << 44]);
    refused(device.as_cuda_array::<u32, Ix1, _>(object::<B>(says.clone())), place)?;
    if let Ok(second) = lab.second() {
        says.strides = None;
        refused(second.as_cuda_array::<u32, Ix1, _>(object::<B>(says)), place)?;
    }
    Ok(())
}

fn read_only_is_honoured<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let memory = memory(device)?;
    let mut says = says(&memory, &[24])?;
    let writable = device.as_cuda_array::<u32, Ix1, _>(object::<B>(says.clone()))?;
    assert!(!writable.is_read_only());
    writable.try_into_array().map_err(|(_, error)| error)?.fill(1)?;
    assert_eq!(memory.copy_to_host()?, Array1::from_elem(24, 1));
    says.data.1 = true;
    let read_only = device.as_cuda_array::<u32, Ix1, _>(object::<B>(says.clone()))?;
    assert!(read_only.is_read_only());
    let Err((read_only, error)) = read_only.try_into_array() else {
        return super::tools::fail("it was writable");
    };
    assert!(matches!(error.kind(), ErrorKind::Descriptor(DescriptorError::ReadOnly)), "{error}");
    assert_eq!(read_only.get(23)?, 1, "the array has come back");
    // Elements that share memory may be read, and not written either.
    says.data.1 = false;
    says.strides = Some(vec![0]);
    let broadcast = device.as_cuda_array::<u32, Ix1, _>(object::<B>(says))?;
    assert_eq!(broadcast.copy_to_host()?, Array1::from_elem(24, 1));
    let overlap = |error: &LayoutError| matches!(error, LayoutError::SelfOverlap { .. });
    refused_layout(broadcast.try_into_array().map_err(|(_, error)| error), overlap)
}

fn an_import_waits_for_its_stream<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let memory = memory(device)?;
    let producer = device.stream()?;
    let mut alias = {
        // SAFETY: `memory` outlives it, and the import below waits for the producer's stream.
        unsafe { device.foreign_array::<u32, _>(memory.address(), 96, 24, ())? }
    };
    lab.delay(&producer)?;
    producer.fill(&mut alias, 7)?;
    let mut says = says(&memory, &[24])?;
    says.stream = Some(producer.raw_handle()?.0 as i64);
    let array = device.as_cuda_array::<u32, Ix1, _>(object::<B>(says))?;
    // The mark was made with the import: the stream may go.
    drop(producer);
    let consumer = device.stream()?;
    let copy = consumer.copy_to_host(&array)?;
    same(copy.view()?, Array1::from_elem(24, 7).view());
    same(array.copy_to_host()?.view(), Array1::from_elem(24, 7).view());
    Ok(())
}

/// The owner looks after the work on the producer's stream; it is no use by this library.
fn an_unused_import_releases_its_owner_at_once<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let memory = memory(device)?;
    let producer = device.stream()?;
    let mut says = says(&memory, &[24])?;
    says.stream = Some(producer.raw_handle()?.0 as i64);
    let dropped = Arc::new(AtomicUsize::new(0));
    for round in 1..=3 {
        lab.delay(&producer)?;
        let owner = Object { says: says.clone(), _memory: Some(memory.clone()), dropped: dropped.clone() };
        let array = device.as_cuda_array::<u32, Ix1, _>(owner)?;
        assert_eq!(dropped.load(Ordering::SeqCst), round - 1);
        drop(array);
        assert_eq!(dropped.load(Ordering::SeqCst), round, "it waited for work of others");
    }
    // The event of a dropped import is recorded again; a stream that waited for it waited for its earlier position.
    let mut alias = {
        // SAFETY: `memory` outlives it, and the imports below wait for the producer's stream.
        unsafe { device.foreign_array::<u32, _>(memory.address(), 96, 24, ())? }
    };
    let mut copies = Vec::new();
    for value in 0..20 {
        let consumer = device.stream()?;
        lab.delay(&producer)?;
        producer.fill(&mut alias, value)?;
        let array = device.as_cuda_array::<u32, Ix1, _>(object::<B>(says.clone()))?;
        copies.push((value, consumer.copy_to_host(&array)?));
        drop(array);
        // The library does not keep the producer from writing the next value.
        consumer.synchronize()?;
    }
    for (value, copy) in copies {
        same(copy.view()?, Array1::from_elem(24, value).view());
    }
    Ok(())
}

fn an_import_keeps_its_owner<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let memory = memory(device)?;
    let dropped = Arc::new(AtomicUsize::new(0));
    let owner =
        Object { says: says(&memory, &[24])?, _memory: Some(memory.clone()), dropped: dropped.clone() };
    let array = device.as_cuda_array::<u32, Ix1, _>(owner)?;
    let stream = device.stream()?;
    lab.delay(&stream)?;
    let copy = stream.copy_to_host(&array)?;
    drop((array, memory));
    device.flush()?;
    assert_eq!(dropped.load(Ordering::SeqCst), 1, "dropped exactly once");
    assert!(stream.query()?, "after its last use");
    same(copy.view()?, Array1::from_iter(0..24).view());
    Ok(())
}

fn objects_are_sources_of_copies<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let memory = memory(device)?;
    let mut says = says(&memory, &[2, 3, 4])?;
    says.data.1 = true;
    let expected = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (12 * i + 4 * j + k) as u32);
    let other = object::<B>(says.clone());
    let source = cuda_array::<u32, Ix3>(&other);
    let mut array = device.to_device(&source)?;
    assert_ne!(array.address(), memory.address(), "a copy was made");
    same(array.copy_to_host()?.view(), expected.view());
    array.fill(0)?;
    array.copy_to_device(&source)?;
    same(array.copy_to_host()?.view(), expected.view());
    let stream = device.stream()?;
    lab.delay(&stream)?;
    let copy = stream.to_device(&source)?;
    stream.fill(&mut array, 0)?;
    stream.assign(&mut array, &source)?;
    // The objects are only borrowed, so nothing reads them any more.
    assert!(stream.query()?);
    same(copy.copy_to_host()?.view(), expected.view());
    let written = device.uninit_array::<u32, _>((2, 3, 4))?.copy_from(&source)?;
    same(written.copy_to_host()?.view(), expected.view());
    // Broadcasting, another shape, another element.
    let row = object::<B>(self::says(&memory, &[4])?);
    let mut table = device.device_array::<u32, _>((3, 4))?;
    table.assign(&cuda_array::<u32, Ix1>(&row))?;
    same(table.copy_to_host()?.view(), Array2::from_shape_fn((3, 4), |(_, k)| k as u32).view());
    let mismatch = |error: &LayoutError| matches!(error, LayoutError::ShapeMismatch { .. });
    refused_layout(
        table.copy_to_device(&cuda_array::<u32, Ix2>(&object::<B>(self::says(&memory, &[4, 3])?))).map(drop),
        mismatch,
    )?;
    refused(device.to_device(&cuda_array::<f32, Ix3>(&other)), |kind| {
        matches!(kind, ErrorKind::Descriptor(DescriptorError::ElementType { .. }))
    })?;
    let pinned = device.pinned_array::<u32, _>((2, 3, 4))?;
    let mut pinned = pinned;
    pinned.copy_from(&source)?;
    same(pinned.view()?, expected.view());
    // Onto another device.
    if let Ok(second) = lab.second() {
        match second.to_device(&source) {
            Ok(there) => same(there.copy_to_host()?.view(), expected.view()),
            // A device that no other code can open; one of another backend, which does not know the address.
            Err(error) => assert!(
                matches!(
                    error.kind(),
                    ErrorKind::NoSuchDevice { .. } | ErrorKind::Descriptor(DescriptorError::Place { .. })
                ),
                "{error}"
            ),
        }
    }
    table.assign(&Scalar(0))?;
    Ok(())
}

fn owned_arrays_are_adopted_where_that_is_possible<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let host = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as u32);
    if !device.capabilities().pageable_direct {
        return refused(device.adopt_array(host), |kind| matches!(kind, ErrorKind::Unsupported { .. }));
    }
    let address = host.as_ptr().addr() as u64;
    let mut backwards = host.clone().reversed_axes();
    backwards.invert_axis(ndarray::Axis(1));
    let expected = backwards.clone();
    let mut array = device.adopt_array(host.clone())?;
    let turned = device.adopt_array(backwards)?;
    same(array.copy_to_host()?.view(), host.view());
    same(turned.copy_to_host()?.view(), expected.view());
    assert_ne!(array.address(), address, "a clone of it was adopted");
    let own = device.adopt_array(host)?;
    assert_eq!(own.address(), address, "no copy was made");
    let stream = device.stream()?;
    lab.delay(&stream)?;
    stream.fill(&mut array.slice_mut(s![1, .., ..;-2])?, 7)?;
    assert_eq!((array.get([1, 2, 3])?, array.get([1, 2, 2])?, array.get([0, 0, 1])?), (7, 122, 1));
    drop((array, turned, own));
    assert!(device.adopt_array(Array2::<f64>::zeros((0, 3)))?.is_empty());
    Ok(())
}
