//! The ends of programs: a reset of the device, and children that are forked in the middle.

use crate::program::Program;
use gpumem_core::{Backend, Error, ErrorKind, Result};
use gpumem_host::{Host, HostOptions};
use gpumem_integration::reset;
use gpumem_kernel::config_for_items;
use gpumem_runtime::{Device, memory::Trim};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn is_stale<T>(result: Result<T>) -> bool {
    matches!(result, Err(error) if matches!(error.kind(), ErrorKind::Stale { .. }))
}

fn is_forked<T>(result: Result<T>) -> bool {
    matches!(result, Err(error) if *error.kind() == ErrorKind::ForkedChild)
}

impl<B: Backend> Program<'_, B> {
    /// Starts the device anew, with everything still there: all of it is stale.
    pub(crate) fn reset(mut self) {
        let stream = self.stream();
        let locked = self.device.pinned_array::<u8, _>(1usize).unwrap();
        assert!(reset(self.device).is_err(), "seed {}: memory that the host sees is alive", self.seed);
        drop(locked);
        self.drop_host_memory();
        reset(self.device).unwrap();
        let Self { arrays, add, device, .. } = &mut self;
        for known in arrays.iter_mut().filter(|known| !known.model.is_empty()) {
            assert!(is_stale(known.array.copy_to_host()) && is_stale(known.array.fill(1)));
            assert!(is_stale(stream.copy_to_host(&known.array)) && is_stale(known.array.try_clone()));
            let lent = known.array.lend(&stream);
            // Objects that failed before have their own error.
            let is_refused =
                |error: &Error| error.is_poisoned() || matches!(error.kind(), ErrorKind::Stale { .. });
            assert!(lent.as_ref().is_err_and(is_refused), "seed {}: {lent:?}", self.seed);
            let fresh = device.stream().unwrap();
            assert!(is_stale(fresh.fill(&mut known.array, 2)));
            assert!(
                add.launch(&fresh, &config_for_items([1, 1, 1], [1, 1, 1]), (&mut known.array, 1)).is_err()
            );
        }
        assert!(is_stale(stream.synchronize()) && is_stale(stream.to_device(&[1_u32])));
        // New objects work while the old ones are still there, and after they are gone.
        let array = device.to_device(&[5_u32; 700]).unwrap();
        arrays.clear();
        device.trim(Trim::ALL).unwrap();
        assert_eq!(array.copy_to_host().unwrap().to_vec(), [5; 700]);
    }

    /// A child that is forked here is refused what the parent has, may drop all of it, and has a device of its own.
    #[cfg(unix)]
    pub(crate) fn fork(&mut self, at: usize) {
        let stream = self.stream();
        // SAFETY: the child uses only functions that work in a forked child, and leaves by `_exit`.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "fork failed");
        if pid == 0 {
            // SAFETY: a child that hangs ends by a signal.
            unsafe { libc::alarm(60) };
            let ended = catch_unwind(AssertUnwindSafe(|| {
                let known = self.arrays.swap_remove(at);
                let is_empty = known.model.is_empty();
                assert!(is_empty || is_forked(known.array.copy_to_host()));
                assert!(is_forked(stream.to_device(&[1_u32; 9])) && is_forked(stream.synchronize()));
                assert!(is_forked(self.device.flush()) && is_forked(self.device.stream()));
                drop(known);
                self.arrays.clear();
                self.pinned.clear();
                let own: Device<Host> = Device::from_raw(Host::open_with(&HostOptions::new()).unwrap());
                assert_eq!(own.to_device(&[3_u32; 99]).unwrap().copy_to_host().unwrap().to_vec(), [3; 99]);
            }));
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(ended.is_err())) };
        }
        let mut status = 0;
        // SAFETY: our own child, and a valid place for its status.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        assert_eq!((waited, status), (pid, 0), "seed {}: status {status:#x}", self.seed);
    }

    #[cfg(not(unix))]
    pub(crate) fn fork(&mut self, _: usize) {}
}
