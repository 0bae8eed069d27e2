//! Launching kernels by themselves: arrays in memory of the GPU, arguments, a packet.

use super::object::{Object, is_newer};
use crate::{
    abi::MemFlags,
    isa::{Failure, Launch, run},
    memory::{self, span},
};

/// An architecture: its name, the version of its instruction set, and the size of its waves.
pub(super) type Architecture = (&'static str, (u32, u32, u32), u32);

/// Those that every version of ROCm compiles for, then those that only the newer ones do.
const OLDER: [Architecture; 3] =
    [("gfx906", (9, 0, 6), 64), ("gfx90a", (9, 0, 10), 64), ("gfx1030", (10, 3, 0), 32)];
const NEWER: [Architecture; 3] =
    [("gfx942", (9, 4, 2), 64), ("gfx1100", (11, 0, 0), 32), ("gfx1201", (12, 0, 1), 32)];

/// The architectures that the compiler knows; one of them if `ROCSIM_GFX` names it.
pub(super) fn architectures() -> impl Iterator<Item = Architecture> {
    let newer = if is_newer() { &NEWER[..] } else { &[] };
    let named = std::env::var("ROCSIM_GFX").ok();
    let is_wanted = move |of: &&Architecture| named.as_deref().is_none_or(|named| named == of.0);
    OLDER.iter().chain(newer).filter(is_wanted).copied()
}

/// A node that no other test uses.
pub(super) const NODE: u32 = 1;

/// An array in memory of the GPU.
pub(super) struct Array<T> {
    pub(super) address: u64,
    len: usize,
    element: std::marker::PhantomData<T>,
}

impl<T: bytemuck::Pod> Array<T> {
    pub(super) fn new(elements: &[T]) -> Self {
        let bytes = (size_of_val(elements) as u64).max(1);
        let address = memory::allocate(NODE, bytes, MemFlags::default()).unwrap();
        memory::map(address, bytes, &[NODE]).unwrap();
        let array = Self { address, len: elements.len(), element: std::marker::PhantomData };
        let to = span(NODE, address, bytes).unwrap();
        // SAFETY: the span is as long as the elements, and no other code uses it.
        unsafe {
            std::ptr::copy_nonoverlapping(elements.as_ptr().cast(), to.as_ptr(), size_of_val(elements))
        };
        array
    }

    pub(super) fn get(&self) -> Vec<T> {
        let mut elements = vec![T::zeroed(); self.len];
        let from = span(NODE, self.address, (self.len * size_of::<T>()).max(1) as u64).unwrap();
        let to: &mut [u8] = bytemuck::cast_slice_mut(&mut elements);
        // SAFETY: as in `new`.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), to.len()) };
        elements
    }
}

impl<T> Drop for Array<T> {
    fn drop(&mut self) {
        memory::free(self.address);
    }
}

/// A block of arguments that is being put together.
#[derive(Default)]
pub(super) struct Arguments(Vec<u8>);

impl Arguments {
    /// One more argument, on a boundary of its size.
    pub(super) fn with<T: bytemuck::Pod>(mut self, argument: T) -> Self {
        self.0.resize(self.0.len().next_multiple_of(align_of::<T>()), 0);
        self.0.extend(bytemuck::bytes_of(&argument));
        self
    }

    pub(super) fn array<T: bytemuck::Pod>(self, array: &Array<T>) -> Self {
        self.with(array.address)
    }

    /// A slice: its first address and its length.
    pub(super) fn slice<T: bytemuck::Pod>(self, array: &Array<T>) -> Self {
        self.with(array.address).with(array.len as u64)
    }

    /// A packed view with two axes.
    pub(super) fn view<T: bytemuck::Pod>(self, array: &Array<T>, [rows, columns]: [usize; 2]) -> Self {
        let size = size_of::<T>() as u64;
        self.with(array.address).with([rows as u64, columns as u64]).with([columns as u64 * size, size])
    }
}

/// How a kernel is launched.
pub(super) struct Shape {
    pub(super) groups: [u32; 3],
    pub(super) group: [u32; 3],
    pub(super) dynamic_bytes: u32,
    pub(super) checked: bool,
    /// How many instructions a wave may execute.
    pub(super) most: u64,
}

impl Shape {
    pub(super) fn line(groups: usize, group: u32) -> Self {
        Self {
            groups: [groups as u32, 1, 1],
            group: [group, 1, 1],
            dynamic_bytes: 0,
            checked: false,
            most: 1 << 30,
        }
    }
}

/// The arguments that compilers add. Those of ROCm 6 and 7 (version 5 of AMD's code objects) begin with the number of
/// groups and their size; older ones have offsets there, which are zero.
fn hidden_arguments(groups: [u32; 3], group: [u32; 3]) -> [u8; 256] {
    let mut hidden = [0; 256];
    if is_newer() {
        for axis in 0..3 {
            hidden[4 * axis..4 * axis + 4].copy_from_slice(&groups[axis].to_le_bytes());
            hidden[12 + 2 * axis..14 + 2 * axis].copy_from_slice(&(group[axis] as u16).to_le_bytes());
        }
        // The number of axes.
        hidden[64] = 3;
    }
    hidden
}

/// Runs a kernel and says how many instructions its waves have executed.
pub(super) fn launch(
    object: &Object,
    isa: (u32, u32, u32),
    name: &str,
    shape: &Shape,
    arguments: Arguments,
) -> Result<u64, Failure> {
    let Shape { groups, group, dynamic_bytes, checked, most } = *shape;
    let grid: [u32; 3] = std::array::from_fn(|axis| groups[axis] * group[axis]);
    let mut block = arguments.0;
    block.resize(block.len().next_multiple_of(8), 0);
    block.extend(hidden_arguments(groups, group));
    let block = Array::new(&block);
    let mut packet = vec![0u8; 64];
    for axis in 0..3 {
        packet[4 + 2 * axis..6 + 2 * axis].copy_from_slice(&(group[axis] as u16).to_le_bytes());
        packet[12 + 4 * axis..16 + 4 * axis].copy_from_slice(&grid[axis].to_le_bytes());
    }
    let (packet, queue) = (Array::new(&packet), Array::new(&[0u8; 256]));
    let kernel = object.kernel(name);
    let fixed = span(object.node, kernel, 4).unwrap();
    // SAFETY: the span has four bytes.
    let fixed = unsafe { fixed.as_ptr().cast::<u32>().read_unaligned() };
    let launch = Launch {
        node: object.node,
        isa,
        name: name.to_owned(),
        grid,
        group,
        shared_bytes: fixed + dynamic_bytes,
        private_bytes: 0,
        object: kernel,
        arguments: block.address,
        packet: packet.address,
        queue: queue.address,
        most_instructions: most,
    };
    run(&launch, checked, &|| false)
}
