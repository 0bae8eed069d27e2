//! Snapshots and logs of anything: what is taken has no contradiction, and can be read again in the viewer's form.
#![no_main]

use gpumem_runtime::trace::{FreeTime, Trace};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let log = Trace::from_rmm_csv(bytes).ok();
    let snapshots =
        [FreeTime::Requested, FreeTime::Completed].map(|free| Trace::from_torch(bytes, free).ok());
    for trace in snapshots.into_iter().chain([log]).flatten() {
        trace.check().expect("no contradiction");
        let json = trace.to_memory_viz();
        let again = Trace::from_torch(json.as_bytes(), FreeTime::Completed);
        // The viewer's form counts what lives to the end twice, as memory and as a segment, and a sum has a limit.
        let bytes = trace.allocations.iter().map(|memory| u128::from(memory.bytes)).sum::<u128>();
        assert!(again.is_ok() || bytes > 1 << 61, "{again:?}");
    }
});
