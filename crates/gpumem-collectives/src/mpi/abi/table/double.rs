//! A double of the library, for ranks that are threads of one process: it does what the ABI says, and fails the call that a
//! rank's plan names.
#![allow(non_snake_case, reason = "the names of the library")]
#![allow(clippy::unwrap_used, reason = "tests")]

use super::{
    super::{ANY_SOURCE, BYTE, COMM_SELF, COMM_WORLD, IN_PLACE, INT32_T, REQUEST_NULL, SUCCESS, SUM},
    Combine, Count, DeleteAttribute, Functions, Object, Status, c_char, c_int, c_void,
};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The code of a call that fails.
const FAILED: c_int = 16;
/// That of a call at which the thread is to panic, which the functions of an ABI must not.
pub(crate) const PANICS: c_int = 17;
/// Where the numbers of objects begin.
const FIRST: usize = 0x10000;

/// What the ranks share.
#[derive(Debug, Default)]
pub(crate) struct World {
    size: usize,
    patience: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

/// What a rank gives to each rank.
type Given = Vec<Vec<u8>>;

#[derive(Debug, Default)]
struct State {
    mail: Vec<Mail>,
    /// What the ranks of a communicator have given, by its number and that of the operation.
    rounds: BTreeMap<(u64, u64), Vec<Option<Given>>>,
    calls: BTreeMap<(u64, usize), u64>,
    copies: BTreeMap<(u64, usize), u64>,
    /// How many ranks have come to make a communicator.
    groups: BTreeMap<u64, usize>,
}

#[derive(Debug)]
struct Mail {
    comm: u64,
    from: usize,
    to: usize,
    tag: c_int,
    bytes: Vec<u8>,
}

/// The call that goes wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) function: &'static str,
    /// How many calls of the function go well before.
    pub(crate) before: usize,
    pub(crate) panics: bool,
}

/// A rank of the world.
#[derive(Debug)]
pub(crate) struct Own {
    world: Arc<World>,
    rank: usize,
    plan: Mutex<Option<Plan>>,
    ending: Mutex<Finalising>,
}

/// What a rank does when MPI is finalised.
#[derive(Debug, Default)]
struct Finalising {
    /// What is called first, with the address of its attribute.
    delete: Option<DeleteAttribute>,
    attribute: usize,
    is_finalised: bool,
    is_called_late: bool,
}

#[derive(Debug, Clone)]
enum Entry {
    Comm { own: Arc<Own>, id: u64, ranks: Vec<usize> },
    Group { own: Arc<Own>, ranks: Vec<usize> },
    Request(Request),
    Type(usize),
    Op(Combine),
}

#[derive(Debug, Clone)]
struct Request {
    own: Arc<Own>,
    comm: u64,
    me: usize,
    to: usize,
    bytes: usize,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Nothing,
    Receive { from: c_int, tag: c_int },
    Meet { number: u64, combines: Option<(Object, Object)> },
}

static OBJECTS: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

