//! The threads that groups run on.

use crate::turn::Turn;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::LazyLock;

/// Our own, because rayon's global pool panics where the system has no threads for it.
static POOL: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    ThreadPoolBuilder::new().thread_name(|index| format!("gpumem-simt-{index}")).build().ok()
});

/// Parts of a launch for each thread: enough that threads which are late are made up for.
const PARTS: u64 = 8;

/// Runs the groups, and gives the first fault. They begin on this thread, which wakes others if the rest takes long: what
/// waking them takes is more than many a whole launch.
pub(crate) fn run<E: Send>(groups: u64, part: impl Fn(&mut Turn) -> Result<(), E> + Sync) -> Result<(), E> {
    use rayon::prelude::*;
    let mut alone = Turn::while_short(0..groups);
    part(&mut alone)?;
    let rest = alone.rest();
    if rest.is_empty() {
        return Ok(());
    }
    let groups = rest.end - rest.start;
    let Some(pool) = POOL.as_ref().filter(|pool| pool.current_num_threads() > 1 && groups > 1) else {
        return part(&mut Turn::all(rest));
    };
    let parts = groups.min(PARTS * pool.current_num_threads() as u64);
    let range = |index: u64| {
        let cut =
            |index: u64| rest.start + (u128::from(groups) * u128::from(index) / u128::from(parts)) as u64;
        cut(index)..cut(index + 1)
    };
    let fault = pool.install(|| {
        let parts = (0..parts as usize).into_par_iter().with_max_len(1);
        parts.map(|index| part(&mut Turn::all(range(index as u64))).err()).find_map_first(|fault| fault)
    });
    fault.map_or(Ok(()), Err)
}
