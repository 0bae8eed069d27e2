//! What the host does on a stream.

use crate::copy::{StridedPlan, extent_of_fill};
use crate::engine::{Command, Pending, Torn, Work, is_inside};
use crate::error::{error, invalid};
use crate::inject::Operation;
use crate::sync::lock;
use crate::{Event, Host, Kernel, NAME, Stream, graph};
use gpumem_core::{
    CaptureStart, CopyRegion, DriverDevice, ErrorKind, ExecutableGraph, Failure, Fill, GraphNode, HostFuture,
    KernelArguments, LaunchConfig, Location, MemoryUse, RawStream, Result, StridedCopy,
};
use std::sync::Arc;

/// Times the limit for brief commands: the longest copy that is done at once where the caller waits for it.
const AT_ONCE: usize = 8;

// SAFETY: the engine runs the commands of a queue in order, and the queue counts finished commands only.
unsafe impl gpumem_core::Stream<Host> for Stream {
    fn synchronize(&self) -> Result<()> {
        let name = "stream synchronize";
        let engine = &self.queue().engine;
        engine.origin().check(NAME, name)?;
        let (target, told) = (lock(&self.queue().state).enqueued, self.queue().failed.told());
        engine.counters().synchronizations.up();
        if is_inside(self.queue().id) {
            return Err(error(name, ErrorKind::BlockingInCallback));
        }
        self.queue().wait_until(target);
        // Wait first, report after.
        engine.strike(name, Operation::Synchronize)?;
        self.queue().admit(name)?;
        match self.queue().failed.tell(told, target) {
            Some(error) => Err(error.in_operation(name)),
            None => Ok(()),
        }
    }

    fn query(&self) -> Result<bool> {
        let name = "stream query";
        let engine = &self.queue().engine;
        engine.origin().check(NAME, name)?;
        match self.queue().admit(name) {
            Err(error) if !error.is_device_lost() => return Err(error),
            _ => {}
        }
        let target = lock(&self.queue().state).enqueued;
        // A lost device may still run a kernel: look first, report after.
        if !self.queue().poll(target) {
            return Ok(false);
        }
        engine.strike(name, Operation::Query)?;
        self.queue().admit(name)?;
        match self.queue().failed.untold(target) {
            Some(error) => Err(error.in_operation(name)),
            None => Ok(true),
        }
    }

    fn raw(&self) -> RawStream {
        RawStream(self.queue().id)
    }

    fn unique_id(&self) -> Result<Option<u64>> {
        Ok(Some(self.queue().id))
    }

    fn destroy(self) -> Result<()> {
        self.queue().engine.enter("destroy_stream", Operation::DestroyStream)
    }

    unsafe fn copy(&self, region: &CopyRegion) -> Result<()> {
        self.submit(("copy", Operation::Copy), |_| {
            let bytes = region.total_bytes().filter(|bytes| *bytes > 0);
            let sides = [&region.source, &region.destination].map(|side| region.extent(side));
            let (Some(_), [Some(_), Some(_)]) = (bytes, sides) else {
                return Err(invalid("copy", "the region is empty or runs over the end of the address space"));
            };
            Ok(Work::Copy(*region))
        })
    }

    unsafe fn try_copy_sync(&self, region: &CopyRegion) -> bool {
        let engine = &self.queue().engine;
        // The caller waits in any case; longer copies only must not keep others from enqueuing.
        let limit = engine.brief_bytes().saturating_mul(AT_ONCE);
        let brief = region.total_bytes().filter(|bytes| (1..=limit).contains(bytes));
        // Injected failures take the ordinary way. SAFETY: the caller upholds the conditions of `copy`.
        brief.is_some_and(|bytes| engine.is_plain() && unsafe { self.queue().try_copy_sync(region, bytes) })
    }

    unsafe fn copy_strided(&self, copy: &StridedCopy) -> Result<()> {
        let plan = StridedPlan::new(copy).map_err(|why| invalid("copy_strided", why))?;
        let Some(plan) = plan else {
            return self.queue().engine.enter("copy_strided", Operation::CopyStrided);
        };
        self.submit(("copy_strided", Operation::CopyStrided), |_| Ok(Work::Strided(Box::new(plan))))
    }

    unsafe fn fill(&self, fill: &Fill) -> Result<()> {
        self.submit(("fill", Operation::Fill), |_| {
            let empty = fill.count == 0 || fill.rows == 0;
            if empty || extent_of_fill(fill).is_none() {
                return Err(invalid("fill", "the fill is empty or runs over the end of the address space"));
            }
            let item = fill.pattern.bytes();
            let aligned = fill.address.is_multiple_of(item as u64);
            if !aligned || (fill.rows > 1 && !fill.pitch.is_multiple_of(item)) {
                return Err(invalid("fill", "the address or the pitch is not a multiple of the pattern"));
            }
            Ok(Work::Fill(*fill))
        })
    }

    unsafe fn prefetch(&self, address: u64, bytes: usize, _: Location) -> Result<()> {
        self.submit(("prefetch", Operation::Prefetch), |_| Ok(Work::Touch { address, bytes }))
    }

    unsafe fn enqueue_future(&self, future: HostFuture) -> Result<()> {
        self.submit_command(("enqueue_future", Operation::Future), |_| {
            Ok(Command::Future(Box::new(Pending::new(future))))
        })
    }

    unsafe fn poison(&self, torn: &[MemoryUse], failure: &Arc<Failure>) -> Result<()> {
        let name = "poison";
        self.queue().engine.origin().check(NAME, name)?;
        // SAFETY: the caller's promise.
        let torn = unsafe { Torn::new(torn, failure) };
        self.queue().enqueue(name, Command::Poison(Box::new(torn))).map(drop)
    }

    fn record(&self, event: &Event) -> Result<()> {
        event.record(self)
    }

    fn wait(&self, event: &Event) -> Result<()> {
        event.hold_back(self)
    }

    unsafe fn launch(&self, kernel: &Kernel, dims: &LaunchConfig, arguments: &KernelArguments) -> Result<()> {
        self.submit(("launch", Operation::Launch), |engine| {
            kernel.work(engine, self.device().capabilities(), dims, arguments)
        })
    }

    fn is_capturing(&self) -> Result<bool> {
        self.queue().is_captured("is_capturing")
    }

    unsafe fn begin_capture(&self) -> Result<CaptureStart> {
        let name = "begin_capture";
        self.queue().engine.origin().check(NAME, name)?;
        self.queue().admit(name)?;
        self.queue().begin_capture();
        Ok(CaptureStart::Begun)
    }

    fn captured_node(&self) -> Result<GraphNode> {
        graph::captured_node(self)
    }

    fn end_capture(&self, _: bool) -> Result<Box<dyn ExecutableGraph<Host>>> {
        graph::end(self)
    }
}
