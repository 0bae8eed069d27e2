//! What holds an allocation: a shared value with one count.
//!
//! As `Arc` without weak references. Every array that is made and dropped pays for its handle, nearly always the only one: a
//! handle that is alone sees so with a load, and lets go without a locked instruction, where `Arc` needs two. And the place
//! of the value that a thread has dropped last is kept for the next one that it makes.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    cell::Cell,
    fmt,
    marker::PhantomData,
    mem,
    ops::Deref,
    ptr::NonNull,
    sync::atomic::{AtomicUsize, Ordering},
};

/// A handle of a shared value.
pub(crate) struct IntrusiveArc<T> {
    inner: NonNull<ArcInner<T>>,
    marker: PhantomData<ArcInner<T>>,
}

struct ArcInner<T> {
    handles: AtomicUsize,
    value: T,
}

// SAFETY: handles of different threads share the value, and the last one of them drops it wherever it is.
unsafe impl<T: Send + Sync> Send for IntrusiveArc<T> {}
// SAFETY: as above: a handle can be cloned through a reference to it.
unsafe impl<T: Send + Sync> Sync for IntrusiveArc<T> {}

impl<T> IntrusiveArc<T> {
    pub(crate) fn new(value: T) -> Self {
        let slot: UninitArc<T> = UninitArc::new();
        // SAFETY: a place for a value, which is written.
        unsafe {
            slot.value().write(value);
            slot.fill()
        }
    }

    fn inner(&self) -> &ArcInner<T> {
        // SAFETY: the value lives as long as a handle.
        unsafe { self.inner.as_ref() }
    }

    /// Whether there is no other handle, and what others did with theirs is seen.
    #[inline]
    fn is_alone(&self) -> bool {
        self.inner().handles.load(Ordering::Acquire) == 1
    }

    /// Whether this is the only handle.
    pub(crate) fn is_only_handle(&self) -> bool {
        self.is_alone()
    }

    /// The value, if there is no other handle.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: only this handle leads to the value, and it is borrowed as long as the result.
        self.is_alone().then(|| unsafe { &mut (*self.inner.as_ptr()).value })
    }

    /// Takes the value out.
    ///
    /// # Errors
    /// The handle, if there are others.
    pub(crate) fn try_unwrap(self) -> Result<T, Self> {
        if !self.is_alone() {
            return Err(self);
        }
        let inner = self.inner;
        mem::forget(self);
        // SAFETY: there is no other reference to the value. It is moved out, and its place given up.
        unsafe {
            let value = (&raw const (*inner.as_ptr()).value).read();
            give_up(inner.cast(), Layout::new::<ArcInner<T>>());
            Ok(value)
        }
    }

    /// Drops the value.
    ///
    /// # Safety
    /// This is the last handle, and is not used again.
    #[inline]
    unsafe fn end(&mut self) {
        // SAFETY: passed on to the caller.
        unsafe {
            (&raw mut (*self.inner.as_ptr()).value).drop_in_place();
            give_up(self.inner.cast(), Layout::new::<ArcInner<T>>());
        }
    }
}

/// A place for a value that is written where it stays: one that is put together elsewhere and moved costs more than a pool
/// does.
pub(crate) struct UninitArc<T>(NonNull<ArcInner<T>>);

impl<T> UninitArc<T> {
    #[inline]
    pub(crate) fn new() -> Self {
        let inner: NonNull<ArcInner<T>> = allocate(Layout::new::<ArcInner<T>>()).cast();
        // SAFETY: a new place of that size and alignment; the pointer is to its field.
        unsafe { (&raw mut (*inner.as_ptr()).handles).write(AtomicUsize::new(1)) };
        Self(inner)
    }

    /// Where the value belongs.
    #[inline]
    pub(crate) fn value(&self) -> *mut T {
        // SAFETY: the place is large enough; only an address is taken.
        unsafe { &raw mut (*self.0.as_ptr()).value }
    }

    /// The first handle of the value.
    ///
    /// # Safety
    /// The value has been written.
    #[inline]
    pub(crate) unsafe fn fill(self) -> IntrusiveArc<T> {
        let inner = self.0;
        mem::forget(self);
        IntrusiveArc { inner, marker: PhantomData }
    }
}

impl<T> Drop for UninitArc<T> {
    fn drop(&mut self) {
        // SAFETY: a place without a value that anybody knows of.
        unsafe { give_up(self.0.cast(), Layout::new::<ArcInner<T>>()) };
    }
}

