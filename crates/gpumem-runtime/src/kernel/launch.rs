//! Launching a kernel in stream order.

use super::arguments::{Arguments, Collected};
use crate::{Device, Stream, memory::Allocation, order::Access};
use gpumem_core::{Backend, Error, ErrorKind, LaunchDims, Result};
use gpumem_simt::Parameters;
use smallvec::SmallVec;
use std::{fmt, marker::PhantomData, sync::Arc};

/// A kernel of a device, with the parameters `P`. Cloning it is cheap and gives the same kernel.
///
/// Dropping it never waits: its program is unloaded when its last launch is done.
pub struct Kernel<P, B: Backend> {
    raw: B::Kernel,
    /// Owns the program as an array owns its memory: launches are uses.
    program: Arc<Allocation<B>>,
    name: Arc<str>,
    shared_bytes: usize,
    parameters: PhantomData<fn(P)>,
}

impl<P: Parameters, B: Backend> Kernel<P, B> {
    pub(super) fn new(device: &Device<B>, raw: B::Kernel, name: &str, shared_bytes: usize) -> Self {
        let program = Allocation::foreign(device, 0, 1, Box::new(raw.clone()));
        Self { raw, program, name: name.into(), shared_bytes, parameters: PhantomData }
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Enqueues the kernel: behind everything that conflicts with its arrays on any stream, as copies are. What it does
    /// wrong surfaces at the next wait, as [`AsynchronousFault`](ErrorKind::AsynchronousFault).
    ///
    /// ```no_run
    /// # use gpumem_runtime::{DeviceArray, Stream, kernel::{Kernel, Slice, SliceMut, cover}};
    /// # fn example<B: gpumem_core::Backend>(
    /// #     stream: &Stream<B>, saxpy: &Kernel<(Slice<f32>, SliceMut<f32>, f32), B>,
    /// #     x: &DeviceArray<f32, ndarray::Ix1, B>, y: &mut DeviceArray<f32, ndarray::Ix1, B>,
    /// # ) -> gpumem_core::Result<()> {
    /// saxpy.launch(stream, &cover([x.len(), 1, 1], [256, 1, 1]), (x, y, 2.5f32))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Sizes that the device does not have ([`InvalidArgument`](ErrorKind::InvalidArgument)); an array of another rank or
    /// device, or one that is not packed where a slice is wanted; of the driver. Nothing has been launched then.
    pub fn launch<A: Arguments<P, B>>(
        &self,
        stream: &Stream<B>,
        dims: &LaunchDims,
        arguments: A,
    ) -> Result<()> {
        let timeline = stream.timeline();
        if !self.program.core().is_same(&timeline.core) {
            let (has, wants) = (self.program.core().name(), timeline.core.name());
            return Err(Error::new(B::NAME, "launch", ErrorKind::WrongDevice { what: "kernel", has, wants }));
        }
        self.check_sizes(B::capabilities(&timeline.core.raw), dims)?;
        let mut collected = Collected { arguments: SmallVec::new(), accesses: SmallVec::new() };
        arguments.collect(&mut collected)?;
        for access in &collected.accesses {
            timeline.check_owns("launch", access.memory)?;
        }
        collected.accesses.push(Access::read(&self.program, 0..1));
        let values = &collected.arguments;
        timeline.submit("launch", &collected.accesses, |raw| {
            // SAFETY: the arguments are those of the kernel's declaration, and their memory is kept and ordered by the use
            // logs; what the kernel does within them was promised when it was declared.
            unsafe { B::launch(raw, &self.raw, dims, values) }
        })?;
        Ok(())
    }

    fn check_sizes(&self, has: &gpumem_core::Capabilities, dims: &LaunchDims) -> Result<()> {
        let refuse = |why| Err(Error::new(B::NAME, "launch", ErrorKind::InvalidArgument { why }));
        let within =
            |sizes: [u32; 3], limits: [u32; 3]| sizes.iter().zip(limits).all(|(size, most)| *size <= most);
        if dims.groups.contains(&0) || dims.group_size.contains(&0) {
            return refuse("a launch has at least one group and one work-item along every axis");
        }
        if !within(dims.groups, has.max_grid_dims) {
            return refuse("the launch has more groups along an axis than the device can have");
        }
        let items: u128 = dims.group_size.iter().map(|size| u128::from(*size)).product();
        if !within(dims.group_size, has.max_group_dims) || items > u128::from(has.max_group_size) {
            return refuse("the group has more work-items than the device can have");
        }
        if self.shared_bytes.saturating_add(dims.shared_bytes as usize) > has.shared_memory {
            return refuse("the group needs more shared memory than the device has");
        }
        Ok(())
    }
}

impl<P, B: Backend> Clone for Kernel<P, B> {
    fn clone(&self) -> Self {
        Self {
            raw: self.raw.clone(),
            program: self.program.clone(),
            name: self.name.clone(),
            shared_bytes: self.shared_bytes,
            parameters: PhantomData,
        }
    }
}

impl<P, B: Backend> fmt::Debug for Kernel<P, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name).finish_non_exhaustive()
    }
}
