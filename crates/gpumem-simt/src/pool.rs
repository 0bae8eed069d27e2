//! The threads that groups run on.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::{ops::Range, sync::LazyLock};

/// Our own, because rayon's global pool panics where the system has no threads for it.
static POOL: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    ThreadPoolBuilder::new().thread_name(|index| format!("gpumem-simt-{index}")).build().ok()
});

/// Parts of a launch for each thread: enough that threads which are late are made up for.
const PARTS: u64 = 8;

/// Runs the groups in parts, side by side, and gives the fault of the first part that has one.
pub(crate) fn in_parts<E: Send>(
    groups: u64,
    part: impl Fn(Range<u64>) -> Result<(), E> + Sync,
) -> Result<(), E> {
    use rayon::prelude::*;
    let Some(pool) = POOL.as_ref().filter(|pool| pool.current_num_threads() > 1 && groups > 1) else {
        return part(0..groups);
    };
    let parts = groups.min(PARTS * pool.current_num_threads() as u64);
    let range = |index: u64| {
        let cut = |index: u64| (u128::from(groups) * u128::from(index) / u128::from(parts)) as u64;
        cut(index)..cut(index + 1)
    };
    let fault = pool.install(|| {
        let parts = (0..parts as usize).into_par_iter().with_max_len(1);
        parts.map(|index| part(range(index as u64)).err()).find_map_first(|fault| fault)
    });
    fault.map_or(Ok(()), Err)
}
