//! Borrowed host memory in asynchronous transfers (law 3).

use crate::{ArrayBase, MappedHost, PinnedHost, Storage, Stream, array::host::PinScope, key::Key, transfer};
use gpumem_core::{Backend, Element, NotRecorded, Result};
use ndarray::{ArrayViewMut, Dimension};
use std::{fmt, marker::PhantomData};

/// A scope in which borrowed host memory can be used by asynchronous transfers. Made by [`Stream::scope`], as threads
/// by [`std::thread::scope`]: it waits on every way out, and arrays borrowed for it stay borrowed until then.
pub struct Scope<'scope, 'env: 'scope, B: Backend> {
    stream: Stream<B>,
    id: u64,
    /// Dropped after the wait.
    locks: PinScope<B>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Waits at the end of the scope, also when its body panics.
struct Finish<'a, B: Backend> {
    stream: &'a Stream<B>,
    id: u64,
    /// The last submission index before the scope.
    before: u64,
    armed: bool,
}

impl<B: Backend> Finish<'_, B> {
    fn finish(&mut self) -> Result<()> {
        let timeline = self.stream.timeline();
        // In a forked child nothing lands: the transfers are the parent's, and so are the locks.
        if let Err(error) = transfer::check_release(&timeline.context, "scope") {
            self.armed = false;
            return Err(error);
        }
        let wait_outcome = timeline.finish();
        if wait_outcome.done {
            // The remaining copies cannot arrive any more: the device was reset meanwhile.
            timeline.copy_outs.abandon(self.id);
        } else {
            // The device may still write into the staging blocks; they are leaked, and no memory of the caller is
            // touched.
            timeline.copy_outs.leak(self.id);
        }
        // Only now: a wait that unwinds is made once more.
        self.armed = false;
        let lost = timeline.copy_outs.take_lost(self.id);
        let work = self.before + 1..=timeline.last_submission();
        let result = wait_outcome.result.and_then(|()| timeline.check_submissions(work));
        let result = result.and_then(|()| timeline.check("scope"));
        let result = result.and_then(|()| lost.map_or(Ok(()), Err));
        result.map_err(|error| error.in_operation("scope"))
    }
}

impl<B: Backend> Drop for Finish<'_, B> {
    fn drop(&mut self) {
        if self.armed
            && let Err(error) = self.finish()
        {
            self.stream.device().core().errors.push(error);
        }
    }
}

impl<B: Backend> Stream<B> {
    /// Runs `body` with a scope in which memory of the caller takes part in asynchronous transfers, and waits at its end,
    /// however it ends. This is Numba's `auto_synchronize`.
    ///
    /// ```no_run
    /// # fn example<B: gpumem_runtime::ToDevice<H, Elem = f32, Dim = ndarray::Ix1>, H: gpumem_core::Backend>(
    /// #     stream: &gpumem_runtime::Stream<H>, array: &gpumem_runtime::DeviceArray<f32, ndarray::Ix1, H>,
    /// # ) -> gpumem_core::Result<()> {
    /// let mut result = ndarray::Array1::zeros(array.len());
    /// stream.scope(|scope| scope.copy_to_host(array, result.view_mut()))??;
    /// // Here the elements have landed.
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) if work failed that has been enqueued on the stream
    /// since the scope began, by any thread. The value of `body` is lost then. Returns [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback.
    pub fn scope<'env, R>(
        &self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env, B>) -> R,
    ) -> Result<R> {
        run(self, body)
    }
}

fn run<'env, B: Backend, R>(
    stream: &Stream<B>,
    body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env, B>) -> R,
) -> Result<R> {
    gpumem_memory::may_block("scope")?;
    stream.timeline().check_for("scope", NotRecorded::Scope)?;
    let id = gpumem_memory::track::unique_id();
    let locks = PinScope::new(stream.device());
    let scope = Scope { stream: stream.clone(), id, locks, scope: PhantomData, env: PhantomData };
    let mut finish = Finish { stream, id, before: stream.submission_index(), armed: true };
    let value = body(&scope);
    let finished = finish.finish();
    // Other streams may have used the page-locked arrays.
    let released = scope.locks.release().map_err(|error| error.in_operation("scope"));
    finished.and(released)?;
    Ok(value)
}

