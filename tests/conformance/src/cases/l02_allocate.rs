//! Making arrays.

use crate::{Lab, Level, Verdict, refused, refused_layout};
use gpumem_core::{Backend, ErrorKind, LayoutError, MemoryKind};
use gpumem_runtime::{ArraySpec, Order};
use ndarray::{Array, Array1, Array2, Array3, Axis, arr0, s};

cases! { Level::Allocate;
    new_arrays_are_zero,
    orders_and_strides_are_as_asked,
    rank_zero_is_ordinary,
    no_elements_need_no_memory,
    shapes_that_overflow_are_refused,
    bad_strides_are_refused,
    more_than_there_is_is_out_of_memory,
    uninitialised_arrays_are_written_first,
    buffers_become_arrays_that_fit,
    likeness_keeps_the_order_of_axes,
    contiguity_is_numpys,
    dropping_reaches_no_driver,
}

fn new_arrays_are_zero<B: Backend>(lab: &Lab<B>) -> Verdict {
    // Dirty memory first, which the driver may hand out again.
    for _ in 0..4 {
        lab.device().device_array::<u8, _>(4096)?.fill(0xAB)?;
    }
    lab.device().flush()?;
    let array = lab.device().device_array::<u32, _>((4, 16, 16))?;
    assert_eq!(array.copy_to_host()?, Array3::<u32>::zeros((4, 16, 16)));
    let stream = lab.device().stream()?;
    let array = stream.device_array::<f64, _>((3, 5))?;
    assert_eq!(array.copy_to_host()?, Array2::<f64>::zeros((3, 5)));
    Ok(())
}

fn orders_and_strides_are_as_asked<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let c = device.device_array::<f32, _>((3, 4))?;
    assert_eq!((c.shape(), c.strides()), (&[3, 4][..], &[16, 4][..]));
    assert!(c.is_c_contiguous() && !c.is_f_contiguous());
    let f = device.device_array::<f32, _>(ArraySpec::new((3, 4)).order(Order::F))?;
    assert_eq!(f.strides(), &[4, 12]);
    assert!(f.is_f_contiguous() && !f.is_c_contiguous());
    let padded = device.device_array::<f32, _>(ArraySpec::new((3, 4)).strides(&[32, 8]))?;
    assert_eq!((padded.strides(), padded.byte_len(), padded.len()), (&[32, 8][..], 48, 12));
    assert!(!padded.is_c_contiguous() && !padded.is_f_contiguous());
    assert_eq!(padded.copy_to_host()?, Array2::<f32>::zeros((3, 4)));
    let reversed = device.device_array::<u16, _>(ArraySpec::new(5).strides(&[-2]))?;
    assert_eq!(reversed.copy_to_host()?, Array1::<u16>::zeros(5));
    assert_eq!(c.device()?, device);
    assert_eq!(c.kind(), MemoryKind::Device);
    Ok(())
}

fn rank_zero_is_ordinary<B: Backend>(lab: &Lab<B>) -> Verdict {
    let mut array = lab.device().device_array::<i64, _>(())?;
    assert_eq!((array.ndim(), array.len(), array.byte_len()), (0, 1, 8));
    assert!(array.is_c_contiguous() && array.is_f_contiguous());
    assert_eq!(array.read()?, 0);
    array.write(-7)?;
    assert_eq!(array.copy_to_host()?, arr0(-7));
    array.fill(9)?;
    array.copy_to_device(&arr0(array.read()? + 1))?;
    assert_eq!(array.get(())?, 10);
    Ok(())
}

fn no_elements_need_no_memory<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    device.default_stream()?;
    let before = device.counters();
    let mut array = device.device_array::<f64, _>((3, 0, 2))?;
    assert_eq!((array.len(), array.byte_len(), array.is_empty()), (0, 0, true));
    assert!(array.is_c_contiguous() && array.is_f_contiguous());
    array.fill(1.0)?;
    array.copy_to_device(&Array3::<f64>::zeros((3, 0, 2)))?;
    assert_eq!(array.copy_to_host()?.shape(), &[3, 0, 2]);
    assert_eq!(device.to_device(&Array2::<u8>::zeros((0, 9)))?.copy_to_host()?.shape(), &[0, 9]);
    assert_eq!(device.pinned_array::<u8, _>((0, 3))?.view()?.shape(), &[0, 3]);
    assert_eq!(device.counters(), before, "no request of zero bytes reaches the driver");
    Ok(())
}

fn shapes_that_overflow_are_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let too_large = |error: &LayoutError| matches!(error, LayoutError::TooLarge { .. });
    let before = device.counters();
    refused_layout(device.device_array::<u8, _>((usize::MAX, 2)), too_large)?;
    refused_layout(device.device_array::<f64, _>(usize::MAX / 8), too_large)?;
    refused_layout(device.device_array::<f64, _>((1 << 32, 1 << 32)), too_large)?;
    // The product of the other axes counts, even where one is empty.
    refused_layout(device.uninit_array::<u64, _>((1 << 40, 0, 1 << 40)), too_large)?;
    refused_layout(device.pinned_array::<u64, _>((1 << 40, 1 << 40)), too_large)?;
    let strides = ArraySpec::new(3).strides(&[isize::MAX]);
    refused_layout(device.device_array::<u8, _>(strides), too_large)?;
    assert_eq!(device.counters(), before, "nothing reached the driver");
    Ok(())
}

fn bad_strides_are_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let with = |strides: &[isize]| device.device_array::<u32, _>(ArraySpec::new((3, 4)).strides(strides));
    refused_layout(with(&[16]), |error| matches!(error, LayoutError::RankMismatch { .. }))?;
    refused_layout(with(&[0, 4]), |error| matches!(error, LayoutError::SelfOverlap { .. }))?;
    refused_layout(with(&[8, 4]), |error| matches!(error, LayoutError::SelfOverlap { .. }))?;
    refused_layout(with(&[18, 4]), |error| matches!(error, LayoutError::Misaligned { .. }))
}

