//! Host memory that devices use too: pinned, mapped and managed arrays.

use gpumem::{Attach, Device, MappedOptions, ndarray::Array2};

fn main() -> gpumem::Result<()> {
    run(&Device::open_default()?)
}

pub(crate) fn run(device: &Device) -> gpumem::Result<()> {
    let stream = device.stream()?;

    // Page-locked: source and destination of asynchronous copies. The accessors wait for the device.
    let mut pinned = device.pinned_array::<f32, _>((16, 16))?;
    pinned.view_mut()?.fill(3.0);
    let array = stream.to_device(&pinned)?;
    pinned.view_mut()?.fill(4.0); // waits until the copy has read the threes
    assert_eq!(array.get((15, 15))?, 3.0);

    // Mapped: the device uses the host's memory. Its views are device views like any other.
    if device.capabilities().mapped {
        let options = MappedOptions { portable: true, ..MappedOptions::default() };
        let mut mapped = device.mapped_array::<f32, _>((16, 16), options)?;
        stream.copy_to_device(&mut mapped.device_view_mut(), &array)?;
        assert_eq!(mapped.view()?, Array2::from_elem((16, 16), 3.0));
    }

    // Managed: pages that migrate to the device that uses them.
    if device.capabilities().managed {
        let mut managed = device.managed_array::<f32, _>((16, 16), Attach::Global)?;
        managed.view_mut()?[(0, 0)] = 1.0;
        stream.fill(&mut managed.device_view_mut(), 5.0)?;
        assert_eq!(managed.view()?[(0, 0)], 5.0);
    }

    // Arrays of your own, page-locked while a closure runs.
    if device.capabilities().register {
        let (mut left, mut right) = (Array2::<f32>::zeros((16, 16)), Array2::<f32>::zeros((16, 16)));
        device.pinned([left.view_mut(), right.view_mut()], |[left, right]| {
            stream.copy_to_host_into(&array, left)?;
            stream.copy_to_host_into(&array, right)
        })??;
        assert_eq!((left[(3, 3)], right), (3.0, Array2::from_elem((16, 16), 3.0)));
    }
    Ok(())
}
