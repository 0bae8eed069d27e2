//! Views: slices, transposes, reshapes, broadcasts. Each is a borrow, and costs no copy.

use gpumem::{Device, ErrorKind, LayoutError, Order, ndarray::Array, s};

fn main() -> gpumem::Result<()> {
    run(&Device::open_default()?)
}

pub(crate) fn run(device: &Device) -> gpumem::Result<()> {
    let host = Array::from_iter(0..24_i32).into_shape_with_order((4, 6)).unwrap_or_default();
    let mut array = device.to_device(&host)?;

    // ndarray's own slices, with steps of either sign.
    let view = array.slice(s![1.., ..;-2])?;
    assert_eq!(view.strides(), [24, -8]);
    assert_eq!(view.copy_to_host()?, host.slice(s![1.., ..;-2]));

    // Transposes and broadcasts of views, and reshapes where no copy is needed.
    assert_eq!(view.t().copy_to_host()?, host.slice(s![1.., ..;-2]).t());
    assert_eq!(array.index_axis(0, 2)?.broadcast((3, 6))?.strides(), [0, 4]);
    assert_eq!(array.reshape((2, 2, 6))?.shape(), [2, 2, 6]);
    let refused = view.reshape(9).err();
    let needs_copy =
        |error: &gpumem::Error| matches!(error.kind(), ErrorKind::Layout(LayoutError::NeedsCopy { .. }));
    assert!(refused.as_ref().is_some_and(needs_copy));
    assert_eq!(view.flatten(Order::C)?.len(), 9);

    // Writing through a view: every second column, then one row from another place.
    array.slice_mut(s![.., ..;2])?.fill(-1)?;
    let (mut top, bottom) = array.split_at_mut(0, 2)?;
    top.slice_mut(s![0, ..])?.copy_to_device(&bottom.slice(s![1, ..])?)?;
    assert_eq!(array.slice(s![0, ..])?.copy_to_host()?.to_vec(), [-1, 19, -1, 21, -1, 23]);
    Ok(())
}
