//! All objects of the process, found by the addresses of GPUs and of the host.

use super::object::{Kind, Object};
use std::collections::BTreeMap;

/// All objects of the process.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Objects that share no GPU address with others, by their first address.
    by_address: BTreeMap<u64, Object>,
    /// Registered memory that keeps its own addresses: such ranges can share pages.
    in_place: Vec<Object>,
}

impl Table {
    pub(super) fn insert(&mut self, object: Object) {
        if object.backing.is_some() {
            self.by_address.insert(object.address, object);
        } else {
            self.in_place.push(object);
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Object> {
        self.by_address.values().chain(&self.in_place)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Object> {
        self.by_address.values_mut().chain(&mut self.in_place)
    }

    /// The object at a GPU address, without a check of access.
    pub(super) fn at(&self, address: u64) -> Option<&Object> {
        let exclusive = self.by_address.range(..=address).next_back().map(|(_, object)| object);
        exclusive
            .filter(|object| object.contains(address, 1))
            .or_else(|| self.in_place.iter().find(|object| object.contains(address, 1)))
    }

    /// The object through which a GPU may reach all of the range.
    pub(super) fn usable(&self, node: u32, address: u64, bytes: u64) -> Option<&Object> {
        let usable = |object: &&Object| object.contains(address, bytes) && object.is_mapped_for(node);
        let exclusive = self.by_address.range(..=address).next_back().map(|(_, object)| object);
        exclusive.filter(usable).or_else(|| self.in_place.iter().find(usable))
    }

    /// The object that begins at a GPU address and shares it with no other.
    pub(super) fn get(&self, address: u64) -> Option<&Object> {
        self.by_address.get(&address)
    }

    /// As [`get`](Self::get), to be changed.
    pub(super) fn get_mut(&mut self, address: u64) -> Option<&mut Object> {
        self.by_address.get_mut(&address)
    }

    /// Takes out the object that begins at a GPU address.
    pub(super) fn remove_at(&mut self, address: u64) -> Option<Object> {
        self.by_address.remove(&address)
    }

    /// Whether another object has some of the GPU addresses of this one.
    pub(super) fn overlaps(&self, object: &Object) -> bool {
        let before = self.by_address.range(..object.address.saturating_add(object.bytes)).next_back();
        before.is_some_and(|(_, before)| before.address.saturating_add(before.bytes) > object.address)
    }

    /// The registration of exactly that memory.
    pub(super) fn registration(&mut self, address: u64, bytes: u64) -> Option<&mut Object> {
        self.iter_mut().find(|object| object.kind == Kind::Registered { address, bytes })
    }

    /// Finds the object that a caller of the thunk means by an address: memory of the GPUs there (which cannot be the
    /// program's own as well), else registered memory that starts there (of that length, if there are several), else
    /// around it.
    fn rank(object: &Object, address: u64, bytes: u64) -> Option<u32> {
        match object.kind {
            _ if object.backing.is_some() && object.contains(address, 1) => Some(0),
            Kind::Registered { address: start, bytes: length } if start == address && length == bytes => {
                Some(1)
            }
            Kind::Registered { address: start, .. } if start == address => Some(2),
            _ if object.contains_registered(address) => Some(3),
            _ => None,
        }
    }

    /// The object that a caller of the thunk means.
    pub(super) fn meant(&self, address: u64, bytes: u64) -> Option<&Object> {
        self.iter()
            .filter_map(|object| Some((Self::rank(object, address, bytes)?, object)))
            .min_by_key(|(rank, _)| *rank)
            .map(|(_, object)| object)
    }

    /// As [`meant`](Self::meant), to be changed.
    pub(super) fn meant_mut(&mut self, address: u64, bytes: u64) -> Option<&mut Object> {
        self.iter_mut()
            .filter_map(|object| Some((Self::rank(object, address, bytes)?, object)))
            .min_by_key(|(rank, _)| *rank)
            .map(|(_, object)| object)
    }

    /// Takes out the object that was allocated at that address.
    pub(super) fn remove_allocated(&mut self, address: u64) -> Option<Object> {
        match self.by_address.get(&address)?.kind {
            Kind::Allocated | Kind::Scratch => self.by_address.remove(&address),
            _ => None,
        }
    }

    /// Takes out the registered or shared object that [`meant`](Self::meant) finds.
    pub(super) fn remove_registered(&mut self, address: u64) -> Option<Object> {
        let object = self.meant(address, 0)?;
        match object.kind {
            Kind::Registered { .. } if object.backing.is_none() => {
                let (start, kind) = (object.address, object.kind);
                let index = self.in_place.iter().position(|o| o.address == start && o.kind == kind)?;
                Some(self.in_place.swap_remove(index))
            }
            Kind::Registered { .. } | Kind::Shared => {
                let start = object.address;
                self.by_address.remove(&start)
            }
            _ => None,
        }
    }

    /// Whether the host address lies in memory that was registered.
    pub(super) fn is_registered(&self, host: u64) -> bool {
        self.iter().any(|object| object.contains_registered(host))
    }
}
