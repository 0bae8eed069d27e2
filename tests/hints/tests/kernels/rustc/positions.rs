//! Indices of the user's, which name one element on the host and another in the code for GPUs.
#![forbid(unsafe_code)]

use gpumem::{DeviceRecord, kernel::prelude::*, kernel::codegen::{Load, Store, bytemuck::Pod}};

#[derive(Clone, Copy, DeviceRecord, PartialEq)]
#[repr(u32)]
enum Place {
    First = 0,
}

impl Load<Place> for Own<u32> {
    type Elem = u32;
    fn load(&self, _: Place) -> u32 {
        0
    }
}

impl Store<Place> for Own<u32> {
    fn store(&self, _: Place, _: u32) {}
    fn store_part<F: Pod>(&self, _: Place, _: impl FnOnce(&mut u32) -> &mut F, _: F) {}
}

/// Every work-item writes the first element of a GPU's array.
#[gpumem::kernel]
fn races(y: Own<u32>) {
    y[Place::First] = 1;
}

impl gpumem::kernel::Indices<1> for Place {
    fn positions(self) -> [usize; 1] {
        [7]
    }
}

#[gpumem::kernel]
fn another(x: View<u32, 1>, y: Own<u32>) {
    y[own()] = x[Place::First];
}

fn main() {}
