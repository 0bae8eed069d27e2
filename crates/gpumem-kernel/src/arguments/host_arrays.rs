//! Arrays of the host as arguments: each states its direction, and moves only that way.

use super::{Argument, ArgumentCollector, ScopedArgument, sealed::SealedArgument};
use crate::{Own, OwnView, Slice, SliceMut, View, ViewMut};
use gpumem_core::{Backend, DriverDevice, Element, Error, LayoutError, NotRecorded, Result};
use gpumem_runtime::{
    ArrayBase, CudaArrayDestination, CudaArraySource, Device, FromDevice, HostArray, HostKind, Layout, Order,
    Scalar, Scope, Source, Storage, Stream, ToDevice,
    internal::{
        Access, Allocation, AllocationRef, ArrayRef, InPlace, PinScope, Timeline, Upload, WriteBack, abort,
        check_writable, fill_zeros, may_block,
    },
};
use ndarray::{ArrayViewMut, Dimension};
use smallvec::SmallVec;
use std::{fmt, sync::Arc};

const OPERATION: &str = "launch";

/// An array of the host that a kernel reads: its elements are copied to the device before the launch.
///
/// Takes what [`to_device`](Device::to_device) takes, by reference, or as a view by value: arrays and views of ndarray
/// of any layout, slices, vectors, the library's own host arrays, [`cuda_array`](gpumem_runtime::cuda_array) objects.
/// Arrays that have an address for the device (mapped, managed and registered arrays, device arrays, CUDA arrays of the
/// same device) are used in place, without a copy.
#[derive(Debug, Clone, Copy)]
pub struct In<S>(
    /// Where the elements come from.
    pub S,
);

/// An array of the host that a kernel writes: its elements are copied back after the launch, and not to the device
/// before it. Elements that the kernel does not write come back as zeros.
///
/// Takes `&mut` of what [`FromDevice`] is implemented for, or a mutable view by value. Arrays that have an address for
/// the device are used in place; elements that the kernel does not write keep their values there.
#[derive(Debug)]
pub struct Out<S>(
    /// Where the elements go to.
    pub S,
);

/// An array of the host that a kernel reads and writes: [`In`] and [`Out`] together.
#[derive(Debug)]
pub struct InOut<S>(
    /// Where the elements come from and go to.
    pub S,
);

/// The arrays of the host of one launch.
pub(crate) struct HostArrays<'a, B: Backend> {
    stream: &'a Stream<B>,
    /// The waits of the launch's scope, and the scope's number. A type of its own, so that a launch writes it in whole
    /// words.
    locks: Option<&'a PinScope<B>>,
    scope_id: u64,
    /// `None` while there are none: most launches have none and pay for nothing.
    moved: Option<Box<HostTransfers<'a, B>>>,
}

/// The copies for a launch.
struct HostTransfers<'a, B: Backend> {
    /// The memory that the kernel uses: copies of host arrays, or the arrays in place.
    used: Vec<Used<B>>,
    arrivals: Vec<Arrival<'a, B>>,
    /// Memory of objects that are only borrowed: waited for before the launch returns, or by the scope.
    borrowed: Vec<AllocationRef<B>>,
}

struct Used<B: Backend> {
    memory: AllocationRef<B>,
    layout: Layout,
    write: bool,
}

/// Copies the results to their arrays, as [`Destination::copy_from`](gpumem_runtime::Destination).
type Arrival<'a, B> = Box<dyn FnOnce(&Arrivals<'_, B>) -> Result<(u64, Option<AllocationRef<B>>)> + 'a>;

struct Arrivals<'a, B: Backend> {
    device: &'a Device<B>,
    timeline: &'a Arc<Timeline<B>>,
    write_back: WriteBack,
}

/// The form in which a kernel wants an array.
#[derive(Clone, Copy)]
enum Form {
    /// Packed, row by row.
    Slice,
    /// Of that many axes.
    View(usize),
}

impl Form {
    fn check(self, layout: &Layout) -> Result<()> {
        match self {
            Form::View(expected) if layout.ndim() != expected => {
                let error = LayoutError::RankMismatch { found: layout.ndim(), expected };
                Err(Error::new("", OPERATION, error))
            }
            _ => Ok(()),
        }
    }

    fn takes(self, layout: &Layout) -> bool {
        matches!(self, Form::View(_)) || layout.is_c_contiguous()
    }

