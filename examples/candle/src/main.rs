//! gpumem's arrays and candle's tensors, through DLPack: `cargo run` in this folder.
//!
//! candle knows no DLPack of its own. Its tensors are immutable and shared, so that one goes out as a tensor that may only
//! be read and that holds it; candle owns what it computes with, so that one comes in by one copy, out of the memory that the
//! DLPack tensor names.

use candle_core::{CpuStorage, DType, Device as Candle, Storage, Tensor};
use gpumem::{
    Device, DlpackDevice, DlpackTensor, ElementType, ImportedArray,
    dlpack::abi::{DLDataType, DLDevice, DLManagedTensorVersioned, DLTensor, READ_ONLY, VERSION},
    ndarray::{Array2, Ix2},
    s,
};
use std::{error::Error, ffi::c_void, ptr::NonNull};

/// A DLPack tensor with its memory: freed by its deleter.
#[repr(C)]
struct Exported {
    head: DLManagedTensorVersioned,
    numbers: Vec<i64>,
    _tensor: Tensor,
}

unsafe extern "C" fn delete(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: made by `export`, deleted once.
    drop(unsafe { Box::from_raw(tensor.cast::<Exported>()) });
}

/// A tensor of `f32` on the processor as a DLPack tensor, without a copy.
fn export(tensor: &Tensor) -> Result<DlpackTensor, Box<dyn Error>> {
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cpu(CpuStorage::F32(elements)) = &*storage else {
        return Err("only f32 on the processor here".into());
    };
    let first = elements.get(layout.start_offset()..).ok_or("the layout is outside of its storage")?.as_ptr();
    let axes = layout.dims().len();
    // candle counts strides in elements, as DLPack does.
    let numbers = layout.dims().iter().chain(layout.stride()).map(|number| *number as i64).collect();
    let dl_tensor = DLTensor {
        data: first.cast_mut().cast::<c_void>(),
        device: DLDevice { device_type: DlpackDevice::CPU, device_id: 0 },
        ndim: axes as i32,
        dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let head = DLManagedTensorVersioned {
        version: VERSION,
        manager_ctx: std::ptr::null_mut(),
        deleter: Some(delete),
        flags: READ_ONLY,
        dl_tensor,
    };
    let block = Box::leak(Box::new(Exported { head, numbers, _tensor: tensor.clone() }));
    block.head.dl_tensor.shape = block.numbers.as_mut_ptr();
    block.head.dl_tensor.strides = block.numbers.as_mut_ptr().wrapping_add(axes);
    // SAFETY: the numbers and the tensor's memory live in the block until the deleter is called, from whatever thread;
    // candle writes no tensor that another user holds.
    Ok(unsafe { DlpackTensor::from_versioned(NonNull::from(block).cast()) })
}

/// A packed DLPack tensor of `f32` on the processor as a tensor of candle's.
fn import(tensor: DlpackTensor) -> Result<Tensor, Box<dyn Error>> {
    if tensor.device()?.device_type != DlpackDevice::CPU || tensor.element()? != ElementType::of::<f32>() {
        return Err("only f32 on the processor here".into());
    }
    let raw = tensor.into_versioned().map_err(|_| "a tensor before version 1.0")?;
    // SAFETY: a tensor that is ours now, by the header; gpumem always writes strides.
    let (shape, tensor) = unsafe {
        let said = &raw.as_ref().dl_tensor;
        let axes = said.ndim as usize;
        let shape: Vec<usize> =
            std::slice::from_raw_parts(said.shape, axes).iter().map(|length| *length as usize).collect();
        let elements = match shape.iter().product() {
            0 => &[],
            count => {
                std::slice::from_raw_parts(said.data.byte_add(said.byte_offset as usize).cast::<f32>(), count)
            }
        };
        let tensor = Tensor::from_slice(elements, shape.clone(), &Candle::Cpu)?;
        drop(DlpackTensor::from_versioned(raw));
        (shape, tensor)
    };
    assert_eq!(tensor.dims(), shape);
    Ok(tensor)
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::open("host")?;

    // candle computes, gpumem looks at the result where it is, in whatever layout.
    let product = Tensor::arange(0f32, 12f32, &Candle::Cpu)?.reshape((3, 4))?.affine(2.0, 1.0)?;
    let turned = product.t()?;
    let seen: ImportedArray<f32, Ix2> = device.from_dlpack(export(&turned)?, None)?;
    assert!(seen.is_read_only());
    let expected = Array2::from_shape_fn((4, 3), |(row, column)| 2.0 * (4 * column + row) as f32 + 1.0);
    drop((product, turned)); // gpumem's array keeps the memory
    assert_eq!(seen.copy_to_host()?, expected);

    // gpumem makes a part of it, candle goes on from there.
    let part = device.to_device(&seen.slice(s![..;2, ..])?)?;
    let tensor = import(part.lend_to_host()?.into_dlpack()?)?;
    assert_eq!(tensor.dtype(), DType::F32);
    let sum = tensor.sum_all()?.to_scalar::<f32>()?;
    assert_eq!(sum, expected.slice(s![..;2, ..]).sum());
    println!("candle and gpumem: {:?}, the sum of every second row is {sum}", expected.dim());
    Ok(())
}