impl<T> Deref for IntrusiveArc<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner().value
    }
}

impl<T> Clone for IntrusiveArc<T> {
    #[inline]
    fn clone(&self) -> Self {
        // As with `Arc`: a new handle is made of one that is there, so nothing has to be seen.
        let before = self.inner().handles.fetch_add(1, Ordering::Relaxed);
        if before > isize::MAX as usize {
            // Only by forgetting handles for years. Going on would free what is in use.
            std::process::abort();
        }
        Self { inner: self.inner, marker: PhantomData }
    }
}

impl<T> Drop for IntrusiveArc<T> {
    #[inline]
    fn drop(&mut self) {
        // One that is alone stays so: handles are made of handles.
        if self.is_alone() {
            // SAFETY: the last handle.
            return unsafe { self.end() };
        }
        if self.inner().handles.fetch_sub(1, Ordering::Release) == 1 {
            // What the others did before they let go happens before what follows.
            let _ = self.inner().handles.load(Ordering::Acquire);
            // SAFETY: the last handle.
            unsafe { self.end() };
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for IntrusiveArc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The place of the value that this thread has dropped last.
struct Spare(Cell<Option<(NonNull<u8>, Layout)>>);

impl Drop for Spare {
    fn drop(&mut self) {
        if let Some((memory, layout)) = self.0.take() {
            // SAFETY: allocated with this layout, and unreferenced.
            unsafe { dealloc(memory.as_ptr(), layout) };
        }
    }
}

thread_local! {
    static SPARE: Spare = const { Spare(Cell::new(None)) };
}

/// A place for a value. The layout has a size.
#[inline]
fn allocate(layout: Layout) -> NonNull<u8> {
    // At the very end of a thread its variables are gone.
    match SPARE.try_with(|spare| spare.0.take()) {
        Ok(Some((memory, have))) if have == layout => memory,
        Ok(other) => {
            let _ = SPARE.try_with(|spare| spare.0.set(other));
            fresh(layout)
        }
        Err(_) => fresh(layout),
    }
}

fn fresh(layout: Layout) -> NonNull<u8> {
    // SAFETY: the layout has a size, for there is a count in it.
    NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Keeps a place, or frees it.
///
/// # Safety
/// It was allocated with this layout, and is not used again.
#[inline]
unsafe fn give_up(memory: NonNull<u8>, layout: Layout) {
    let before = SPARE.try_with(|spare| spare.0.replace(Some((memory, layout))));
    if let Some((memory, layout)) = before.unwrap_or(Some((memory, layout))) {
        // SAFETY: allocated with this layout; not in use.
        unsafe { dealloc(memory.as_ptr(), layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::Arc, thread};

    #[test]
    fn a_value_lives_as_long_as_a_handle() {
        let told = Arc::new(());
        let mut one = IntrusiveArc::new((told.clone(), 7));
        assert_eq!((one.get_mut().map(|value| value.1), Arc::strong_count(&told)), (Some(7), 2));
        let other = one.clone();
        assert!(one.get_mut().is_none() && other.1 == 7);
        let other = other.try_unwrap().unwrap_err();
        drop(one);
        assert_eq!(Arc::strong_count(&told), 2);
        let value = other.try_unwrap().unwrap();
        assert_eq!((value.1, Arc::strong_count(&told)), (7, 2));
        drop(value);
        assert_eq!(Arc::strong_count(&told), 1);
    }

    #[test]
    fn places_of_other_sizes_are_not_mixed_up() {
        for round in 0..4u64 {
            let small = IntrusiveArc::new(round);
            let large = IntrusiveArc::new([round; 40]);
            assert!(large.iter().all(|value| *value == *small));
            drop(small);
            let again = IntrusiveArc::new([round + 1; 40]);
            assert_eq!((again[39], large[0]), (round + 1, round));
        }
    }

    #[test]
    fn the_last_handle_of_many_threads_drops_the_value() {
        let told = Arc::new(());
        for _ in 0..if cfg!(miri) { 10 } else { 300 } {
            let value = IntrusiveArc::new((told.clone(), AtomicUsize::new(0)));
            thread::scope(|scope| {
                for _ in 0..3 {
                    let value = value.clone();
                    scope.spawn(move || {
                        let again = value.clone();
                        again.1.fetch_add(1, Ordering::Relaxed);
                        drop(value);
                    });
                }
                drop(value);
            });
            assert_eq!(Arc::strong_count(&told), 1);
        }
    }
}