    fn of(self, layout: &Layout) -> Result<Layout, LayoutError> {
        match self {
            Form::Slice => Layout::packed(layout.shape(), layout.item(), Order::C),
            Form::View(_) => Ok(layout.like()),
        }
    }
}

impl<'a, B: Backend> HostArrays<'a, B> {
    /// For a launch that is waited for if there are any.
    #[inline]
    pub(crate) fn waiting(stream: &'a Stream<B>) -> Self {
        Self { stream, locks: None, scope_id: 0, moved: None }
    }

    /// For a launch that a scope waits for.
    pub(crate) fn in_scope(scope: &'a Scope<'_, '_, B>) -> Self {
        Self {
            stream: scope.stream(),
            locks: Some(scope.locks(crate::KEY)),
            scope_id: scope.id(),
            moved: None,
        }
    }

    pub(crate) fn device(&self) -> &'a Device<B> {
        self.stream.device()
    }

    pub(crate) fn timeline(&self) -> &'a Arc<Timeline<B>> {
        self.stream.timeline_by(crate::KEY)
    }

    /// The number of the scope, and its waits.
    fn scope(&self) -> Option<(u64, &'a PinScope<B>)> {
        self.locks.map(|locks| (self.scope_id, locks))
    }

    fn moved(&mut self) -> &mut HostTransfers<'a, B> {
        self.moved.get_or_insert_with(|| {
            Box::new(HostTransfers { used: Vec::new(), arrivals: Vec::new(), borrowed: Vec::new() })
        })
    }

    /// How elements go to the device: the caller waits for the launch anyway, and a host device copies them at once.
    fn upload(&self) -> Upload {
        let at_once = self.timeline().context.raw.capabilities().pageable_direct;
        if self.locks.is_none() && at_once { Upload::Blocking } else { Upload::Staged }
    }

    fn begin(&mut self) -> Result<()> {
        self.moved();
        if self.locks.is_none() {
            may_block(OPERATION)?;
        }
        self.timeline().check_for(OPERATION, NotRecorded::HostArguments)
    }

    /// The elements where they lie, if the kernel can use them there.
    fn in_place<T: Element, D: Dimension>(
        &mut self,
        source: &Source<'_, T, D, B>,
        form: Form,
    ) -> Result<Option<InPlace<B>>> {
        form.check(&source.layout(OPERATION)?)?;
        let found = source.in_place(crate::KEY, self.timeline(), self.device(), OPERATION)?;
        let found = found.filter(|place| form.takes(&place.layout));
        if let Some(InPlace { memory, borrowed: true, .. }) = &found {
            self.borrow(memory);
        }
        Ok(found)
    }

    fn borrow(&mut self, memory: &AllocationRef<B>) {
        match self.locks {
            Some(locks) => locks.keep(memory),
            None => self.moved().borrowed.push(memory.clone()),
        }
    }

    /// Memory of the device for elements of that layout.
    fn stand_in<T: Element>(&self, layout: &Layout, form: Form) -> Result<(AllocationRef<B>, Layout)> {
        let layout = form.of(layout).map_err(|error| Error::new("", OPERATION, error))?;
        let align = self.device().capabilities().allocation_alignment.max(align_of::<T>());
        let bytes = layout.packed_bytes();
        let memory = Allocation::new_by(crate::KEY, self.device(), OPERATION, bytes, align)?;
        Ok((memory, layout))
    }

    fn read<T: Element, D: Dimension>(&mut self, source: &Source<'_, T, D, B>, form: Form) -> Result<usize> {
        self.begin()?;
        let (memory, layout) = match self.in_place(source, form)? {
            Some(InPlace { memory, layout, .. }) => (memory, layout),
            None => self.brought(source, form)?,
        };
        Ok(self.use_it(Used { memory, layout, write: false }))
    }

    fn brought<T: Element, D: Dimension>(
        &self,
        source: &Source<'_, T, D, B>,
        form: Form,
    ) -> Result<(AllocationRef<B>, Layout)> {
        let (memory, layout) = self.stand_in::<T>(&source.layout(OPERATION)?, form)?;
        source.copy_to(self.timeline(), OPERATION, ArrayRef::new(&memory, &layout), self.upload())?;
        Ok((memory, layout))
    }

    fn written<S: FromDevice<B>>(&mut self, target: &'a mut S, form: Form, brings: bool) -> Result<usize> {
        self.begin()?;
        // Asked once, so that the checked array is the written one.
        let destination = target.destination();
        let source = destination.as_source();
        if let Some(InPlace { memory, layout, read_only, .. }) = self.in_place(&source, form)? {
            check_writable(&self.timeline().context, OPERATION, &layout, read_only)?;
            return Ok(self.use_it(Used { memory, layout, write: true }));
        }
        destination.check(self.device(), OPERATION)?;
        let (memory, layout) = if brings {
            self.brought(&source, form)?
        } else {
            let (memory, layout) = self.stand_in::<S::Elem>(&source.layout(OPERATION)?, form)?;
            // Elements that the kernel leaves out must not show the memory's earlier contents.
            fill_zeros(self.timeline(), OPERATION, ArrayRef::new(&memory, &layout))?;
            (memory, layout)
        };
        drop(source);
        let (from, from_layout) = (memory.clone(), layout.clone());
        self.moved().arrivals.push(Box::new(move |arrivals| {
            let Arrivals { device, timeline, write_back } = arrivals;
            let source = ArrayRef::new(&from, &from_layout);
            // SAFETY: in a scope, the destination is borrowed for `'env` (`ScopedArgument`), which outlives it; the scope runs,
            // drops or leaks its copy-outs before it ends. The borrowed memory is handed on to be waited for.
            unsafe { destination.copy_from(timeline, OPERATION, source, device, *write_back) }
        }));
        Ok(self.use_it(Used { memory, layout, write: true }))
    }

    fn use_it(&mut self, used: Used<B>) -> usize {
        let all = &mut self.moved().used;
        all.push(used);
        all.len() - 1
    }

    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.moved.is_none()
    }

    /// Launches with `submit`, which gets all uses of memory, and copies results back afterwards.
    pub(crate) fn launch(
        &mut self,
        accesses: &[Access<'_, B>],
        submit: impl FnOnce(&[Access<'_, B>]) -> Result<u64>,
    ) -> Result<()> {
        match self.moved.take() {
            None => submit(accesses).map(|_| ()),
            Some(moved) => self.launch_with(*moved, accesses, submit),
        }
    }

    fn launch_with(
        &mut self,
        moved: HostTransfers<'a, B>,
        accesses: &[Access<'_, B>],
        submit: impl FnOnce(&[Access<'_, B>]) -> Result<u64>,
    ) -> Result<()> {
        let (device, timeline, scope) = (self.device(), self.timeline(), self.scope());
        let HostTransfers { used, arrivals, mut borrowed } = moved;
        let mut all: SmallVec<[Access<'_, B>; 8]> = accesses.iter().cloned().collect();
        for Used { memory, layout, write } in used.iter().filter(|used| !used.layout.is_empty()) {
            all.push(ArrayRef::new(memory, layout).access(*write));
        }
        let launched = submit(&all);
        let write_back = scope.map_or(WriteBack::Now, |(id, _)| WriteBack::InScope(id));
        let arrive = || -> Result<SmallVec<[u64; 4]>> {
            let last = launched?;
            let mut submissions = SmallVec::new();
            if scope.is_none() {
                // Nothing comes back of a kernel that failed.
                settle(timeline, last)?;
            }
            for arrival in arrivals {
                let (submission, memory) = arrival(&Arrivals { device, timeline, write_back })?;
                submissions.push(submission);
                match (memory, scope) {
                    (Some(memory), Some((_, locks))) => locks.keep(&memory),
                    (Some(memory), None) => borrowed.push(memory),
                    (None, _) => {}
                }
            }
            Ok(submissions)
        };
        let arrived = arrive();
        if scope.is_some() {
            return arrived.map(|_| ());
        }
        // The last one first: the others are over then.
        let settle_all = |submissions: SmallVec<[u64; 4]>| {
            submissions.into_iter().rev().try_for_each(|submission| settle(timeline, submission))
        };
        let waited = arrived.and_then(settle_all);
        for memory in borrowed {
            let settled = memory.wait_until_unused();
            if !settled.done {
                // Law 3: the device may still be using memory that is about to go back to its owner.
                abort(OPERATION, settled.result);
            }
        }
        waited
    }
}

fn settle<B: Backend>(timeline: &Timeline<B>, submission: u64) -> Result<()> {
    timeline.wait_host(submission).result.map_err(|error| error.in_operation(OPERATION))
}

impl<B: Backend> ArgumentCollector<'_, B> {
    /// The bytes of the argument for the array of that number.
    fn of_used(&mut self, number: usize, form: Form) -> Result<()> {
        let used = self.host.moved.as_ref().and_then(|moved| moved.used.get(number));
        let Some(Used { memory, layout, .. }) = used else { return Ok(()) };
        let address = memory.address().wrapping_add(layout.offset() as u64);
        match form {
            Form::Slice => {
                self.slice_words(address, layout.len());
                Ok(())
            }
            Form::View(_) => {
                let layout = layout.clone();
                self.view_bytes(address, &layout)
            }
        }
    }
}

impl<S> SealedArgument for In<S> {}
impl<S> SealedArgument for Out<S> {}
impl<S> SealedArgument for InOut<S> {}

// The launch uses the described memory until it is over, so the description must be borrowed for `'env`: by value, it
// would be dropped when the call returns.
impl<'env, S: ?Sized> ScopedArgument<'env> for In<&'env S> {}
impl<'env, S: ?Sized> ScopedArgument<'env> for In<&'env mut S> {}
impl<'env, T, D> ScopedArgument<'env> for In<CudaArraySource<'env, T, D>> {}
// Ordinary memory has been read when the launch returns, and memory of the library is kept by its access log.
impl<S: ndarray::RawData, D> ScopedArgument<'_> for In<ndarray::ArrayBase<S, D>> {}
impl<T> ScopedArgument<'_> for In<Vec<T>> {}
impl<T, const N: usize> ScopedArgument<'_> for In<[T; N]> {}
impl<T> ScopedArgument<'_> for In<Scalar<T>> {}
impl<S: Storage, D: Dimension> ScopedArgument<'_> for In<ArrayBase<S, D>> {}
impl<K: HostKind, T: Element, D: Dimension, B: Backend> ScopedArgument<'_> for In<HostArray<K, T, D, B>> {}
// Memory that is written later must be borrowed: by value, it would be gone.
impl<'env, S: ?Sized> ScopedArgument<'env> for Out<&'env mut S> {}
impl<'env, S: ?Sized> ScopedArgument<'env> for InOut<&'env mut S> {}
impl<'env, T, D> ScopedArgument<'env> for Out<ArrayViewMut<'env, T, D>> {}
impl<'env, T, D> ScopedArgument<'env> for InOut<ArrayViewMut<'env, T, D>> {}
impl<'env, T, D> ScopedArgument<'env> for Out<CudaArrayDestination<'env, T, D>> {}
impl<'env, T, D> ScopedArgument<'env> for InOut<CudaArrayDestination<'env, T, D>> {}

impl<T: Element, B: Backend, S: ToDevice<B, Elem = T>> Argument<Slice<T>, B> for In<S> {
    fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, B>) -> Result<()> {
        let number = to.host.read(&self.0.source(), Form::Slice)?;
        to.of_used(number, Form::Slice)
    }
}

impl<T: Element, const N: usize, B: Backend, S: ToDevice<B, Elem = T>> Argument<View<T, N>, B> for In<S> {
    fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, B>) -> Result<()> {
        let number = to.host.read(&self.0.source(), Form::View(N))?;
        to.of_used(number, Form::View(N))
    }
}

macro_rules! written {
    ($($direction:ident $slice:ident $view:ident, $brings:literal;)*) => {$(
        impl<T: Element, B: Backend, S: FromDevice<B, Elem = T>> Argument<$slice<T>, B> for $direction<S> {
            fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, B>) -> Result<()> {
                let number = to.host.written(&mut self.0, Form::Slice, $brings)?;
                to.of_used(number, Form::Slice)
            }
        }

        impl<T: Element, const N: usize, B: Backend, S: FromDevice<B, Elem = T>> Argument<$view<T, N>, B>
            for $direction<S>
        {
            fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, B>) -> Result<()> {
                let number = to.host.written(&mut self.0, Form::View(N), $brings)?;
                to.of_used(number, Form::View(N))
            }
        }
    )*};
}
written! {
    Out SliceMut ViewMut, false;
    InOut SliceMut ViewMut, true;
    Out Own OwnView, false;
    InOut Own OwnView, true;
}

impl<B: Backend> fmt::Debug for HostArrays<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.moved.as_ref().map_or(0, |moved| moved.used.len());
        f.debug_struct("HostArrays").field("used", &used).finish_non_exhaustive()
    }
}
