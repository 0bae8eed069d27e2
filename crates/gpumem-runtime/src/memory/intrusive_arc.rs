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
pub struct IntrusiveArc<T> {
    inner: NonNull<ArcInner<T>>,
    marker: PhantomData<ArcInner<T>>,
}

struct ArcInner<T> {
    handles: AtomicUsize,
    value: T,
}

impl<T> ArcInner<T> {
    const SIZE: usize = {
        assert!(align_of::<Self>() <= ALIGN, "a place of a value is no more aligned");
        size_of::<Self>()
    };
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
    /// Returns the handle if there are others.
    pub(crate) fn try_unwrap(self) -> Result<T, Self> {
        if !self.is_alone() {
            return Err(self);
        }
        let inner = self.inner;
        mem::forget(self);
        // SAFETY: there is no other reference to the value. It is moved out, and its place given up.
        unsafe {
            let value = (&raw const (*inner.as_ptr()).value).read();
            give_up(inner.cast(), ArcInner::<T>::SIZE);
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
            give_up(self.inner.cast(), ArcInner::<T>::SIZE);
        }
    }
}

/// A place for a value that is written where it stays: one that is put together elsewhere and moved costs more than a pool
/// does.
pub(crate) struct UninitArc<T>(NonNull<ArcInner<T>>);

impl<T> UninitArc<T> {
    #[inline]
    pub(crate) fn new() -> Self {
        let inner: NonNull<ArcInner<T>> = allocate(ArcInner::<T>::SIZE).cast();
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
        unsafe { give_up(self.0.cast(), ArcInner::<T>::SIZE) };
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

/// The place of the value that this thread has dropped last. It needs no destructor, so that looking at it costs a load.
struct Spare {
    memory: Cell<NonNull<u8>>,
    /// Bytes of the place, or one of the numbers below.
    size: Cell<usize>,
}

/// There is no place. No value is that small: a count stands beside it.
const NONE: usize = 0;
/// The thread has not kept a place yet: nothing frees one at its end.
const NOT_YET: usize = 1;
/// The thread is ending, and keeps no place any more.
const NO_MORE: usize = 2;

/// Frees the spare place at the end of a thread.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        SPARE.with(|spare| {
            let size = spare.size.replace(NO_MORE);
            if size > NO_MORE {
                // SAFETY: allocated with this layout, and not in use.
                unsafe { dealloc(spare.memory.get().as_ptr(), layout(size)) };
            }
        });
    }
}

thread_local! {
    static SPARE: Spare = const { Spare { memory: Cell::new(NonNull::dangling()), size: Cell::new(NOT_YET) } };
    static AT_END: AtEnd = const { AtEnd };
}

/// Alignment of every place.
const ALIGN: usize = 16;

#[inline(always)]
const fn layout(size: usize) -> Layout {
    // SAFETY: a power of two, and the size of a type that is no more aligned, or of a place that was allocated so.
    unsafe { Layout::from_size_align_unchecked(size, ALIGN) }
}

/// A place for a value of so many bytes: at least those of a count.
#[inline]
fn allocate(size: usize) -> NonNull<u8> {
    SPARE.with(|spare| {
        if spare.size.get() != size {
            return fresh(size);
        }
        spare.size.set(NONE);
        spare.memory.get()
    })
}

#[inline(never)]
fn fresh(size: usize) -> NonNull<u8> {
    // SAFETY: the layout has a size, for there is a count in it.
    NonNull::new(unsafe { alloc(layout(size)) }).unwrap_or_else(|| handle_alloc_error(layout(size)))
}

/// Keeps a place, or frees it.
///
/// # Safety
/// It was allocated with this size, and is not used again.
#[inline]
unsafe fn give_up(memory: NonNull<u8>, size: usize) {
    SPARE.with(|spare| {
        if spare.size.get() != NONE {
            // SAFETY: passed on to the caller.
            return unsafe { give_up_other(spare, memory, size) };
        }
        spare.memory.set(memory);
        spare.size.set(size);
    });
}

/// As [`give_up`], where there is a spare place, or nothing frees it at the end of the thread.
///
/// # Safety
/// As there.
#[inline(never)]
unsafe fn give_up_other(spare: &Spare, memory: NonNull<u8>, size: usize) {
    let mut gone = (memory, size);
    match spare.size.get() {
        NO_MORE => {}
        NOT_YET if AT_END.try_with(|_| ()).is_err() => {}
        before => {
            gone = (spare.memory.replace(memory), before);
            spare.size.set(size);
        }
    }
    if gone.1 > NO_MORE {
        // SAFETY: allocated with this layout, and not used again.
        unsafe { dealloc(gone.0.as_ptr(), layout(gone.1)) };
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
    fn a_thread_that_ends_keeps_no_place() {
        struct Last(Cell<Option<IntrusiveArc<[u64; 40]>>>);
        impl Drop for Last {
            fn drop(&mut self) {
                // Before or after the spare place is freed: Miri sees a place that is freed twice, or never.
                drop(self.0.take());
                drop(IntrusiveArc::new([1_u64; 40]));
            }
        }
        thread_local! {
            static LAST: Last = const { Last(Cell::new(None)) };
        }
        let given = IntrusiveArc::new([7_u64; 3]);
        let thread = thread::spawn(move || {
            LAST.with(|last| last.0.set(Some(IntrusiveArc::new([2_u64; 40]))));
            drop(given);
            SPARE.with(|spare| assert_eq!(spare.size.get(), ArcInner::<[u64; 3]>::SIZE));
            // Of two places the last one stays.
            let (one, other) = (IntrusiveArc::new([3_u64; 40]), IntrusiveArc::new([4_u64; 3]));
            drop(other);
            drop(one);
            SPARE.with(|spare| assert_eq!(spare.size.get(), ArcInner::<[u64; 40]>::SIZE));
        });
        assert!(thread.join().is_ok());
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
