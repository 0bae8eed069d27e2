//! Handles of the recordings of graphs.

use gpumem_runtime::internal::Key;

// SAFETY: this is a crate of gpumem, and only looks behind handles.
pub(crate) const KEY: Key = unsafe { Key::new() };

/// Whether a stream is one of the body of a graph.
pub(crate) fn is_recorded(stream: &gpumem::Stream) -> bool {
    stream.timeline_by(KEY).is_recording()
}

/// The device as a handle that may be kept beyond the body of a graph.
pub(crate) fn outside(device: &gpumem::Device) -> gpumem::Device {
    device.outside_recording_by(KEY)
}
