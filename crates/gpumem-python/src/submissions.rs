//! What a call has enqueued on a stream, among the work of others.

use crate::recording::KEY;
use gpumem::Error;

/// How work has ended, which is over: each caller is told, whatever else has failed on the stream.
pub(crate) fn check_submissions(stream: &gpumem::Stream, submissions: &[u64]) -> Result<(), Error> {
    let timeline = stream.timeline_by(KEY);
    let ended = submissions.iter().try_for_each(|number| timeline.check_submissions(*number..=*number));
    ended.map_err(|error| error.in_operation("synchronize"))
}
