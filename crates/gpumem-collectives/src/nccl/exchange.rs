//! Bytes of the host that all ranks exchange.

use super::{
    Link,
    enqueue::{self, OwnCalls},
};
use crate::call::{Call, Kind, Place, Prepared};
use gpumem_core::{Backend, Result};
use gpumem_runtime::Stream;
use std::sync::Arc;

/// Gives the bytes of each rank to all, in the order of the ranks. Waits for them.
pub(super) fn all_gather<B: Backend>(
    link: &Arc<Link<B>>,
    stream: &Stream<B>,
    operation: &'static str,
    own: &[u8],
) -> Result<Vec<u8>> {
    let source = stream.to_device(own)?;
    let all = stream.to_device(&vec![0_u8; own.len() * link.size])?;
    let prepared = Prepared {
        call: Call::new::<u8>(Kind::AllGather, own.len()),
        source: Some(Place::of(&source)),
        destination: Some(Place::of(&all)),
        in_place: false,
        target: None,
    };
    enqueue::enqueue(&[OwnCalls { link, stream, operation, calls: &[prepared], counts: false }])?;
    Ok(all.copy_to_host().map_err(|error| error.in_operation(operation))?.to_vec())
}
