//! The arguments of a launch, side by side.

use bytemuck::Pod;
use std::{ffi::c_void, fmt, mem::MaybeUninit};
use thiserror::Error;

/// The largest size of one argument, in bytes: the limit that every version of CUDA keeps.
pub const MAX_ARGUMENT_BYTES: usize = 4096;

/// Compilers place a parameter at its own alignment, and so do we: no parameter of CUDA or HIP is aligned to more.
const ALIGN: usize = 16;
/// Arguments that need no heap, if their bytes have room too.
const FEW: usize = 8;
/// Bytes of those, each rounded up to `ALIGN`.
const FEW_BYTES: usize = 256;
/// A position after all of them, where nothing fits.
const FULL: u16 = FEW_BYTES as u16 + 1;

/// The arguments of a kernel in order, by value: the bytes of each in the ABI of the device's C++, at an address that is a
/// multiple of 16.
///
/// Up to eight arguments of together 256 bytes are held without a heap allocation.
///
/// ```
/// # use gpumem_core::KernelArguments;
/// let mut arguments = KernelArguments::new().with(0x7f00_0000_1000_u64).with(2.5f32);
/// arguments.push_bytes(b"any bytes")?;
/// assert_eq!(arguments.len(), 3);
/// assert_eq!(arguments.read::<f32>(1), Some(2.5));
/// # Ok::<(), gpumem_core::ArgumentTooLong>(())
/// ```
#[derive(Clone)]
#[repr(C)]
pub struct KernelArguments {
    /// How many lie in `bytes`.
    count: u16,
    /// Where the next one begins, or `FULL` once there are `more`.
    next: u16,
    /// Where in `bytes` each lies; the first `count` are written.
    places: [MaybeUninit<Place>; FEW],
    /// The first argument that did not fit, and all later ones. `None` while all fit: most launches have few arguments.
    more: Option<Box<More>>,
    /// Each argument at the first multiple of `ALIGN` after the one before. Only arguments are written.
    bytes: Few,
}

#[derive(Clone, Copy)]
struct Place {
    start: u16,
    length: u16,
}

/// Bytes for few arguments.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Few([MaybeUninit<u8>; FEW_BYTES]);

/// Arguments on the heap, each with its length.
#[derive(Clone, Default)]
struct More(Vec<(u16, Box<[Chunk]>)>);

#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Chunk([u8; ALIGN]);

/// An argument of more bytes than [`MAX_ARGUMENT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an argument is longer than {MAX_ARGUMENT_BYTES} bytes")]
pub struct ArgumentTooLong;

impl KernelArguments {
    /// No arguments.
    // Built where it stays: a copy would be as long as the arguments that there could be.
    #[inline(always)]
    pub const fn new() -> Self {
        let places = [MaybeUninit::uninit(); FEW];
        Self { count: 0, next: 0, places, more: None, bytes: Few([MaybeUninit::uninit(); FEW_BYTES]) }
    }

    /// These arguments and one more: see [`push`](Self::push).
    #[must_use]
    pub fn with<T: Pod>(mut self, value: T) -> Self {
        self.push(value);
        self
    }

    /// Adds an argument, a plain value: a number, an address, a struct. A type of more bytes than [`MAX_ARGUMENT_BYTES`] is
    /// an error of the compiler.
    #[inline(always)]
    pub fn push<T: Pod>(&mut self, value: T) {
        const { assert!(size_of::<T>() <= MAX_ARGUMENT_BYTES, "an argument is longer than 4096 bytes") };
        match self.reserve(size_of::<T>() as u16) {
            // SAFETY: the place has room for so many bytes. The value goes there as a whole, not by way of its bytes.
            Some(place) => unsafe { place.cast::<T>().write_unaligned(value) },
            None => self.push_value_more(value),
        }
    }

