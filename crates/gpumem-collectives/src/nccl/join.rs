//! Setting a communicator up. That waits for the other ranks, so a thread of its own does it.

use super::{
    LibraryEnd, Link,
    device_order::DeviceOrder,
    library::library,
    link::{Handle, LastSubmission, Phase, State},
    peers::Peers,
    register::Registrations,
};
use crate::{
    CommunicatorId, Options,
    identity::{EngineKind, stable_hash},
};
use gpumem_core::{
    Backend, CollectiveCause, ErrorKind, Result,
    process::{DriverUse, ProcessGuard},
};
use gpumem_runtime::Device;
use gpumem_sys::nccl::{Failure, ncclUniqueId};
use std::{
    ptr::null_mut,
    sync::{
        Arc, Condvar, Mutex, Once,
        atomic::{AtomicBool, AtomicU64},
    },
    thread,
};

/// Makes an identity.
pub(crate) fn identity<B: Backend>(
    operation: &'static str,
    device: &Device<B>,
    kind: EngineKind,
) -> Result<CommunicatorId> {
    let library = library(kind).map_err(|error| device.core_by(crate::KEY).error(operation, error))?;
    let why = |failure: Failure| device.core_by(crate::KEY).error(operation, driver(&failure));
    let id = library.unique_id().map_err(why)?;
    Ok(CommunicatorId::of(kind, &id.internal.map(|byte| byte as u8)))
}

/// The library's failure as one of a driver.
pub(super) fn driver(failure: &Failure) -> ErrorKind {
    match failure {
        Failure::Status { status, .. } => {
            let name = gpumem_sys::nccl::name(*status).unwrap_or("unknown result");
            ErrorKind::Driver { code: status.0 as i32, name }
        }
        _ => ErrorKind::Unsupported { what: "this function, in the library that was found" },
    }
}

/// Joins a communicator. Returns at once.
pub(crate) fn join<B: Backend>(
    device: &Device<B>,
    id: &CommunicatorId,
    (rank, size): (usize, usize),
    options: &Options,
    kind: EngineKind,
) -> Result<LibraryEnd<B>> {
    const OPERATION: &str = "join";
    let library = library(kind).map_err(|error| device.core_by(crate::KEY).error(OPERATION, error))?;
    let refused = |why| device.core_by(crate::KEY).error(OPERATION, ErrorKind::InvalidArgument { why });
    let too_many = |_| refused("there are more ranks than the library can have");
    let numbers = (i32::try_from(rank).map_err(too_many)?, i32::try_from(size).map_err(too_many)?);
    let barrier = device.to_device(&[0_u8]).map_err(|error| error.in_operation(OPERATION))?;
    let communicator = stable_hash(id.payload());
    let link = Arc::new(Link {
        communicator,
        peers: Peers::of(communicator, size, options).map_err(refused)?,
        library,
        kind,
        device: device.clone(),
        rank,
        size,
        options: options.clone(),
        order: Mutex::new(()),
        last: LastSubmission::default(),
        device_order: if options.concurrent { None } else { Some(DeviceOrder::of(device)?) },
        barrier,
        registered: Mutex::new(Registrations::new()),
        splits: AtomicU64::new(0),
        buffers: Mutex::new(Vec::new()),
        state: Mutex::new(State::new((rank, size))),
        changed: Condvar::new(),
        is_inside: AtomicBool::new(false),
    });
    let own = Arc::downgrade(&link);
    link.peers.add(rank, own).map_err(refused)?;
    let unique = ncclUniqueId { internal: id.payload().map(|byte| byte as _) };
    let joining = link.clone();
    let begin = thread::Builder::new().name("gpumem:join".to_owned());
    let mut state = link.lock();
    let started = link.watch(&mut state).and_then(|()| {
        let started = begin.spawn(move || init(&joining, unique, numbers));
        let why = |error| format!("no thread could be started: {error}");
        started.map(drop).map_err(|error| CollectiveCause::Library { why: why(error) })
    });
    if started.is_err() {
        state.phase = Phase::Closed;
    }
    drop(state);
    started.map_err(|cause| link.error(OPERATION, 0, cause))?;
    Ok(LibraryEnd(link))
}

/// Waits for the other ranks, and then makes the communicator ready.
fn init<B: Backend>(link: &Arc<Link<B>>, id: ncclUniqueId, (rank, size): (i32, i32)) {
    let mut handle = null_mut();
    let library = link.library;
    let _use = DriverUse::new();
    if !link.device.core_by(crate::KEY).origin.is_valid() {
        return;
    }
    // SAFETY: a place for the communicator, and a rank below the number of ranks.
    let made = link
        .device
        .with_current(|| library.check(unsafe { library.ncclCommInitRank(&mut handle, size, id, rank) }));
    // The library registers what it does at the end of the process when it makes its first communicator.
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        ProcessGuard::of_driver();
    });
    // Not while the library waits for other ranks: the rank may be given up meanwhile.
    let mut state = link.lock();
    match made {
        // It may have been given up meanwhile.
        Ok(()) if state.rank.revoked.is_some() || state.rank.has_left => {
            state.phase = Phase::Closing;
            drop(state);
            link.abort_handle(Handle(handle));
        }
        Ok(()) => state.phase = Phase::Ready(Handle(handle)),
        Err(failure) => {
            let why = failure.to_string();
            state.rank.revoked.get_or_insert(CollectiveCause::Library { why });
            drop(state);
            link.note_closed();
        }
    }
    link.changed.notify_all();
}
