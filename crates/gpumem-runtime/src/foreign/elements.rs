//! The common form of all descriptors: elements at addresses.

use crate::{Device, Layout, Order};
use gpumem_core::{
    AddressRange, Backend, DescriptorError, DriverDevice, Element, ErrorKind, LayoutError, Result,
};

/// Foreign elements: a layout from the lowest byte on, and where that byte is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignElements {
    pub(crate) layout: Layout,
    /// Address of the lowest byte; any aligned number for an array without bytes.
    pub(crate) address: u64,
    /// Bytes up to the end of the highest element.
    pub(crate) bytes: usize,
    pub(crate) read_only: bool,
}

impl ForeignElements {
    /// Elements of `T` whose element `[0, 0, ..]` is at `first`, with strides in bytes; none are C order.
    pub(crate) fn new<T: Element>(
        first: u64,
        shape: &[i64],
        strides: Option<&[i64]>,
        read_only: bool,
    ) -> Result<Self, ErrorKind> {
        let lengths = shape.iter().enumerate().map(|(axis, &length)| {
            usize::try_from(length).map_err(|_| DescriptorError::Length { axis, length })
        });
        let lengths: smallvec::SmallVec<[usize; 6]> = lengths.collect::<Result<_, _>>()?;
        let item = size_of::<T>();
        let layout = match strides {
            None => Layout::packed(&lengths, item, Order::C)?,
            Some(strides) => {
                let bytes: smallvec::SmallVec<[isize; 6]> =
                    strides.iter().map(|&stride| stride as isize).collect();
                Layout::strided(&lengths, &bytes, item)?
            }
        };
        let align = align_of::<T>();
        if layout.packed_bytes() == 0 {
            // An address without bytes means nothing; by the protocols it should be null.
            let layout = Layout::packed(&lengths, item, Order::C)?;
            return Ok(Self { layout, address: align as u64, bytes: 0, read_only });
        }
        let bytes = layout.extent().end;
        if first == 0 {
            return Err(DescriptorError::NullAddress { bytes: layout.packed_bytes() }.into());
        }
        if !first.is_multiple_of(align as u64) {
            let bytes = (first % align as u64) as isize;
            return Err(LayoutError::Misaligned { bytes, align }.into());
        }
        // The lowest byte, and the end, must be addresses.
        let address = first.checked_sub(layout.offset() as u64).filter(|lowest| *lowest > 0);
        let inside = address.filter(|lowest| lowest.checked_add(bytes as u64).is_some());
        let Some(address) = inside else {
            return Err(DescriptorError::AddressSpace { address: first, bytes }.into());
        };
        layout.check_alignment(align)?;
        Ok(Self { layout, address, bytes, read_only })
    }

    /// Checks that the first and the last byte are the device's. Whether all in between are, only their owner knows: an
    /// array may lie in several pieces that the driver has mapped side by side.
    pub(crate) fn check_place<B: Backend>(&self, device: &Device<B>, operation: &'static str) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let own = device.info().ordinal;
        let last = self.address + (self.bytes as u64 - 1);
        let mut known = self.address;
        for address in [self.address, last] {
            if address < known {
                // The same allocation as the first byte's.
                break;
            }
            match device.core().note_loss(device.raw().pointer_info(address)) {
                Ok(Some(found)) if found.ordinal == own => known = found.end,
                Ok(found) => {
                    let found = match found {
                        Some(AddressRange { ordinal, .. }) => {
                            format!("memory of {}:{ordinal}", device.info().backend)
                        }
                        None => format!("no memory that {} knows", device.info().backend),
                    };
                    let expected = format!("memory of {}", device.name());
                    let error = DescriptorError::Place { address, found, expected };
                    return Err(device.core().error(operation, ErrorKind::from(error)));
                }
                // The backend cannot tell, and the owner is believed.
                Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. }) => return Ok(()),
                Err(error) => return Err(error.in_operation(operation)),
            }
        }
        Ok(())
    }
}