thread_local! {
    static OWN: RefCell<Option<Arc<Own>>> = const { RefCell::new(None) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add(entry: Entry) -> Object {
    let mut objects = lock(&OBJECTS);
    objects.push(entry);
    Object(FIRST + objects.len() - 1)
}

fn entry(object: Object) -> Option<Entry> {
    lock(&OBJECTS).get(object.0.checked_sub(FIRST)?).cloned()
}

impl World {
    pub(crate) fn new(size: usize) -> Arc<Self> {
        Self::with_patience(size, Duration::from_secs(1))
    }

    /// Calls wait so long for other ranks, where the ABI has them wait.
    pub(crate) fn with_patience(size: usize, patience: Duration) -> Arc<Self> {
        Arc::new(Self { size, patience, ..Self::default() })
    }

    /// Makes this thread the library's thread of a rank.
    pub(crate) fn enter(self: &Arc<Self>, rank: usize, plan: Option<Plan>) -> Arc<Own> {
        let own =
            Arc::new(Own { world: self.clone(), rank, plan: Mutex::new(plan), ending: Mutex::default() });
        OWN.with_borrow_mut(|current| *current = Some(own.clone()));
        own
    }
}

impl Own {
    /// Whether the call of the plan has come.
    pub(crate) fn has_failed(&self) -> bool {
        lock(&self.plan).is_none()
    }

    /// What another library does at its end.
    pub(crate) fn finalise(&self) {
        let ending = lock(&self.ending);
        let (delete, attribute) = (ending.delete, ending.attribute);
        drop(ending);
        if let Some(delete) = delete {
            // SAFETY: the attribute that was set with the function.
            let done = unsafe { delete(COMM_SELF, 1, with_exposed_provenance_mut(attribute), null_mut()) };
            assert_eq!(done, SUCCESS);
        }
        lock(&self.ending).is_finalised = true;
    }

    /// Whether a function was called after that.
    pub(crate) fn is_called_late(&self) -> bool {
        lock(&self.ending).is_called_late
    }

    /// The code of a call that goes wrong.
    fn fails(&self, name: &str) -> Option<c_int> {
        let mut ending = lock(&self.ending);
        ending.is_called_late |= ending.is_finalised;
        drop(ending);
        let mut plan = lock(&self.plan);
        let planned = plan.as_mut().filter(|planned| planned.function == name)?;
        if planned.before > 0 {
            planned.before -= 1;
            return None;
        }
        let code = if planned.panics { PANICS } else { FAILED };
        *plan = None;
        Some(code)
    }
}

/// A call: fails if the plan says so.
fn call(name: &str, object: Option<Object>, body: impl FnOnce(Arc<Own>) -> c_int) -> c_int {
    let of_object = || match entry(object?)? {
        Entry::Comm { own, .. } | Entry::Group { own, .. } | Entry::Request(Request { own, .. }) => Some(own),
        _ => None,
    };
    match OWN.with_borrow(Clone::clone).or_else(of_object) {
        Some(own) => own.fails(name).unwrap_or_else(|| body(own)),
        // Threads of splits free groups.
        None => SUCCESS,
    }
}

/// The number, this rank's place and the ranks of a communicator.
fn comm(own: &Own, comm: Object) -> (u64, usize, Vec<usize>) {
    let (id, ranks) = match entry(comm) {
        Some(Entry::Comm { id, ranks, .. }) => (id, ranks),
        _ => (0, (0..own.world.size).collect()),
    };
    let me = ranks.iter().position(|rank| *rank == own.rank).unwrap();
    (id, me, ranks)
}

/// # Safety
/// The address is valid for so many bytes.
unsafe fn read(address: *const c_void, bytes: usize) -> Vec<u8> {
    if bytes == 0 {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(address.cast::<u8>(), bytes) }.to_vec()
}

fn size_of_type(datatype: Object) -> usize {
    match entry(datatype) {
        Some(Entry::Type(bytes)) => bytes,
        _ if datatype == BYTE => 1,
        _ => 4,
    }
}

/// Begins an operation of all ranks of a communicator.
fn meet(
    own: &Arc<Own>,
    on: Object,
    given: impl FnOnce(usize, usize) -> Given,
    (to, bytes): (*mut c_void, usize),
    combines: Option<(Object, Object)>,
    request: *mut Object,
) -> c_int {
    let (id, me, ranks) = comm(own, on);
    let given = given(me, ranks.len());
    let mut state = lock(&own.world.state);
    let calls = state.calls.entry((id, me)).or_default();
    let number = *calls;
    *calls += 1;
    state.rounds.entry((id, number)).or_insert_with(|| vec![None; ranks.len()])[me] = Some(given);
    drop(state);
    let to = to.expose_provenance();
    let what = What::Meet { number, combines };
    // SAFETY: the caller's place for the request.
    unsafe { *request = add(Entry::Request(Request { own: own.clone(), comm: id, me, to, bytes, what })) };
    SUCCESS
}

/// Whether a request is done, with the rank from which it has got bytes.
fn test(request: &Request) -> Result<Option<usize>, c_int> {
    let mut state = lock(&request.own.world.state);
    let (from, bytes) = match &request.what {
        What::Nothing => return Ok(Some(request.me)),
        What::Receive { from, tag } => {
            let is_it = |mail: &Mail| {
                (mail.comm, mail.to, mail.tag) == (request.comm, request.me, *tag)
                    && (*from == ANY_SOURCE || mail.from as c_int == *from)
            };
            let Some(at) = state.mail.iter().position(is_it) else { return Ok(None) };
            let mail = state.mail.remove(at);
            (mail.from, mail.bytes)
        }
        What::Meet { number, combines } => {
            let all = state.rounds.get(&(request.comm, *number)).unwrap();
            let mut parts = Vec::new();
            for given in all {
                let Some(given) = given else { return Ok(None) };
                parts.push(given.get(request.me).cloned().unwrap_or_default());
            }
            let bytes = match combines {
                Some(how) if request.bytes > 0 => combine(*how, parts),
                _ => parts.concat(),
            };
            (request.me, bytes)
        }
    };
    if bytes.len() > request.bytes {
        return Err(FAILED);
    }
    if !bytes.is_empty() {
        let to = with_exposed_provenance_mut::<u8>(request.to);
        // SAFETY: the engine keeps the buffer of so many bytes until it is done.
        unsafe { bytes.as_ptr().copy_to_nonoverlapping(to, bytes.len()) };
    }
    Ok(Some(from))
}

fn combine((datatype, operation): (Object, Object), parts: Vec<Vec<u8>>) -> Vec<u8> {
    let mut parts = parts.into_iter();
    let mut all = parts.next().unwrap_or_default();
    for part in parts {
        if let Some(Entry::Op(function)) = entry(operation) {
            let (mut count, mut datatype) = ((all.len() / size_of_type(datatype)) as i64, datatype);
            let (input, in_out) = (part.as_ptr().cast_mut().cast(), all.as_mut_ptr().cast());
            // SAFETY: both have so many elements.
            unsafe { function(input, in_out, &mut count, (&raw mut datatype).cast()) };
        } else {
            assert_eq!((datatype, operation), (INT32_T, SUM), "the tests use no other");
            for (one, other) in all.chunks_exact_mut(4).zip(part.chunks_exact(4)) {
                let number = |four: &[u8]| i32::from_le_bytes(four.try_into().unwrap());
                let sum = number(one).wrapping_add(number(other));
                one.copy_from_slice(&sum.to_le_bytes());
            }
        }
    }
    all
}

fn is_in_place(address: *const c_void) -> bool {
    address.addr() == IN_PLACE
}

/// Cuts bytes into equal blocks for the ranks.
fn blocks(bytes: Vec<u8>, ranks: usize) -> Given {
    let block = bytes.len() / ranks;
    (0..ranks).map(|rank| bytes[rank * block..(rank + 1) * block].to_vec()).collect()
}

/// The same for one rank alone.
fn only(root: c_int, bytes: Vec<u8>, ranks: usize) -> Given {
    (0..ranks).map(|rank| if rank as c_int == root { bytes.clone() } else { Vec::new() }).collect()
}

/// Writes an answer of the library.
///
/// # Safety
/// A place for the answer.
unsafe fn answer<T>(place: *mut T, value: T) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { *place = value };
    SUCCESS
}

macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*) = ($object:expr, |$own:ident| $body:expr);)*) => {
        $(
            /// # Safety
            /// That of the ABI.
            unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
                // SAFETY: the engine keeps to the ABI.
                #[allow(unused_unsafe, reason = "not every function gets a pointer")]
                unsafe {
                    call(stringify!($name), $object, |$own| $body)
                }
            }
        )*

        impl Functions {
            /// Those of the double.
            pub(crate) fn of_double() -> Self {
                Self { $($name: Some($name)),* }
            }
        }

        /// The names of the functions.
        pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

