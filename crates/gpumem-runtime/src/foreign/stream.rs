//! Streams by the numbers that other libraries know them by.

use crate::Device;
use gpumem_core::{
    Backend, DescriptorError, DriverDevice, Error, RawStream, Result, StreamKind, StreamOptions,
};
use gpumem_memory::track::Timeline;

/// A stream as descriptors name it: 1 is the legacy default stream, 2 the default stream of the calling thread,
/// everything else the driver's handle. 0 could mean either of the first two, so it names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InterchangeStream {
    /// The driver's legacy default stream.
    Legacy,
    /// The driver's default stream of the calling thread.
    PerThread,
    /// The driver's handle.
    Handle(RawStream),
}

impl InterchangeStream {
    /// Reads the number of a descriptor.
    ///
    /// # Errors
    /// Returns [`DescriptorError::Stream`] for 0, which both protocols forbid, and for numbers that are no handle.
    pub fn from_number(number: i64) -> Result<Self, DescriptorError> {
        match number {
            0 => {
                let why = "0 is ambiguous; 1 is the legacy default stream, 2 the thread's own";
                Err(DescriptorError::Stream { found: 0, why })
            }
            1 => Ok(InterchangeStream::Legacy),
            2 => Ok(InterchangeStream::PerThread),
            _ => match u64::try_from(number) {
                Ok(handle) => Ok(InterchangeStream::Handle(RawStream(handle))),
                Err(_) => Err(DescriptorError::Stream { found: number, why: "it is negative" }),
            },
        }
    }

    /// The number for a descriptor: never 0.
    pub fn number(self) -> i64 {
        match self {
            InterchangeStream::Legacy => 1,
            InterchangeStream::PerThread => 2,
            // Handles are addresses or small numbers; the highest bit is never set.
            InterchangeStream::Handle(RawStream(handle)) => i64::try_from(handle).unwrap_or(i64::MAX),
        }
    }

    /// The name of one of our own streams.
    pub(crate) fn of<B: Backend>(timeline: &Timeline<B>, raw: RawStream) -> Self {
        match timeline.kind() {
            StreamKind::Legacy => InterchangeStream::Legacy,
            StreamKind::PerThread => InterchangeStream::PerThread,
            StreamKind::New => {
                InterchangeStream::from_number(raw.0 as i64).unwrap_or(InterchangeStream::Handle(raw))
            }
        }
    }

    /// The stream, for use within one call.
    ///
    /// # Safety
    /// A handle names a live stream of the device while the returned value is in use.
    pub(crate) unsafe fn stream<B: Backend>(
        self,
        device: &Device<B>,
        operation: &'static str,
    ) -> Result<B::Stream> {
        let named = |kind| device.raw().create_stream(&StreamOptions { kind, ..StreamOptions::default() });
        let found = match self {
            InterchangeStream::Legacy => named(StreamKind::Legacy),
            InterchangeStream::PerThread => named(StreamKind::PerThread),
            // SAFETY: the caller's promise.
            InterchangeStream::Handle(handle) => unsafe { device.raw().wrap_stream(handle) },
        };
        device.core().note_loss(found).map_err(|error: Error| error.in_operation(operation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_name_streams() {
        assert_eq!(InterchangeStream::from_number(1), Ok(InterchangeStream::Legacy));
        assert_eq!(InterchangeStream::from_number(2), Ok(InterchangeStream::PerThread));
        assert_eq!(
            InterchangeStream::from_number(0x7f00_1234),
            Ok(InterchangeStream::Handle(RawStream(0x7f00_1234)))
        );
        for number in [0, -1, i64::MIN] {
            assert!(matches!(InterchangeStream::from_number(number), Err(DescriptorError::Stream { .. })));
        }
        for number in [1, 2, 3, i64::MAX] {
            assert_eq!(InterchangeStream::from_number(number).unwrap().number(), number);
        }
    }
}