fn more_than_there_is_is_out_of_memory<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let result = device.uninit_array::<u8, _>(1 << 60);
    refused(
        result,
        |kind| matches!(kind, ErrorKind::OutOfMemory { requested, .. } if *requested >= 1 << 60),
    )?;
    // The device is none the worse.
    assert_eq!(device.to_device(&[1u8, 2, 3])?.copy_to_host()?.to_vec(), [1, 2, 3]);
    Ok(())
}

fn uninitialised_arrays_are_written_first<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let filled = device.uninit_array::<u16, _>((2, 3))?.fill(7)?;
    assert_eq!(filled.copy_to_host()?, Array2::from_elem((2, 3), 7));
    let source = Array2::from_shape_fn((2, 3), |(i, j)| (10 * i + j) as u16);
    let spec = ArraySpec::new((2, 3)).order(Order::F);
    assert_eq!(device.uninit_array::<u16, _>(spec)?.copy_from(&source)?.copy_to_host()?, source);
    let wrong = device.uninit_array::<u16, _>((3, 2))?.copy_from(&source);
    refused_layout(wrong, |error| matches!(error, LayoutError::ShapeMismatch { .. }))
}

fn buffers_become_arrays_that_fit<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let bytes: Vec<u8> = (0..48).collect();
    let buffer = device.to_device(&bytes)?;
    let Err((buffer, error)) = buffer.into_array::<u32, _>((3, 5)) else {
        return Err(crate::Stop::Failed("60 bytes were found in a buffer of 48".to_owned()));
    };
    refused_layout(
        Err::<(), _>(error),
        |error| matches!(error, LayoutError::OutOfBuffer { needs, length: 48 } if needs.end == 60),
    )?;
    let Err((buffer, error)) = buffer.into_array::<u32, _>(ArraySpec::new(4).strides(&[16])) else {
        return Err(crate::Stop::Failed("52 bytes were found in a buffer of 48".to_owned()));
    };
    refused_layout(Err::<(), _>(error), |error| matches!(error, LayoutError::OutOfBuffer { .. }))?;
    let array = buffer.into_array::<u32, _>((3, 4)).map_err(|(_, error)| error)?;
    let expected: Vec<u32> = bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
    assert_eq!(array.copy_to_host()?, Array::from_shape_vec((3, 4), expected).map_err(other)?);
    Ok(())
}

fn other(error: ndarray::ShapeError) -> crate::Stop {
    crate::Stop::Failed(error.to_string())
}

fn likeness_keeps_the_order_of_axes<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let base = Array3::<u16>::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as u16);
    // The result of NumPy's empty_like for the same views.
    let views: [(_, [isize; 3]); 5] = [
        (base.view(), [24, 8, 2]),
        (base.t(), [2, 8, 24]),
        (base.slice(s![..;-1, .., ..;-1]), [24, 8, 2]),
        (base.view().permuted_axes([1, 0, 2]), [8, 24, 2]),
        (base.slice(s![.., ..;2, ..]), [16, 8, 2]),
    ];
    for (view, strides) in views {
        let like = device.device_array_like(&view)?;
        assert_eq!((like.shape(), like.strides()), (view.shape(), &strides[..]));
        assert_eq!(like.copy_to_host()?.sum(), 0);
        let copy = device.to_device(&view)?;
        assert_eq!(copy.strides(), like.strides());
        assert_eq!(copy.copy_to_host()?, view);
        let again = device.device_array_like(&copy.view().inverted_axis(0)?)?;
        assert_eq!(again.strides(), like.strides(), "of a device view");
    }
    let scalar = device.device_array_like(&arr0(3u8))?;
    assert_eq!((scalar.ndim(), scalar.read()?), (0, 0));
    Ok(())
}

fn contiguity_is_numpys<B: Backend>(lab: &Lab<B>) -> Verdict {
    let row = lab.device().to_device(&Array2::<f32>::ones((1, 6)))?;
    // The stride of an axis of length 1 does not count.
    let unit = row.slice(s![..;-1, ..])?;
    assert!(unit.is_c_contiguous() && unit.is_f_contiguous());
    let wide = row.broadcast((3, 6))?;
    assert!(!wide.is_c_contiguous() && !wide.is_f_contiguous());
    let every_second = row.slice(s![.., ..;2])?;
    assert!(!every_second.is_c_contiguous() && !every_second.is_f_contiguous());
    let column = row.t();
    assert!(column.is_c_contiguous() && column.is_f_contiguous());
    let host = Array2::<f32>::ones((4, 6));
    let cut = lab.device().to_device(&host)?;
    let first = cut.index_axis(1, 0)?;
    assert_eq!(first.copy_to_host()?, host.index_axis(Axis(1), 0));
    assert!(!first.is_c_contiguous());
    Ok(())
}

fn dropping_reaches_no_driver<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    device.flush()?;
    let alive = |counters: gpumem_runtime::DeviceCounters| counters.allocations - counters.releases;
    let at_first = alive(device.counters());
    let arrays: Vec<_> =
        (1..=5).map(|n| device.device_array::<u32, _>(1000 * n)).collect::<Result<_, _>>()?;
    let before = device.counters();
    drop(arrays);
    assert_eq!(device.counters(), before);
    device.flush()?;
    // Of the driver's blocks there may be fewer than arrays; all of them go back.
    assert_eq!(alive(device.counters()), at_first);
    Ok(())
}