    /// Adds an argument by its bytes.
    ///
    /// # Errors
    /// Returns [`ArgumentTooLong`] for more bytes than [`MAX_ARGUMENT_BYTES`]. Nothing has been added then.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), ArgumentTooLong> {
        let length = match u16::try_from(bytes.len()) {
            Ok(length) if bytes.len() <= MAX_ARGUMENT_BYTES => length,
            _ => return Err(ArgumentTooLong),
        };
        match self.reserve(length) {
            // SAFETY: the slot has room for that many bytes, and no other argument uses it.
            Some(place) => unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) },
            None => self.push_more(bytes, length),
        }
        Ok(())
    }

    /// Adds an argument of that length to the few, if it has room there. The caller writes it to the place, which has so
    /// many bytes and begins at a multiple of `ALIGN`, before anything else is done.
    #[inline(always)]
    fn reserve(&mut self, length: u16) -> Option<*mut u8> {
        let start = self.next;
        if usize::from(start) + usize::from(length) > FEW_BYTES {
            return None;
        }
        self.places.get_mut(usize::from(self.count))?.write(Place { start, length });
        self.count += 1;
        self.next += length.next_multiple_of(ALIGN as u16);
        Some(self.bytes.0.as_mut_ptr().wrapping_add(usize::from(start)).cast())
    }

    /// Takes the value as it is, so that no caller has to convert it to bytes.
    #[cold]
    fn push_value_more<T: Pod>(&mut self, value: T) {
        self.push_more(bytemuck::bytes_of(&value), size_of::<T>() as u16);
    }

    #[cold]
    fn push_more(&mut self, bytes: &[u8], length: u16) {
        let chunks = bytes.chunks(ALIGN).map(|part| {
            let mut chunk = [0; ALIGN];
            chunk.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            Chunk(chunk)
        });
        self.more.get_or_insert_default().0.push((length, chunks.collect()));
        // Later arguments stay in order, even if they would fit.
        self.next = FULL;
    }

    /// How many arguments there are.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.count) + self.more.as_ref().map_or(0, |more| more.0.len())
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of each argument in order. They start at a multiple of 16.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.addresses().map(|(start, length)| {
            // SAFETY: an argument of that length has been written there, and is borrowed with `self`.
            unsafe { std::slice::from_raw_parts(start, length.into()) }
        })
    }

    /// The bytes of one argument, or `None` if there are fewer.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.iter().nth(index)
    }

    /// Replaces the first bytes of an argument. Returns whether it has so many.
    pub fn overwrite(&mut self, index: usize, bytes: &[u8]) -> bool {
        let count = usize::from(self.count);
        if let Some(place) = self.places.iter().take(count).nth(index) {
            // SAFETY: the first `count` have been written.
            let Place { start, length } = unsafe { place.assume_init() };
            let argument = self.bytes.0.iter_mut().skip(start.into()).take(length.into());
            let is_within = bytes.len() <= usize::from(length);
            argument.zip(bytes.iter().filter(|_| is_within)).for_each(|(to, from)| {
                to.write(*from);
            });
            return is_within;
        }
        let more = self.more.as_mut().and_then(|more| more.0.get_mut(index - count));
        let Some((length, chunks)) = more.filter(|(length, _)| bytes.len() <= usize::from(*length)) else {
            return false;
        };
        let argument = chunks.iter_mut().flat_map(|chunk| &mut chunk.0).take((*length).into());
        argument.zip(bytes).for_each(|(to, from)| *to = *from);
        true
    }

    /// Reads an argument as a value, or `None` if it has another length or there are fewer.
    pub fn read<T: Pod>(&self, index: usize) -> Option<T> {
        bytemuck::try_pod_read_unaligned(self.get(index)?).ok()
    }

    /// Runs `call` with the addresses of all arguments in order, as drivers take them (`void**`). Nothing may be written
    /// through them.
    #[inline(always)]
    pub fn with_pointers<R>(&self, call: impl FnOnce(*mut *mut c_void) -> R) -> R {
        if self.more.is_some() {
            return self.with_many_pointers(call);
        }
        let mut pointers = [MaybeUninit::<*mut c_void>::uninit(); FEW];
        for (pointer, (start, _)) in pointers.iter_mut().zip(self.few()) {
            pointer.write(start.cast_mut().cast());
        }
        call(pointers.as_mut_ptr().cast())
    }

    #[cold]
    fn with_many_pointers<R>(&self, call: impl FnOnce(*mut *mut c_void) -> R) -> R {
        let mut pointers: Vec<_> = self.addresses().map(|(start, _)| start.cast_mut().cast()).collect();
        call(pointers.as_mut_ptr())
    }

    /// Where each of the few begins, and its length.
    #[inline(always)]
    fn few(&self) -> impl Iterator<Item = (*const u8, u16)> {
        let bytes: *const u8 = self.bytes.0.as_ptr().cast();
        self.places.iter().take(self.count.into()).map(move |place| {
            // SAFETY: the first `count` have been written.
            let Place { start, length } = unsafe { place.assume_init() };
            (bytes.wrapping_add(start.into()), length)
        })
    }

    /// Where each argument begins, and its length.
    fn addresses(&self) -> impl Iterator<Item = (*const u8, u16)> {
        let more = self.more.iter().flat_map(|more| &more.0);
        self.few().chain(more.map(|(length, chunks)| (chunks.as_ptr().cast(), *length)))
    }
}

