//! What a rank has called, as bytes that the ranks compare before anything is moved.

use crate::{
    call::{Call, ElementId, Kind},
    identity::stable_hash,
    local::Called,
};
use gpumem_core::CollectiveCall;
use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

/// Longest name of an element type, and longest reason. Longer ones are cut.
const LONGEST: usize = 160;
/// Most communicators whose order is compared.
const ORDERS: usize = 8;
/// Bytes without the numbers for each rank.
const FIXED: usize = 1024;

/// Bytes that each rank gives.
pub(crate) fn bytes(ranks: usize) -> usize {
    FIXED + 16 * ranks
}

/// What one rank says: its call, and why it cannot take part, if it cannot.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) call: CollectiveCall,
    /// The hash of the name of the elements, as the name itself is cut, and the bytes of one.
    pub(crate) element: (u64, usize),
    /// Bytes to each rank and from each rank, where these differ.
    pub(crate) blocks: Option<(Vec<usize>, Vec<usize>)>,
    pub(crate) lost: Option<String>,
}

impl Said {
    pub(crate) fn new(call: &CollectiveCall, of: Option<&Call>, lost: Option<String>) -> Self {
        let blocks = match of.map(|call| &call.kind) {
            Some(Kind::AllToAllV { send, receive }) => Some((send.clone(), receive.clone())),
            _ => None,
        };
        let bytes = of.map_or(0, |call| call.element.bytes);
        Self { call: call.clone(), element: (stable_hash(call.element.bytes()), bytes), blocks, lost }
    }

    pub(crate) fn to_bytes(&self, ranks: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes(ranks));
        let Self { call, element, blocks, lost } = self;
        put(&mut out, call.operation);
        put(&mut out, call.element);
        put(&mut out, call.reduction.unwrap_or_default());
        put(&mut out, lost.as_deref().unwrap_or_default());
        // 0 is no root, so that rank 0 is one.
        let root = call.root.map_or(0, |root| root as u64 + 1);
        let orders = call.order.len().min(ORDERS);
        let head = [
            u64::from(lost.is_some()),
            call.count as u64,
            root,
            element.0,
            element.1 as u64,
            u64::from(blocks.is_some()),
            orders as u64,
        ];
        let order = call.order.iter().take(ORDERS).flat_map(|(communicator, calls)| [*communicator, *calls]);
        let (to, from) = blocks.as_ref().map_or((&[][..], &[][..]), |(to, from)| (to, from));
        let blocks = to.iter().chain(from).map(|bytes| *bytes as u64);
        for number in head.into_iter().chain(order).chain(blocks) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        // Every rank gives as many bytes, as MPI wants for an exchange of all.
        out.resize(bytes(ranks), 0);
        out
    }

    /// Reads what another rank says. `None` if it is of another version of the library.
    pub(crate) fn from_bytes(mut from: &[u8], ranks: usize) -> Option<Self> {
        let from = &mut from;
        // Texts for the life of the process, as those of its own calls are.
        let (operation, element, reduction) = (known(get(from)?), known(get(from)?), known(get(from)?));
        let why = get(from)?.to_owned();
        let (lost, count, root) = (number(from)?, number(from)?, number(from)?);
        let element_id = (number(from)?, usize::try_from(number(from)?).ok()?);
        let (has_blocks, orders) = (number(from)?, number(from)?);
        let mut call = CollectiveCall::new(operation, element, usize::try_from(count).ok()?);
        call.reduction = (!reduction.is_empty()).then_some(reduction);
        call.root = usize::try_from(root).ok()?.checked_sub(1);
        // Bounded: the number comes from another process.
        for _ in 0..orders.min(ORDERS as u64) {
            call.order.push((number(from)?, number(from)?));
        }
        let mut block =
            || (0..ranks).map(|_| usize::try_from(number(from)?).ok()).collect::<Option<Vec<_>>>();
        let blocks = if has_blocks == 0 { None } else { Some((block()?, block()?)) };
        Some(Self { call, element: element_id, blocks, lost: (lost != 0).then_some(why) })
    }

    /// For the comparison that ranks of one process use.
    pub(crate) fn called(&self) -> Called {
        let kind = match (&self.blocks, self.call.operation) {
            (Some((send, receive)), _) => Kind::AllToAllV { send: send.clone(), receive: receive.clone() },
            (None, "send") => Kind::Send { to: 0 },
            (None, "receive") => Kind::Receive { from: 0 },
            // The kind matters only for pairs and blocks; else names are compared.
            _ => Kind::Barrier,
        };
        let element = ElementId::foreign(self.call.element, self.element.1, self.element.0);
        Called::new(self.call.clone(), kind, element)
    }
}

fn put(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(LONGEST);
    // A text that is cut within a character is no text at the other end.
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.extend_from_slice(&(end as u16).to_le_bytes());
    out.extend_from_slice(&text.as_bytes()[..end]);
}

fn get<'a>(from: &mut &'a [u8]) -> Option<&'a str> {
    let (length, rest) = from.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    *from = rest;
    std::str::from_utf8(text).ok()
}

fn number(from: &mut &[u8]) -> Option<u64> {
    let (bytes, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u64::from_le_bytes(*bytes))
}

/// The text for the life of the process. There are as many as element types and operations.
fn known(text: &str) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    /// More are not kept: the texts come from other processes.
    const MOST: usize = 4096;
    // A leaf: nothing but the set is touched under it.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match known.get(text) {
        Some(known) => known,
        None if known.len() >= MOST => "unknown",
        None => {
            let text = Box::leak(text.to_owned().into_boxed_str());
            known.insert(text);
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_as_they_were_written() {
        let mut call = CollectiveCall::new("all_to_all_v", "f32", 12);
        call.order = vec![(7, 1), (8, 2)];
        let blocks = Kind::AllToAllV { send: vec![4, 8], receive: vec![8, 0] };
        let said = Said::new(&call, Some(&Call::new::<f32>(blocks, 12)), None);
        let read = Said::from_bytes(&said.to_bytes(2), 2).unwrap();
        assert_eq!((&read.call, &read.blocks, &read.lost), (&said.call, &said.blocks, &None));
        assert_eq!((read.element, read.element.1), (said.element, 4));
        call.reduction = Some("sum");
        call.root = Some(0);
        let said = Said::new(&call, None, Some("its kernel failed".to_owned()));
        let read = Said::from_bytes(&said.to_bytes(2), 2).unwrap();
        assert_eq!((read.call, read.lost.as_deref()), (call, Some("its kernel failed")));
    }

    #[test]
    fn bytes_of_another_version_are_refused() {
        assert!(Said::from_bytes(&[], 2).is_none());
        assert!(Said::from_bytes(&[0xff; 64], 2).is_none());
        let bytes = Said::new(&CollectiveCall::new("barrier", "u8", 0), None, None).to_bytes(2);
        assert!(Said::from_bytes(&bytes[..20], 2).is_none());
    }
}
