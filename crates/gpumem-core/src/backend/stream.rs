//! Queues of work.

use super::{Backend, CaptureStart, ExecutableGraph, GraphNode, HINTS, lacks};
use crate::{
    CopyRegion, Failure, Fill, HostFuture, KernelArguments, LaunchConfig, Location, MemoryUse, POISONED,
    RawStream, Result, StridedCopy,
};
use std::{fmt::Debug, sync::Arc};

const FUTURES: &str = "futures of the host as work of a stream";

/// A queue of work on one device. Work that is enqueued on one stream runs in order.
///
/// Only waits and queries may run the host body of a kernel on the calling thread: in other calls the caller holds locks, which the
/// body may ask for.
///
/// # Safety
/// * When a wait or a query says that the work is done, or answers with [`AsynchronousFault`](crate::ErrorKind::AsynchronousFault) or
///   [`DeviceLost`](crate::ErrorKind::DeviceLost), none of it uses memory any more.
/// * Work uses only the memory of its arguments, and runs after that which was enqueued before it. An event that another
///   stream [waits](Self::wait) for holds back all later work of that stream.
pub unsafe trait Stream<B: Backend>: Debug + Send + Sync + Sized + 'static {
    /// Waits until everything that has been enqueued so far is done.
    ///
    /// # Errors
    /// Returns the failure of the work itself (a fault of a kernel), as far as the driver reports it here.
    fn synchronize(&self) -> Result<()>;

    /// Whether everything that has been enqueued so far is done. Never blocks.
    ///
    /// # Errors
    /// As for [`synchronize`](Self::synchronize). Work that is not done is `Ok(false)` and no error.
    fn query(&self) -> Result<bool>;

    /// The driver's handle, for others: they may capture the stream from now on.
    fn raw(&self) -> RawStream;

    /// The driver's handle, for a call that leaves the stream as it is. By default that of [`raw`](Self::raw).
    fn lent(&self) -> RawStream {
        self.raw()
    }

    /// A number that no other stream of the process has or had, which a handle may. `None`, the default, where the driver has none.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn unique_id(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Destroys a stream that [`create_stream`](crate::DriverDevice::create_stream) made; one that was wrapped is only
    /// forgotten. Work that is still enqueued runs to its end. Dropping a stream instead does the same and keeps errors
    /// to itself.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn destroy(self) -> Result<()>;

    /// Enqueues a copy.
    ///
    /// # Safety
    /// * Both sides are valid for the whole region until the copy is done, and other uses of them are ordered with it.
    /// * The region obeys the rules of [`CopyRegion`].
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure. Nothing is being read or written
    /// after an error.
    unsafe fn copy(&self, region: &CopyRegion) -> Result<()>;

    /// Copies at once, on the calling thread, where the backend can do that and everything that was enqueued on the
    /// stream is done. Asked only where [`Capabilities::pageable_direct`](crate::Capabilities::pageable_direct) says
    /// that the host's own memory takes part in copies, for copies that the caller would wait for: enqueuing a short
    /// one and waiting for it costs more than copying it.
    ///
    /// `false`, the default, means that nothing was copied and nothing has changed: the caller enqueues the copy
    /// instead, and that call reports errors. So an implementation *should* return `false` when in doubt.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy), and no other code uses either side during the call.
    unsafe fn try_copy_sync(&self, region: &CopyRegion) -> bool {
        let _ = region;
        false
    }

    /// Enqueues a copy between any two layouts in memory that the stream's device can reach.
    /// Only where [`Capabilities::strided_copy`](crate::Capabilities::strided_copy) says so.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy), with the rules of [`StridedCopy`].
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) by default.
    unsafe fn copy_strided(&self, copy: &StridedCopy) -> Result<()> {
        let _ = copy;
        lacks::<B, _>("copy_strided", "copies of any layout")
    }

    /// Enqueues a fill.
    ///
    /// # Safety
    /// The rows are valid for writes until the fill is done, and other uses of them are ordered with it.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    unsafe fn fill(&self, fill: &Fill) -> Result<()>;

    /// Enqueues the movement of managed memory.
    ///
    /// # Safety
    /// The range lies in one live managed buffer until the movement is done.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) if there is no such hint, and by default.
    unsafe fn prefetch(&self, address: u64, bytes: usize, to: Location) -> Result<()> {
        let _ = (address, bytes, to);
        lacks::<B, _>("prefetch", HINTS)
    }

    /// Enqueues a future of the host. It is polled once its turn in the stream has come, and again when it was woken;
    /// later work of the stream runs when it is ready. No thread may wait for it meanwhile.
    /// Only where [`Capabilities::futures`](crate::Capabilities::futures) says so.
    ///
    /// # Safety
    /// * All memory that the future uses is valid until it is ready or dropped, and other uses of it are ordered with it.
    /// * If it ends well, it has written all bytes that [`current_uses`](crate::current_uses) names as written.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) by default.
    unsafe fn enqueue_future(&self, future: HostFuture) -> Result<()> {
        let _ = future;
        lacks::<B, _>("enqueue_future", FUTURES)
    }

    /// Notes in [`POISONED`] that these bytes are torn: a call of the host failed after it had enqueued a part of its work. A backend
    /// that [clears](crate::PoisonTable::clear) bytes when work is done, and not when it is enqueued, *must* enqueue this: earlier
    /// work would clear them otherwise. It is no failure of the stream. The default notes them at once.
    ///
    /// # Safety
    /// The bytes of each use belong to its owner, and other uses of them are ordered with this as with a write.
    ///
    /// # Errors
    /// Returns [`DeviceLost`](crate::ErrorKind::DeviceLost) if nothing can be enqueued any more. Nothing has been noted then.
    unsafe fn poison(&self, torn: &[MemoryUse], failure: &Arc<Failure>) -> Result<()> {
        // SAFETY: the caller's promise.
        torn.iter().for_each(|used| unsafe { POISONED.poison(used, failure) });
        Ok(())
    }

    /// Whether the stream's work is being captured into a graph instead of run. False by default.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn is_capturing(&self) -> Result<bool> {
        Ok(false)
    }

    /// Begins to capture what is enqueued on the stream, which runs none of it, until [`end_capture`](Self::end_capture) is called
    /// on the same thread. The runtime captures streams that it has made for that, and enqueues copies, fills and launches, each with the
    /// [bytes that it uses](crate::with_uses) and [its node](crate::MemoryUses::node).
    /// Refused by default: the backend has no graphs.
    ///
    /// # Safety
    /// Until the capture ends, no work is enqueued on the stream, through this or another handle of its queue, that its caller
    /// relies on to run.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    unsafe fn begin_capture(&self) -> Result<CaptureStart> {
        Ok(CaptureStart::Refused("the backend makes no graphs of a driver"))
    }

    /// The call that has been captured last.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) by default, and [`Driver`](crate::ErrorKind::Driver) if the driver
    /// reports a failure.
    fn captured_node(&self) -> Result<GraphNode> {
        lacks::<B, _>("captured_node", "graphs")
    }

    /// Ends the capture. Returns what was captured. `changes` says whether [launches of it are replaced](ExecutableGraph::set_launch)
    /// later.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) by default, and [`Driver`](crate::ErrorKind::Driver) if the driver
    /// reports a failure. The capture has ended then, too.
    fn end_capture(&self, changes: bool) -> Result<Box<dyn ExecutableGraph<B>>> {
        let _ = changes;
        lacks::<B, _>("end_capture", "graphs")
    }

    /// Records the event after all work submitted to the stream so far. The event is one of the stream's own
    /// device.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn record(&self, event: &B::Event) -> Result<()>;

    /// Makes all future work on the stream wait for the event. Works across devices.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn wait(&self, event: &B::Event) -> Result<()>;

    /// Enqueues a kernel.
    ///
    /// # Safety
    /// * The arguments match the kernel's signature.
    /// * All memory that it reaches is valid until it is done, and other uses of it are ordered with it.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for sizes that the device does not have.
    unsafe fn launch(
        &self,
        kernel: &B::Kernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()>;
}