functions! {
    fn MPI_Abi_get_version(major: *mut c_int, minor: *mut c_int) = (None, |_own| answer(major, 1) + answer(minor, 0));
    fn MPI_Get_library_version(_text: *mut c_char, length: *mut c_int) = (None, |_own| answer(length, 0));
    fn MPI_Initialized(flag: *mut c_int) = (None, |_own| answer(flag, 0));
    fn MPI_Finalized(flag: *mut c_int) = (None, |_own| answer(flag, 0));
    fn MPI_Init_thread(_argc: *mut c_int, _argv: *mut c_void, required: c_int, provided: *mut c_int) = (None, |_own| answer(provided, required));
    fn MPI_Query_thread(provided: *mut c_int) = (None, |_own| answer(provided, 0));
    fn MPI_Finalize() = (None, |_own| SUCCESS);
    fn MPI_Error_string(_code: c_int, _text: *mut c_char, length: *mut c_int) = (None, |_own| answer(length, 0));
    fn MPI_Comm_set_errhandler(on: Object, _handler: Object) = (Some(on), |_own| SUCCESS);
    fn MPI_Comm_create_keyval(_copy: *const c_void, delete: DeleteAttribute, key: *mut c_int, _state: *mut c_void) = (None, |own| {
        lock(&own.ending).delete = Some(delete);
        answer(key, 1)
    });
    fn MPI_Comm_set_attr(on: Object, _key: c_int, value: *mut c_void) = (Some(on), |own| {
        lock(&own.ending).attribute = value.expose_provenance();
        SUCCESS
    });
    fn MPI_Comm_rank(on: Object, rank: *mut c_int) = (Some(on), |own| answer(rank, comm(&own, on).1 as c_int));
    fn MPI_Comm_size(on: Object, size: *mut c_int) = (Some(on), |own| answer(size, comm(&own, on).2.len() as c_int));
    fn MPI_Comm_idup(on: Object, copy: *mut Object, request: *mut Object) = (Some(on), |own| {
        assert!(on == COMM_WORLD || on != COMM_SELF);
        let (parent, me, ranks) = comm(&own, on);
        let mut state = lock(&own.world.state);
        let copies = state.copies.entry((parent, me)).or_default();
        *copies += 1;
        let id = parent * 1_000_000 + *copies;
        drop(state);
        answer(copy, add(Entry::Comm { own: own.clone(), id, ranks }));
        let done = Request { own, comm: id, me, to: 0, bytes: 0, what: What::Nothing };
        answer(request, add(Entry::Request(done)))
    });
    fn MPI_Comm_group(on: Object, group: *mut Object) = (Some(on), |own| {
        let (_, _, ranks) = comm(&own, on);
        answer(group, add(Entry::Group { own, ranks }))
    });
    fn MPI_Comm_create_group(on: Object, group: Object, tag: c_int, part: *mut Object) = (Some(on), |own| {
        let Some(Entry::Group { ranks, .. }) = entry(group) else { return FAILED };
        let id = comm(&own, on).0 * 1_000_000 + 500_000 + tag as u64;
        let mut state = lock(&own.world.state);
        *state.groups.entry(id).or_default() += 1;
        own.world.changed.notify_all();
        let is_alone = |state: &mut State| state.groups.get(&id).is_some_and(|came| *came < ranks.len());
        let waited = own.world.changed.wait_timeout_while(state, own.world.patience, is_alone);
        let is_late = waited.unwrap_or_else(PoisonError::into_inner).1.timed_out();
        if is_late { FAILED } else { answer(part, add(Entry::Comm { own: own.clone(), id, ranks })) }
    });
    fn MPI_Comm_free(on: *mut Object) = (Some(*on), |_own| SUCCESS);
    fn MPI_Group_incl(group: Object, count: c_int, ranks: *const c_int, part: *mut Object) = (Some(group), |own| {
        let Some(Entry::Group { ranks: all, .. }) = entry(group) else { return FAILED };
        let named = std::slice::from_raw_parts(ranks, count as usize);
        let ranks = named.iter().map(|rank| all[*rank as usize]).collect();
        answer(part, add(Entry::Group { own, ranks }))
    });
    fn MPI_Group_free(group: *mut Object) = (Some(*group), |_own| SUCCESS);
    fn MPI_Type_contiguous_c(count: Count, _element: Object, datatype: *mut Object) = (None, |_own| answer(datatype, add(Entry::Type(count as usize))));
    fn MPI_Type_commit(_datatype: *mut Object) = (None, |_own| SUCCESS);
    fn MPI_Op_create_c(function: Combine, _commutes: c_int, operation: *mut Object) = (None, |_own| answer(operation, add(Entry::Op(function))));
    fn MPI_Test(request: *mut Object, flag: *mut c_int, status: *mut Status) = (Some(*request), |_own| {
        let Some(Entry::Request(pending)) = entry(*request) else { return FAILED };
        match test(&pending) {
            Err(code) => code,
            Ok(None) => answer(flag, 0),
            Ok(Some(from)) => {
                (*status).source = from as c_int;
                answer(request, REQUEST_NULL) + answer(flag, 1)
            }
        }
    });
    fn MPI_Isend_c(data: *const c_void, count: Count, _datatype: Object, to: c_int, tag: c_int, on: Object, request: *mut Object) = (Some(on), |own| {
        let (id, me, _) = comm(&own, on);
        let mail = Mail { comm: id, from: me, to: to as usize, tag, bytes: read(data, count as usize) };
        lock(&own.world.state).mail.push(mail);
        let done = Request { own, comm: id, me, to: 0, bytes: 0, what: What::Nothing };
        answer(request, add(Entry::Request(done)))
    });
    fn MPI_Irecv_c(data: *mut c_void, count: Count, _datatype: Object, from: c_int, tag: c_int, on: Object, request: *mut Object) = (Some(on), |own| {
        let (id, me, _) = comm(&own, on);
        let (to, bytes, what) = (data.expose_provenance(), count as usize, What::Receive { from, tag });
        answer(request, add(Entry::Request(Request { own, comm: id, me, to, bytes, what })))
    });
    fn MPI_Ibarrier(on: Object, request: *mut Object) = (Some(on), |own| {
        meet(&own, on, |_, _| Given::new(), (std::ptr::null_mut(), 0), None, request)
    });
    fn MPI_Ibcast_c(data: *mut c_void, count: Count, _datatype: Object, root: c_int, on: Object, request: *mut Object) = (Some(on), |own| {
        let given = |me: usize, ranks| if me as c_int == root { vec![read(data, count as usize); ranks] } else { Given::new() };
        meet(&own, on, given, (data, count as usize), None, request)
    });
    fn MPI_Iallreduce_c(_send: *const c_void, receive: *mut c_void, count: Count, datatype: Object, operation: Object, on: Object, request: *mut Object) = (Some(on), |own| {
        let bytes = count as usize * size_of_type(datatype);
        meet(&own, on, |_, ranks| vec![read(receive, bytes); ranks], (receive, bytes), Some((datatype, operation)), request)
    });
    fn MPI_Ireduce_c(send: *const c_void, receive: *mut c_void, count: Count, datatype: Object, operation: Object, root: c_int, on: Object, request: *mut Object) = (Some(on), |own| {
        let bytes = count as usize * size_of_type(datatype);
        let from = if is_in_place(send) { receive.cast_const() } else { send };
        let got = if comm(&own, on).1 as c_int == root { bytes } else { 0 };
        meet(&own, on, |_, ranks| only(root, read(from, bytes), ranks), (receive, got), Some((datatype, operation)), request)
    });
    fn MPI_Ireduce_scatter_block_c(_send: *const c_void, receive: *mut c_void, count: Count, datatype: Object, operation: Object, on: Object, request: *mut Object) = (Some(on), |own| {
        let bytes = count as usize * size_of_type(datatype);
        meet(&own, on, |_, ranks| blocks(read(receive, ranks * bytes), ranks), (receive, bytes), Some((datatype, operation)), request)
    });
    fn MPI_Iallgather_c(send: *const c_void, send_count: Count, _send_type: Object, receive: *mut c_void, receive_count: Count, _receive_type: Object, on: Object, request: *mut Object) = (Some(on), |own| {
        let block = receive_count as usize;
        let ranks = comm(&own, on).2.len();
        let given = |me, ranks| vec![match is_in_place(send) {
            true => read(with_exposed_provenance(receive.expose_provenance() + me * block), block),
            false => read(send, send_count as usize),
        }; ranks];
        meet(&own, on, given, (receive, ranks * block), None, request)
    });
    fn MPI_Igather_c(send: *const c_void, send_count: Count, _send_type: Object, receive: *mut c_void, receive_count: Count, _receive_type: Object, root: c_int, on: Object, request: *mut Object) = (Some(on), |own| {
        let (_, me, ranks) = comm(&own, on);
        let got = if me as c_int == root { ranks.len() * receive_count as usize } else { 0 };
        meet(&own, on, |_, ranks| only(root, read(send, send_count as usize), ranks), (receive, got), None, request)
    });
    fn MPI_Iscatter_c(send: *const c_void, send_count: Count, _send_type: Object, receive: *mut c_void, receive_count: Count, _receive_type: Object, root: c_int, on: Object, request: *mut Object) = (Some(on), |own| {
        let given = |me: usize, ranks| match me as c_int == root {
            true => blocks(read(send, ranks * send_count as usize), ranks),
            false => Given::new(),
        };
        meet(&own, on, given, (receive, receive_count as usize), None, request)
    });
    fn MPI_Ialltoall_c(send: *const c_void, send_count: Count, _send_type: Object, receive: *mut c_void, receive_count: Count, _receive_type: Object, on: Object, request: *mut Object) = (Some(on), |own| {
        let got = comm(&own, on).2.len() * receive_count as usize;
        meet(&own, on, |_, ranks| blocks(read(send, ranks * send_count as usize), ranks), (receive, got), None, request)
    });
    fn MPI_Ialltoallv_c(send: *const c_void, send_counts: *const Count, send_offsets: *const Count, _send_type: Object, receive: *mut c_void, receive_counts: *const Count, _receive_offsets: *const Count, _receive_type: Object, on: Object, request: *mut Object) = (Some(on), |own| {
        let ranks = comm(&own, on).2.len();
        let got = std::slice::from_raw_parts(receive_counts, ranks).iter().sum::<Count>() as usize;
        let given = |_, ranks| (0..ranks).map(|rank| {
            let (offset, count) = (*send_offsets.add(rank) as usize, *send_counts.add(rank) as usize);
            read(send.cast::<u8>().wrapping_add(offset).cast(), count)
        }).collect();
        meet(&own, on, given, (receive, got), None, request)
    });
}
