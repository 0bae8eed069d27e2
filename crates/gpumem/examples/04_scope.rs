//! Scopes: your own memory in asynchronous copies. Numba's `auto_synchronize`.

use gpumem::{Device, ndarray::Array2, s};

fn main() -> gpumem::Result<()> {
    run(&Device::open_default()?)
}

pub(crate) fn run(device: &Device) -> gpumem::Result<()> {
    let stream = device.stream()?;
    let array = stream.to_device(&Array2::from_shape_fn((64, 64), |(row, column)| (row * column) as u32))?;

    let (mut all, mut corner) = (Array2::zeros((64, 64)), Array2::zeros((8, 8)));
    let copies = stream.scope(|scope| -> gpumem::Result<u32> {
        // Both copies are under way together. The borrows last until the scope has ended, and it ends with a wait,
        // however it is left: by its end, by `?`, or by a panic.
        scope.copy_to_host(&array, all.view_mut())?;
        scope.copy_to_host(&array.slice(s![56.., 56..])?, corner.slice_mut(s![..;-1, ..;-1]))?;
        Ok(2)
    })??;
    assert_eq!(copies, 2);
    assert_eq!((all[(63, 63)], corner[(0, 0)], corner[(7, 7)]), (63 * 63, 63 * 63, 56 * 56));

    // Page-locking your own array for the length of a scope makes its copies asynchronous without a detour.
    if device.capabilities().register {
        let mut table = Array2::<u32>::zeros((64, 64));
        stream.scope(|scope| -> gpumem::Result<()> {
            let mut locked = scope.pinned(table.view_mut())?;
            scope.stream().copy_to_host_into(&array, &mut locked)
        })??;
        assert_eq!(table, all);
    }
    Ok(())
}