impl Default for KernelArguments {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for KernelArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(length: usize) -> &'static [u8] {
        // Made by the compiler, because an interpreter takes its time for each byte.
        static ALL: [u8; 2 * MAX_ARGUMENT_BYTES] = {
            let mut bytes = [0; 2 * MAX_ARGUMENT_BYTES];
            let mut at = 0;
            while at < bytes.len() {
                bytes[at] = at as u8 ^ 0x5a;
                at += 1;
            }
            bytes
        };
        &ALL[length..2 * length]
    }

    /// Holds the arguments at aligned addresses, and gives a driver the same addresses.
    fn check(arguments: &KernelArguments, lengths: &[usize]) {
        assert_eq!((arguments.len(), arguments.is_empty()), (lengths.len(), lengths.is_empty()));
        assert_eq!(arguments.iter().count(), lengths.len());
        for (index, (argument, length)) in arguments.iter().zip(lengths).enumerate() {
            assert_eq!(argument, source(*length), "{index} of {lengths:?}");
            assert_eq!(argument.as_ptr().addr() % ALIGN, 0);
            assert_eq!(arguments.get(index), Some(argument));
        }
        assert_eq!(arguments.get(lengths.len()), None);
        arguments.with_pointers(|pointers| {
            for (index, length) in lengths.iter().enumerate() {
                // SAFETY: there are so many pointers, each to an argument of that length.
                let argument =
                    unsafe { std::slice::from_raw_parts((*pointers.add(index)).cast::<u8>(), *length) };
                assert_eq!(argument, source(*length));
            }
        });
    }

    fn of(lengths: &[usize]) -> KernelArguments {
        let mut arguments = KernelArguments::new();
        for (index, length) in lengths.iter().enumerate() {
            // Interpreted, all the beginnings of a long list take minutes.
            if !cfg!(miri) || index < 3 {
                check(&arguments, &lengths[..index]);
            }
            arguments.push_bytes(source(*length)).unwrap();
        }
        check(&arguments, lengths);
        check(&arguments.clone(), lengths);
        arguments
    }

    #[test]
    fn arguments_of_every_length_keep_their_bytes() {
        // Interpreted, more of them take minutes.
        let long: &[usize] = if cfg!(miri) { &[] } else { &[63, 64, 65, 79, 80, 4095, MAX_ARGUMENT_BYTES] };
        for &length in [0, 1, 8, 15, 16, 17, 81, 255, 256, 257, 300].iter().chain(long) {
            of(&[length]);
            of(&[4, length, 8]);
            of(&[length, length]);
        }
    }

    #[test]
    fn few_arguments_need_no_heap_and_more_go_there() {
        assert!(of(&[]).more.is_none());
        assert!(of(&[16; FEW]).more.is_none());
        assert!(of(&[32; FEW]).more.is_none());
        assert!(of(&[240, 1]).more.is_none());
        assert!(of(&[1; FEW + 1]).more.is_some());
        assert!(of(&[240, 17]).more.is_some());
        // In order, even if the last two had room.
        assert_eq!(of(&[4, 300, 4, 0]).more.map(|more| more.0.len()), Some(3));
        of(&[12; 40]);
    }

    #[test]
    fn arguments_that_are_too_long_are_refused() {
        let mut arguments = of(&[4]);
        for length in [MAX_ARGUMENT_BYTES + 1, 65535, 65536, 65540] {
            assert_eq!(arguments.push_bytes(&vec![0; length]), Err(ArgumentTooLong));
            check(&arguments, &[4]);
        }
        assert_eq!(ArgumentTooLong.to_string(), "an argument is longer than 4096 bytes");
    }

    #[test]
    fn the_first_bytes_of_an_argument_are_replaced() {
        let lengths = [8, 3, 200, 16, 8, 1, 40, 8, 8, 24];
        let (before, mut arguments) = (of(&lengths), of(&lengths));
        for (index, length) in lengths.into_iter().enumerate() {
            let new = vec![0xee; length.min(8)];
            assert!(arguments.overwrite(index, &new));
            assert!(!arguments.overwrite(index, &vec![0; length + 1]));
            assert_eq!(arguments.get(index).unwrap()[..new.len()], new);
            assert_eq!(arguments.get(index).unwrap()[new.len()..], before.get(index).unwrap()[new.len()..]);
            for (other, bytes) in before.iter().enumerate().skip(index + 1) {
                assert_eq!(arguments.get(other).unwrap(), bytes);
            }
        }
        assert!(!arguments.overwrite(lengths.len(), &[]));
    }

    #[test]
    fn values_are_read_back_unchanged() {
        let arguments = KernelArguments::new().with([1.5f32, 2.5]).with(0x1234u64).with([7u64; 64]);
        assert_eq!(arguments.read::<[f32; 2]>(0), Some([1.5, 2.5]));
        assert_eq!(arguments.read::<f32>(0), None);
        assert_eq!(arguments.read::<[f32; 3]>(0), None);
        assert_eq!(arguments.read::<u64>(1), Some(0x1234));
        assert_eq!(arguments.read::<[u64; 64]>(2), Some([7; 64]));
        assert_eq!(arguments.read::<u8>(3), None);
        assert_eq!(format!("{:?}", KernelArguments::new().with(7u8).with([1u8, 2])), "[[7], [1, 2]]");
    }
}
