//! Memory that grows in place, as the trait wants it.

use super::{
    Block, Owner,
    mapping::{IS_SUPPORTED, Mapping},
};
use crate::engine::Engine;
use crate::error::{error, invalid};
use crate::inject::Operation;
use crate::sync::lock;
use gpumem_core::{ErrorKind, MemoryKind, Reservation, Result, process::page_size};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// The reservations of a device, by address.
#[derive(Debug, Default)]
pub(crate) struct Reservations(Mutex<BTreeMap<u64, Reserved>>);

#[derive(Debug)]
struct Reserved {
    mapping: Arc<Mapping>,
    /// Number of the block that covers what has memory behind it.
    serial: u64,
    /// Bytes from the beginning that have memory behind them.
    bytes: usize,
}

impl Reservations {
    /// Forgets everything, after a reset.
    pub(crate) fn clear(&self) {
        let gone = std::mem::take(&mut *lock(&self.0));
        drop(gone);
    }
}

const GONE: &str = "the reservation is none of this device, or was given back";

pub(crate) fn reserve(engine: &Engine, bytes: usize) -> Result<Reservation> {
    engine.enter("reserve", Operation::Reserve)?;
    let page = page_size();
    let whole = bytes.max(1).checked_next_multiple_of(page);
    let unsupported = || error("reserve", ErrorKind::Unsupported { what: "memory that grows in place" });
    if !IS_SUPPORTED {
        return Err(unsupported());
    }
    let mapping = whole.and_then(|whole| Mapping::reserve(whole).ok()).ok_or_else(|| {
        // The system has no addresses left, or does not give them to this process.
        let kind = MemoryKind::Device.name();
        error("reserve", ErrorKind::OutOfMemory { requested: bytes, kind, free: 0, total: 0, pressure: None })
    })?;
    let (address, bytes) = (mapping.start().as_ptr().addr() as u64, mapping.len());
    let reserved = Reserved { mapping: Arc::new(mapping), serial: 0, bytes: 0 };
    lock(&engine.reservations().0).insert(address, reserved);
    Ok(Reservation { address, bytes, page })
}

pub(crate) fn commit(engine: &Engine, place: &Reservation, from: usize, bytes: usize) -> Result<()> {
    engine.enter("commit", Operation::Commit)?;
    let mut all = lock(&engine.reservations().0);
    let reserved = all.get_mut(&place.address).ok_or_else(|| invalid("commit", GONE))?;
    let fits = from.checked_add(bytes).is_some_and(|end| end <= reserved.mapping.len());
    if from != reserved.bytes || !fits || bytes == 0 || !bytes.is_multiple_of(place.page) {
        return Err(invalid("commit", "memory is put in by whole pages, behind what is there"));
    }
    let out_of_memory = |info: gpumem_core::MemoryInfo| {
        let (kind, free, total) = (MemoryKind::Device.name(), info.free, info.total);
        error("commit", ErrorKind::OutOfMemory { requested: bytes, kind, free, total, pressure: None })
    };
    engine.budget().take(bytes).map_err(out_of_memory)?;
    if reserved.mapping.set(from, bytes, true).is_err() {
        engine.budget().give_back(bytes);
        return Err(out_of_memory(engine.budget().info()));
    }
    config_for_items(engine, reserved, from + bytes);
    let counters = engine.counters();
    counters.allocations.up();
    counters.live_allocations.up();
    counters.live_bytes(MemoryKind::Device).add(bytes as u64);
    Ok(())
}

pub(crate) fn decommit(engine: &Engine, place: &Reservation, from: usize, bytes: usize) -> Result<()> {
    engine.enter("decommit", Operation::Decommit)?;
    let mut all = lock(&engine.reservations().0);
    let reserved = all.get_mut(&place.address).ok_or_else(|| invalid("decommit", GONE))?;
    if bytes == 0 || from.checked_add(bytes) != Some(reserved.bytes) {
        return Err(invalid("decommit", "memory is taken back from the end"));
    }
    // First out of the table, so that no command begins to use it.
    config_for_items(engine, reserved, from);
    if let Err(why) = reserved.mapping.set(from, bytes, false) {
        config_for_items(engine, reserved, from + bytes);
        let code = why.raw_os_error().unwrap_or(0);
        return Err(error("decommit", ErrorKind::Driver { code, name: "errno of mmap" }));
    }
    engine.budget().give_back(bytes);
    let counters = engine.counters();
    counters.releases.up();
    counters.live_allocations.down();
    counters.live_bytes(MemoryKind::Device).sub(bytes as u64);
    Ok(())
}

pub(crate) fn unreserve(engine: &Engine, place: &Reservation) -> Result<()> {
    engine.enter("unreserve", Operation::Unreserve)?;
    let mut all = lock(&engine.reservations().0);
    match all.get(&place.address) {
        None => Err(invalid("unreserve", GONE)),
        Some(reserved) if reserved.bytes > 0 => Err(invalid("unreserve", "there is memory behind it")),
        // Commands that still run keep the mapping.
        Some(_) => {
            all.remove(&place.address);
            Ok(())
        }
    }
}

/// Lets one block of the table stand for the first `bytes` bytes. A command that runs keeps the block that it has found.
fn config_for_items(engine: &Engine, reserved: &mut Reserved, bytes: usize) {
    let table = &engine.process().table;
    if bytes == 0 {
        // It is there, because something was.
        let _ = table.release(reserved.mapping.start().as_ptr().addr(), reserved.serial, false);
    } else {
        reserved.serial = engine.process().serial();
        let owner = Owner { ordinal: engine.ordinal(), serial: reserved.serial, poison: false };
        table.insert(Arc::new(Block::mapped(&reserved.mapping, bytes, owner)));
    }
    reserved.bytes = bytes;
}
