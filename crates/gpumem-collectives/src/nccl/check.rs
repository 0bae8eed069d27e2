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
use gpumem_runtime::{DeviceArray, PinnedArray, Stream, internal::may_block};
use ndarray::Ix1;
use std::sync::PoisonError;

/// Most buffers that a communicator keeps: those of a call with blocks of different lengths.
const MOST_KEPT: usize = 2;

/// Stream and memory for one exchange of bytes. They are made, filled and dropped without the locks of the links: memory comes from
/// resources, which are code of the user, and that may call the communicator.
pub(super) struct Buffers<B: Backend> {
    /// Not the caller's: its pending work would be waited for, and would fail the comparison.
    pub(super) stream: Stream<B>,
    own: DeviceArray<u8, Ix1, B>,
    all: DeviceArray<u8, Ix1, B>,
    /// Those of all ranks, for the host.
    read: PinnedArray<u8, Ix1, B>,
}

/// Bytes that a rank gives to all others.
struct Exchange<'a, B: Backend> {
    own: &'a OwnCalls<'a, B>,
    buffers: Buffers<B>,
}

/// The comparisons that calls need.
pub(super) struct Check<'a, B: Backend> {
    /// Of what each rank calls.
    calls: Vec<Exchange<'a, B>>,
    /// Of blocks of different lengths. Where the ranks call the same operations, all of them have such blocks, or none.
    blocks: Vec<Exchange<'a, B>>,
}

impl<'a, B: Backend> Check<'a, B> {
    /// Makes all that the comparisons need, without the locks of the links.
    pub(super) fn prepare(parts: &'a [OwnCalls<'a, B>]) -> Result<Self> {
        // Sends and receives concern two ranks only.
        let is_of_all = |call: &&Call| !call.kind.is_of_pair();
        let mut check = Self { calls: Vec::new(), blocks: Vec::new() };
        for own in parts.iter().filter(|own| own.link.options.check) {
            let size = own.link.size;
            let calls: Vec<&Call> =
                own.calls.iter().map(|prepared| &prepared.call).filter(is_of_all).collect();
            let Some(all) = Fingerprint::of_group(&calls) else { continue };
            may_block(own.operation)?;
            check.calls.push(Exchange { own, buffers: own.link.buffers(&all.to_bytes(size))? });
            let uneven = calls.iter().filter(|call| matches!(call.kind, Kind::AllToAllV { .. }));
            let blocks = uneven.flat_map(|call| Fingerprint::new(call, Vec::new()).to_bytes(size));
            let blocks: Vec<u8> = if calls.len() > 1 { blocks.collect() } else { Vec::new() };
            if !blocks.is_empty() {
                check.blocks.push(Exchange { own, buffers: own.link.buffers(&blocks)? });
            }
        }
        Ok(check)
    }

    /// Compares what the ranks are about to call, and waits for that. The caller holds the locks of the links.
    pub(super) fn agree(&mut self, device_orders: &mut DeviceOrders<'_, B>) -> Result<()> {
        exchange(&mut self.calls, device_orders)?;
        exchange(&mut self.blocks, device_orders)
    }

    /// Keeps the memory for later calls. The locks of the links are free.
    pub(super) fn keep(self) {
        for Exchange { own, buffers } in self.calls.into_iter().chain(self.blocks) {
            own.link.keep(buffers);
        }
    }
}

/// Gathers the fingerprints of all ranks on each, and compares them there.
fn exchange<B: Backend>(
    exchanges: &mut [Exchange<'_, B>],
    device_orders: &mut DeviceOrders<'_, B>,
) -> Result<()> {
    if exchanges.is_empty() {
        return Ok(());
    }
    {
        let calls: Vec<[Prepared<'_, B>; 1]> =
            exchanges.iter().map(|exchange| [exchange.buffers.gather(Kind::AllGather)]).collect();
        let together: Vec<OwnCalls<'_, B>> = exchanges
            .iter()
            .zip(&calls)
            .map(|(Exchange { own, buffers }, calls)| OwnCalls {
                link: own.link,
                stream: &buffers.stream,
                operation: own.operation,
                calls,
                counts: false,
            })
            .collect();
        // Together: one thread with several ranks would wait for itself.
        enqueue_locked(&together, device_orders)?.into_iter().try_for_each(|outcome| outcome.map(drop))?;
    }
    // Each rank notes its own failure, even if an earlier one has failed.
    let compared: Vec<Result<()>> = exchanges.iter_mut().map(Exchange::finish).collect();
    compared.into_iter().collect()
}

impl<B: Backend> Buffers<B> {
    /// The operation that gives the bytes of each rank to all.
    pub(super) fn gather(&self, kind: Kind) -> Prepared<'_, B> {
        Prepared {
            call: Call::new::<u8>(kind, self.own.len()),
            source: Some(Place::of(&self.own)),
            destination: Some(Place::of(&self.all)),
            in_place: false,
            target: None,
        }
    }

    /// The bytes of all ranks. Waits for them.
    pub(super) fn read(&mut self) -> Result<Vec<u8>> {
        self.stream.copy_to_host_into(&self.all, &mut self.read)?;
        Ok(self.read.view()?.to_vec())
    }
}

impl<B: Backend> Exchange<'_, B> {
    fn finish(&mut self) -> Result<()> {
        let OwnCalls { link, operation, .. } = *self.own;
        let read = self.buffers.read();
        // After the copy, which waits for other ranks: the watchdog needs this lock to give up on them.
        let mut state = link.lock();
        let sequence = state.rank.sequence;
        // The others may know that all agree, and call: also where this rank cannot read it.
        state.has_agreed = true;
        let all = match (read, state.rank.revoked.clone()) {
            (Ok(all), None) => all,
            (_, Some(cause)) => return Err(link.error(operation, sequence, cause)),
            (Err(error), None) => return Err(error.in_operation(operation)),
        };
        let Some(cause) = self.disagreement(&all) else { return Ok(()) };
        state.has_agreed = false;
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
            disagreement_of_bytes(&ranks, &said, size, rank)
        })
    }
}

impl<B: Backend> Link<B> {
    /// Stream and memory for an exchange, with the bytes of this rank: kept ones, if there are any of that length.
    pub(super) fn buffers(&self, bytes: &[u8]) -> Result<Buffers<B>> {
        let kept = {
            // Only to take one out: it is filled, and others are made, without the lock.
            let mut kept = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
            let at = kept.iter().position(|kept| kept.own.len() == bytes.len());
            at.map(|at| kept.swap_remove(at))
        };
        let mut buffers = match kept {
            Some(kept) => kept,
            None => {
                let (stream, all) = (self.device.stream()?, bytes.len().saturating_mul(self.size));
                let own = stream.device_array(bytes.len())?;
                let (all, read) = (stream.device_array(all)?, self.device.pinned_array(all)?);
                Buffers { stream, own, all, read }
            }
        };
        buffers.stream.copy_to_device(&mut buffers.own, bytes)?;
        Ok(buffers)
    }

    /// Keeps them for later exchanges, unless there are enough.
    fn keep(&self, buffers: Buffers<B>) {
        let mut kept = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let one_too_many = if kept.len() < MOST_KEPT {
            kept.push(buffers);
            None
        } else {
            Some(buffers)
        };
        drop(kept);
        // Without the lock: memory goes back to resources, which are code of the user.
        drop(one_too_many);
    }
}
