//! Arrays whose elements have no bytes.

use super::device;
use bytemuck::{Pod, Zeroable};
use gpumem_core::Attach;
use ndarray::{Array1, Array2, Ix2, s};

#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Nothing;

#[test]
fn elements_without_bytes_go_to_the_device_and_back() {
    let device = device();
    let array = device.device_array::<[f32; 0], _>(4).unwrap();
    assert_eq!(array.copy_to_host().unwrap(), Array1::from_elem(4, [0f32; 0]));
    let host = Array2::from_elem((3, 5), Nothing);
    let mut array = device.to_device(&host).unwrap();
    assert_eq!(array.copy_to_host().unwrap(), host);
    assert_eq!(array.slice(s![..;-1, 1..]).unwrap().copy_to_host().unwrap(), host.slice(s![.., 1..]));
    assert_eq!(array.copy_to_host_into(&mut host.clone()).unwrap(), host);
    assert_eq!(device.to_device(&host.t()).unwrap().copy_to_host().unwrap().dim(), (5, 3));
    assert_eq!(array.get((2, 4)).unwrap(), Nothing);
    array.set((2, 4), Nothing).unwrap();
    array.fill(Nothing).unwrap();
}

#[test]
fn elements_without_bytes_are_copied_on_streams() {
    let device = device();
    let stream = device.stream().unwrap();
    let mut array = stream.to_device(&[Nothing; 7]).unwrap();
    assert_eq!(stream.copy_to_host(&array).unwrap().view().unwrap().len(), 7);
    stream.fill(&mut array, Nothing).unwrap();
    let copy = stream.to_device(&array.slice(s![..;2]).unwrap()).unwrap();
    assert_eq!(copy.copy_to_host().unwrap().len(), 4);
    let mut out = [Nothing; 7];
    stream.scope(|scope| scope.copy_to_host(&array, &mut out[..])).unwrap().unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn the_host_sees_elements_without_bytes() {
    let device = device();
    let mut pinned = device.pinned_array::<Nothing, _>((2, 3)).unwrap();
    assert_eq!(pinned.view().unwrap().dim(), (2, 3));
    pinned.view_mut().unwrap().fill(Nothing);
    let on_device = device.to_device(&pinned).unwrap();
    assert_eq!(on_device.copy_to_host().unwrap().raw_dim(), Ix2(2, 3));
    let mut managed = device.managed_array::<[u8; 0], _>(9, Attach::Global).unwrap();
    assert_eq!(managed.view_mut().unwrap().iter().count(), 9);
}
