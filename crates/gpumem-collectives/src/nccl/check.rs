//! What the ranks are about to call, compared before it is called: on request, because it waits for them.

use super::{
    Link,
    enqueue::{DeviceOrders, OwnCalls, enqueue_locked},
};
use crate::{
    call::{Call, Kind, Place, Prepared},
    fingerprint::{Fingerprint, disagreement_of_bytes},
};
use gpumem_core::{Backend, CollectiveCause, Result};
use gpumem_runtime::{DeviceArray, Stream, internal::may_block};
use ndarray::Ix1;
use std::sync::PoisonError;

/// Bytes that a rank gives to all others.
struct Exchange<'a, B: Backend> {
    own: &'a OwnCalls<'a, B>,
    stream: Stream<B>,
    all: DeviceArray<u8, Ix1, B>,
    calls: [Prepared<'static, B>; 1],
}

/// Compares what the ranks are about to call, and waits for that. The caller holds the locks of the links.
pub(super) fn agree<'a, B: Backend>(
    parts: &'a [OwnCalls<'a, B>],
    device_orders: &mut DeviceOrders<'_, B>,
) -> Result<()> {
    // Sends and receives concern two ranks only.
    let is_of_all = |call: &&Call| !matches!(call.kind, Kind::Send { .. } | Kind::Receive { .. });
    let checked: Vec<(&OwnCalls<'_, B>, Vec<&Call>)> = parts
        .iter()
        .filter(|own| own.link.options.check)
        .map(|own| (own, own.calls.iter().map(|prepared| &prepared.call).filter(is_of_all).collect()))
        .collect();
    let given = checked.iter().filter_map(|(own, calls)| {
        let all = Fingerprint::of_group(calls)?;
        Some((*own, all.to_bytes(own.link.size)))
    });
    exchange(given.collect(), device_orders)?;
    // All ranks call the same operations: so these have blocks of different lengths on all of them, or on none.
    let given = checked.iter().filter(|(_, calls)| calls.len() > 1).map(|(own, calls)| {
        let uneven = calls.iter().filter(|call| matches!(call.kind, Kind::AllToAllV { .. }));
        (*own, uneven.flat_map(|call| Fingerprint::new(call, Vec::new()).to_bytes(own.link.size)).collect())
    });
    exchange(given.filter(|(_, bytes): &(_, Vec<u8>)| !bytes.is_empty()).collect(), device_orders)
}

/// Gathers the fingerprints of all ranks on each, and compares them there.
fn exchange<'a, B: Backend>(
    given: Vec<(&'a OwnCalls<'a, B>, Vec<u8>)>,
    device_orders: &mut DeviceOrders<'_, B>,
) -> Result<()> {
    let mut exchanges = Vec::with_capacity(given.len());
    for (own, bytes) in given {
        may_block(own.operation)?;
        // Not the caller's: its pending work would be waited for, and would fail the comparison.
        let stream = own.link.private_stream()?;
        let source = stream.to_device(&*bytes)?;
        let all = stream.to_device(&vec![0_u8; bytes.len() * own.link.size])?;
        let (source, destination) = (Place::of(&source).into_owned(), Place::of(&all).into_owned());
        let call = Call::new::<u8>(Kind::AllGather, bytes.len());
        let (source, destination) = (Some(source), Some(destination));
        let calls = [Prepared { call, source, destination, in_place: false, target: None }];
        exchanges.push(Exchange { own, stream, all, calls });
    }
    let together: Vec<OwnCalls<'_, B>> = exchanges
        .iter()
        .map(|Exchange { own, stream, calls, .. }| OwnCalls {
            link: own.link,
            stream,
            operation: own.operation,
            calls,
            counts: false,
        })
        .collect();
    if together.is_empty() {
        return Ok(());
    }
    // Together: one thread with several ranks would wait for itself.
    enqueue_locked(&together, device_orders)?;
    // Each rank notes its own failure, even if an earlier one has failed.
    let compared: Vec<Result<()>> = exchanges.iter().map(Exchange::finish).collect();
    compared.into_iter().collect()
}

impl<B: Backend> Exchange<'_, B> {
    fn finish(&self) -> Result<()> {
        let OwnCalls { link, operation, .. } = *self.own;
        let read = self.all.copy_to_host();
        // After the copy, which waits for other ranks: the watchdog needs this lock to give up on them.
        let mut state = link.lock();
        let sequence = state.rank.sequence;
        let all = match (read, state.rank.revoked.clone()) {
            (Ok(all), None) => all.to_vec(),
            (_, Some(cause)) => return Err(link.error(operation, sequence, cause)),
            (Err(error), None) => return Err(error.in_operation(operation)),
        };
        let Some(cause) = self.disagreement(&all) else { return Ok(()) };
        for prepared in self.own.calls {
            state.rank.begin(prepared.call.describe());
        }
        let end = state.rank.sequence;
        let failed = state.rank.fail(operation, sequence..end, cause);
        Err(link.device.core_by(crate::KEY).error(operation, failed))
    }

    /// Why the calls of this rank do not fit those of the others, whose fingerprints follow each other.
    fn disagreement(&self, all: &[u8]) -> Option<CollectiveCause> {
        let Link { rank, size, .. } = **self.own.link;
        let (ranks, bytes): (Vec<usize>, _) = ((0..size).collect(), Fingerprint::len(size));
        // All ranks give as many.
        (0..all.len() / size / bytes).find_map(|at| {
            let said: Vec<&[u8]> =
                all.chunks_exact(all.len() / size).map(|of| &of[at * bytes..][..bytes]).collect();
            disagreement_of_bytes(&ranks, &said, size)?.into_iter().nth(rank)
        })
    }
}

impl<B: Backend> Link<B> {
    /// A stream that only exchanges of fingerprints use.
    fn private_stream(&self) -> Result<Stream<B>> {
        let private = || self.private.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = &*private() {
            return Ok(stream.clone());
        }
        // Without the lock: making a stream frees what was dropped, which is code of the user.
        let made = self.device.stream()?;
        Ok(private().get_or_insert(made).clone())
    }
}
