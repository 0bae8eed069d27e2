//! What a call has enqueued on a stream, among the work of others.

use crate::recording::KEY;
use gpumem::Error;
use std::ops::RangeInclusive;

/// The number of what was enqueued last.
pub(crate) fn last_submission(stream: &gpumem::Stream) -> u64 {
    stream.timeline_by(KEY).last_submission()
}

/// How work has ended, which is over: each caller is told, whatever else has failed on the stream.
pub(crate) fn check_submissions(
    stream: &gpumem::Stream,
    submissions: RangeInclusive<u64>,
) -> Result<(), Error> {
    let ended = stream.timeline_by(KEY).check_submissions(submissions);
    ended.map_err(|error| error.in_operation("synchronize"))
}