impl<'scope, 'env, B: Backend> Scope<'scope, 'env, B> {
    /// Returns the stream, for operations that need no scope.
    pub fn stream(&self) -> &Stream<B> {
        &self.stream
    }

    /// The number that copy-outs of the scope carry.
    #[doc(hidden)]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The waits before borrowed arrays are returned.
    #[doc(hidden)]
    pub fn locks(&self, _: Key) -> &PinScope<B> {
        &self.locks
    }

    /// Copies an array into memory of the caller, in stream order. The elements have arrived when the stream has been
    /// waited for, at the latest when the scope ends.
    ///
    /// The downloads of a stream hold at most [`TransferOptions::scoped_staging_bytes`](crate::TransferOptions::scoped_staging_bytes)
    /// of staging memory. One that fits returns at once. Of a longer one all but the last part has arrived when the call
    /// returns, for which it waits for the work before it; and where the downloads before it hold the memory, it waits for
    /// those. For a copy of any length that does not wait, page-lock the array ([`pinned`](Self::pinned)).
    /// ```
    /// # use ndarray::Array1; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let (first, second) = (stream.to_device(&[1, 2])?, stream.to_device(&[3, 4])?);
    /// let mut host = [Array1::zeros(2), Array1::zeros(2)];
    /// let [a, b] = &mut host;
    /// stream.scope(|scope| {
    ///     scope.copy_to_host(&first, a)?;
    ///     scope.copy_to_host(&second, b)
    /// })??; // waits: both have landed
    /// assert_eq!(host[1].to_vec(), [3, 4]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ShapeMismatch`](gpumem_core::LayoutError::ShapeMismatch) if the shapes differ,
    /// [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if there is no staging memory, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure. A later failure is an error of the
    /// scope: of the copy, or of the work before it.
    pub fn copy_to_host<S, D>(
        &'scope self,
        source: &ArrayBase<S, D>,
        destination: impl Into<ArrayViewMut<'env, S::Elem, D>>,
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        D: Dimension,
    {
        let destination = destination.into().into_dyn();
        // SAFETY: the destination is borrowed for `'env`, which outlives the scope; the scope runs or drops its
        // copy-outs before it ends (`Finish`, also on a panic), and leaks them unrun where it cannot wait.
        unsafe {
            transfer::download_in_scope(
                self.stream.timeline(),
                "copy_to_host",
                self.id,
                source.place(),
                destination,
            )
        }
    }

    /// Page-locks an array of the caller until the scope ends, for truly asynchronous copies.
    /// ```
    /// # use ndarray::Array1; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let mut host = Array1::from_elem(1000, 2.0f32);
    /// let array = stream.scope(|scope| {
    ///     let pinned = scope.pinned(&mut host)?;
    ///     stream.to_device(&pinned) // asynchronous, without a staging block
    /// })??;
    /// assert_eq!(array.get(999)?, 2.0);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Device::pinned`](crate::Device::pinned).
    pub fn pinned<T: Element, D: Dimension>(
        &'scope self,
        array: impl Into<ArrayViewMut<'env, T, D>>,
    ) -> Result<PinnedHost<'scope, T, D, B>> {
        // SAFETY: the array is borrowed for `'env`; the locks are dropped with the scope, after the last use; the
        // result cannot leave the scope.
        unsafe { self.locks.add(self.stream.device(), "pinned", array.into(), false) }
    }

    /// Page-locks an array of the caller until the scope ends and gives it a device address.
    ///
    /// # Errors
    /// As for [`Device::mapped`](crate::Device::mapped).
    pub fn mapped<T: Element, D: Dimension>(
        &'scope self,
        array: impl Into<ArrayViewMut<'env, T, D>>,
    ) -> Result<MappedHost<'scope, T, D, B>> {
        // SAFETY: as in `pinned`.
        unsafe { self.locks.add(self.stream.device(), "mapped", array.into(), true) }
    }
}

impl<B: Backend> fmt::Debug for Scope<'_, '_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("stream", &self.stream).finish_non_exhaustive()
    }
}
