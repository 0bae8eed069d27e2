//! Each function of the library fails in turn on one rank, or the engine's thread panics there: every rank gets a typed error in
//! time, and no wrong numbers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use crate::{
    Communicator, InPlace, Max, Options, Sum,
    identity::stable_hash,
    mpi::{
        DoubleRank, Ending, Functions, Mpi, MpiEnd,
        double::{NAMES, Plan, World},
    },
};
use gpumem_core::{CollectiveCause, ErrorKind, Result};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::Device;
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel},
    },
    thread,
    time::Duration,
};

/// How long ranks wait for each other.
const TIMEOUT: Duration = Duration::from_millis(400);
/// How long the test waits for them: longer than any deadline, with the load of other tests.
const HANGS: Duration = Duration::from_secs(60);
/// Calls of a function that fail in turn.
const CALLS: usize = 3;
/// Runs at once.
const AT_ONCE: usize = 36;
/// Steps of a rank.
const STEPS: usize = 15;

fn library() -> &'static Mpi {
    Box::leak(Box::new(Mpi { functions: Functions::of_double(), version: "a double".to_owned() }))
}

/// Functions that ranks do not call here: those of loading the library, of a program that has initialised it, and of errors.
const NOT_CALLED: &[&str] =
    &["MPI_Abi_get_version", "MPI_Get_library_version", "MPI_Query_thread", "MPI_Error_string"];

/// All operations, each waited for. Counts the steps that have gone well.
fn all_operations(comm: &Communicator<Host>, done: &mut usize) -> Result<()> {
    let stream = comm.device().stream()?;
    let (rank, other) = (comm.rank() as i32, 1 - comm.rank());
    let mut step = |is_right: bool| {
        assert!(is_right, "wrong numbers after {done} steps");
        *done += 1;
    };
    let of = |numbers: &[i32]| stream.to_device(numbers);
    let none = || stream.to_device(&[0, 0]);

    let mut array = of(&[rank + 3])?;
    comm.on(&stream).broadcast(&mut array, 1)?;
    step(array.copy_to_host()?.to_vec() == [4]);
    comm.on(&stream).all_reduce(InPlace, &mut array, Sum)?;
    step(array.copy_to_host()?.to_vec() == [8]);
    let mut floats = stream.to_device(&[rank as f32])?;
    comm.on(&stream).all_reduce(InPlace, &mut floats, Max)?;
    step(floats.copy_to_host()?.to_vec() == [1.0]);
    let mut array = of(&[rank + 1])?;
    comm.on(&stream).reduce(InPlace, Some(array.view_mut()), Sum, 0)?;
    step(array.copy_to_host()?.to_vec() == [if rank == 0 { 3 } else { 2 }]);
    let (own, mut both) = (of(&[rank])?, none()?);
    comm.on(&stream).all_gather(&own, &mut both)?;
    step(both.copy_to_host()?.to_vec() == [0, 1]);
    let mut scattered = of(&[0])?;
    comm.on(&stream).reduce_scatter(&both, &mut scattered, Sum)?;
    step(scattered.copy_to_host()?.to_vec() == [2 * rank]);
    let (pair, mut swapped) = (of(&[10 * rank, 10 * rank + 1])?, none()?);
    comm.on(&stream).all_to_all(&pair, &mut swapped)?;
    step(swapped.copy_to_host()?.to_vec() == [rank, 10 + rank]);
    comm.on(&stream).all_to_all_v((&pair, &[1, 1]), (&mut swapped, &[1, 1]))?;
    step(swapped.copy_to_host()?.to_vec() == [rank, 10 + rank]);
    let mut gathered = none()?;
    let root = if rank == 0 { Some(gathered.view_mut()) } else { None };
    comm.on(&stream).gather(&own, root, 0)?;
    step(gathered.copy_to_host()?.to_vec() == [0, 1 - rank]);
    let source = if rank == 0 { Some(pair.view()) } else { None };
    comm.on(&stream).scatter(source, &mut scattered, 0)?;
    step(scattered.copy_to_host()?.to_vec() == [rank]);
    comm.group(&stream, |group| {
        group.send(&own, other)?;
        group.receive(&mut scattered, other)
    })?;
    step(scattered.copy_to_host()?.to_vec() == [1 - rank]);
    comm.on(&stream).barrier()?;
    stream.synchronize()?;
    step(true);
    let part = comm.split(Some(0), i64::from(-rank))?;
    step(part.is_some());
    if let Some(part) = part {
        let mut array = of(&[rank])?;
        part.on(&stream).broadcast(&mut array, 0)?;
        step(array.copy_to_host()?.to_vec() == [1]);
        part.on(&stream).barrier()?;
        stream.synchronize()?;
        step(true);
    }
    Ok(())
}

/// Many operations before the first wait, so that the engine has some in each of its lists. Waits for each.
fn many_at_once(comm: &Communicator<Host>, done: &mut usize) -> Result<()> {
    let streams = [comm.device().stream()?, comm.device().stream()?];
    let other = 1 - comm.rank();
    let mut sums = Vec::new();
    for value in 0..4 {
        sums.push(streams[0].to_device(&[value])?);
    }
    let (own, mut theirs) = (streams[1].to_device(&[comm.rank() as i32])?, streams[1].to_device(&[-1])?);
    let mut outcomes: Vec<Result<()>> =
        sums.iter_mut().map(|sum| comm.on(&streams[0]).all_reduce(InPlace, sum, Sum)).collect();
    outcomes.push(comm.group(&streams[1], |group| {
        group.send(&own, other)?;
        group.receive(&mut theirs, other)
    }));
    let part = comm.split(Some(0), 0);
    outcomes.extend(streams.iter().map(|stream| stream.synchronize()));
    outcomes.push(part.map(drop));
    // Arrays of operations that were refused are as they were.
    let called: Vec<bool> = outcomes.iter().take(sums.len() + 1).map(Result::is_ok).collect();
    for ((value, sum), is_called) in (0..).zip(&sums).zip(&called) {
        outcomes.push(sum.get(0).map(|sum| assert!(!is_called || sum == 2 * value, "{sum}")));
    }
    let is_called = called[sums.len()];
    outcomes.push(theirs.get(0).map(|theirs| assert!(!is_called || theirs == other as i32, "{theirs}")));
    outcomes.into_iter().collect::<Result<()>>()?;
    *done = STEPS;
    Ok(())
}

type Program = fn(&Communicator<Host>, &mut usize) -> Result<()>;

/// What a rank tells at its end: its number, its steps, and its error with whether it is a typed one.
type Told = (usize, usize, Option<(String, bool)>);

/// Starts two ranks. The plan is that of the first.
fn start_ranks(
    mpi: &'static Mpi,
    plan: Option<Plan>,
    options: &Options,
    program: Program,
) -> (Receiver<Told>, Arc<Mutex<bool>>) {
    let (world, (tell, told)) = (World::new(2), channel());
    let has_failed = Arc::new(Mutex::new(false));
    for rank in 0..2 {
        let (world, tell, has_failed) = (world.clone(), tell.clone(), has_failed.clone());
        let (plan, options) = (plan.filter(|_| rank == 0), options.clone());
        thread::spawn(move || {
            let (give, own) = channel();
            let running = DoubleRank::start(mpi, move || {
                let _ = give.send(world.enter(rank, plan));
            });
            let mut done = 0;
            let outcome = running.map_err(|why| (why, true)).and_then(|running| {
                let joined = run_rank(&running, &options, program, &mut done);
                running.end(TIMEOUT);
                joined.map_err(|error| (error.to_string(), is_typed(&error)))
            });
            *has_failed.lock().unwrap() |= rank == 0 && own.recv().unwrap().has_failed();
            let _ = tell.send((rank, done, outcome.err()));
        });
    }
    (told, has_failed)
}

/// Joins, and does the operations of a program.
fn run_rank(running: &DoubleRank, options: &Options, program: Program, done: &mut usize) -> Result<()> {
    let host = HostOptions::new().memory(16 << 20).workers(1);
    let device = Device::from_raw(Host::open_with(&host)?);
    let comm = running.join(options)?;
    let place = comm.place();
    program(&Communicator::of_engine(Arc::new(MpiEnd::new(comm)), &device, place), done)
}

fn is_typed(error: &gpumem_core::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Collective(_)
            | ErrorKind::Poisoned { .. }
            | ErrorKind::AsynchronousFault { .. }
            | ErrorKind::Load(_)
    )
}

/// What both ranks tell. Fails if one waits for ever.
fn told_by_both(told: &Receiver<Told>) -> [(usize, Option<(String, bool)>); 2] {
    let mut all = [const { None }; 2];
    for _ in 0..2 {
        let (rank, done, error) = told.recv_timeout(HANGS).expect("no rank hangs");
        all[rank] = Some((done, error));
    }
    all.map(|told| told.expect("each tells once"))
}

#[test]
fn ranks_of_the_double_do_all_operations() {
    for check in [false, true] {
        for program in [all_operations, many_at_once] {
            let options = Options::new().timeout(HANGS).check(check);
            let (told, _) = start_ranks(library(), None, &options, program);
            assert_eq!(told_by_both(&told), [(STEPS, None), (STEPS, None)]);
        }
    }
}

#[test]
fn a_failure_of_any_function_is_an_error_on_all_ranks_in_time() {
    let (mpi, mut failed) = (library(), BTreeSet::new());
    let plans: Vec<Plan> =
        NAMES.iter().flat_map(|name| (0..CALLS).map(|before| fails(name, before))).collect();
    for check in [false, true] {
        let options = Options::new().timeout(TIMEOUT).check(check);
        for plans in plans.chunks(AT_ONCE) {
            failed.extend(run_all(mpi, plans, &options, all_operations));
        }
    }
    let spared = |failed: &BTreeSet<&str>| -> Vec<&'static str> {
        NAMES.iter().copied().filter(|name| !failed.contains(name) && !NOT_CALLED.contains(name)).collect()
    };
    // On a machine that has much else to do, a deadline may have come before the call.
    for name in spared(&failed) {
        failed.extend(run_all(mpi, &[fails(name, 0)], &Options::new().timeout(HANGS / 3), all_operations));
    }
    assert_eq!(spared(&failed), [""; 0]);
}

fn fails(function: &'static str, before: usize) -> Plan {
    Plan { function, before, panics: false }
}

/// The engine drops what it has, wherever that is: in its inbox, before and after the library has begun it, in a split.
#[test]
fn an_engine_that_panics_at_any_call_leaves_no_rank_waiting() {
    let (mpi, later) = (library(), ["MPI_Test", "MPI_Isend_c"]);
    let calls = |name: &&'static str| if later.contains(name) { 12 } else { 1 };
    let at = |name: &&'static str, call: usize| Plan { function: name, before: call * call, panics: true };
    let plans: Vec<Plan> =
        NAMES.iter().flat_map(|name| (0..calls(name)).map(move |call| at(name, call))).collect();
    let mut failed = Vec::new();
    for (check, program) in [(false, all_operations as Program), (false, many_at_once), (true, many_at_once)]
    {
        let options = Options::new().timeout(TIMEOUT).check(check);
        for plans in plans.chunks(AT_ONCE) {
            failed.extend(run_all(mpi, plans, &options, program));
        }
    }
    assert!(later.iter().all(|name| failed.contains(name)), "{failed:?}");
}

/// Two ranks for each plan. Returns the functions that were called, and so have failed.
fn run_all(mpi: &'static Mpi, plans: &[Plan], options: &Options, program: Program) -> Vec<&'static str> {
    let runs: Vec<_> =
        plans.iter().map(|plan| (*plan, start_ranks(mpi, Some(*plan), options, program))).collect();
    let mut failed = Vec::new();
    for (plan, (told, has_failed)) in runs {
        eprintln!("{plan:?}, check {}", options.check);
        for (done, error) in told_by_both(&told) {
            assert!(done == STEPS || error.is_some());
            assert!(error.as_ref().is_none_or(|(_, is_typed)| *is_typed), "{error:?}");
        }
        if *has_failed.lock().unwrap() {
            failed.push(plan.function);
        }
    }
    failed
}

#[test]
fn the_library_is_not_called_once_another_one_has_finalised_it() {
    let (mpi, world, options) = (library(), World::new(2), Options::new().timeout(HANGS));
    let run = |rank| {
        let (world, (give, own)) = (world.clone(), channel());
        let enter = move || give.send(world.enter(rank, None)).unwrap();
        let running = DoubleRank::start(mpi, enter).unwrap();
        let own = own.recv().unwrap();
        let comm = running.join(&options).unwrap();
        let host = HostOptions::new().memory(16 << 20).workers(1);
        let device: Device<Host> = Device::from_raw(Host::open_with(&host).unwrap());
        let comm = Communicator::of_engine(Arc::new(MpiEnd::new(comm)), &device, (rank, 2));
        let stream = device.stream().unwrap();
        let mut sum = stream.to_device(&[1]).unwrap();
        comm.on(&stream).all_reduce(InPlace, &mut sum, Sum).unwrap();
        assert_eq!(sum.get(0).unwrap(), 2);
        own.finalise();
        // Longer than the engine sleeps between its questions.
        thread::sleep(Duration::from_millis(300));
        comm.on(&stream).barrier().unwrap_err();
        assert!(!own.is_called_late());
    };
    thread::scope(|scope| {
        scope.spawn(|| run(0));
        scope.spawn(|| run(1));
    });
}

/// Two ranks of a double, with the device of their streams.
fn two_ranks() -> ([DoubleRank; 2], [Communicator<Host>; 2], Device<Host>) {
    two_ranks_of(&World::new(2), [None; 2], HANGS / 3)
}

fn two_ranks_of(
    world: &Arc<World>,
    plans: [Option<Plan>; 2],
    timeout: Duration,
) -> ([DoubleRank; 2], [Communicator<Host>; 2], Device<Host>) {
    let (mpi, options) = (library(), Options::new().timeout(timeout));
    let running = [0, 1].map(|rank| {
        let (world, plan) = (world.clone(), plans[rank]);
        DoubleRank::start(mpi, move || drop(world.enter(rank, plan))).unwrap()
    });
    let host = HostOptions::new().memory(16 << 20).workers(1);
    let device: Device<Host> = Device::from_raw(Host::open_with(&host).unwrap());
    let comms = thread::scope(|scope| {
        let [first, second] = &running;
        let joins = [first, second].map(|rank| scope.spawn(|| rank.join(&options).unwrap()));
        let mut next = 0..;
        joins.map(|join| {
            let (end, place) = (MpiEnd::new(join.join().unwrap()), (next.next().unwrap(), 2));
            Communicator::of_engine(Arc::new(end), &device, place)
        })
    });
    (running, comms, device)
}

#[test]
fn ranks_do_not_wait_for_one_that_takes_no_part_of_a_split() {
    let (_running, [first, second], device) = two_ranks();
    drop(first.engine("split").unwrap().begin_split(Some(0), 0).unwrap());
    let part = second.split(Some(0), 0).unwrap().unwrap();
    let stream = device.stream().unwrap();
    let called = part.on(&stream).barrier().and_then(|()| stream.synchronize());
    called.unwrap_err();
    let cause = part.failure().unwrap().cause;
    assert!(matches!(cause, CollectiveCause::PeerLost { rank: 0, .. }), "{cause}");
}

/// The numbers of parts are hashes of what callers choose, and two of them may be equal.
#[test]
fn an_operation_reaches_its_own_communicator() {
    const COLOURS: [u64; 2] = [0x4c28_19ba_8817_d176, 0x691d_f066_4b1e_8f5f];
    /// Operations between the two splits.
    const BETWEEN: u64 = 53;
    let hash = |split: u64, colour| stable_hash([0, split, colour].into_iter().flat_map(u64::to_le_bytes));
    assert_eq!(hash(0, COLOURS[0]), hash(1 + BETWEEN, COLOURS[1]));
    let (_running, [first, second], device) = two_ranks();
    let of_both = |comm: &Communicator<Host>, last| {
        let both = comm.split(Some(COLOURS[0]), 0).unwrap().unwrap();
        let stream = device.stream().unwrap();
        both.on(&stream).barrier().unwrap();
        for _ in 0..BETWEEN {
            comm.on(&stream).barrier().unwrap();
        }
        stream.synchronize().unwrap();
        (both, comm.split(last, 0).unwrap())
    };
    let ((both, alone), (theirs, _)) = thread::scope(|scope| {
        let second = scope.spawn(|| of_both(&second, None));
        let found = of_both(&first, Some(COLOURS[1]));
        (found, second.join().unwrap())
    });
    // It waits for no other rank.
    let (alone, stream) = (alone.unwrap(), device.stream().unwrap());
    alone.on(&stream).barrier().unwrap();
    stream.synchronize().unwrap();
    // It has no part in the order of the others, which ranks compare here.
    let swap = |comm: &Communicator<Host>, both: &Communicator<Host>| {
        let stream = device.stream().unwrap();
        let pair = stream.to_device(&[comm.rank() as u32; 2]).unwrap();
        let mut swapped = stream.device_array::<u32, _>(2).unwrap();
        comm.on(&stream).all_to_all_v((&pair, &[1, 1]), (&mut swapped, &[1, 1])).unwrap();
        both.on(&stream).barrier().unwrap();
        assert_eq!(swapped.copy_to_host().unwrap().to_vec(), [0, 1]);
        stream.synchronize().unwrap();
    };
    let swaps = || {
        thread::scope(|scope| {
            scope.spawn(|| swap(&second, &theirs));
            swap(&first, &both);
        });
    };
    swaps();
    drop(alone);
    swaps();
}

/// A rank may be gone since it has said where it goes: the library waits for it.
#[test]
fn a_part_that_is_not_made_ends_at_the_deadline() {
    let (world, plan) = (World::with_patience(2, HANGS), fails("MPI_Comm_create_group", 0));
    let (_running, [first, second], device) = two_ranks_of(&world, [None, Some(plan)], HANGS / 30);
    thread::scope(|scope| {
        scope.spawn(|| second.split(Some(0), 0).unwrap_err());
        first.split(Some(0), 0).unwrap_err();
    });
    let stream = device.stream().unwrap();
    let error = first.on(&stream).barrier().unwrap_err();
    assert!(error.to_string().contains("within 2s"), "{error}");
}

#[test]
fn what_is_called_while_mpi_is_finalised_does_not_hold_it() {
    let ([first, _second], [comm, others], _device) = two_ranks();
    // Both wait for the other rank.
    let elsewhere = first.begin_end(Ending::Other);
    let own = first.begin_end(Ending::Own);
    // This is refused, and by then the thread has heard of both.
    first.join(&Options::new().timeout(HANGS / 3)).unwrap_err();
    assert_eq!([elsewhere.try_recv(), own.try_recv()], [Err(TryRecvError::Empty); 2]);
    drop(others);
    for told in [elsewhere, own] {
        assert_eq!(told.recv_timeout(HANGS), Err(RecvTimeoutError::Disconnected));
    }
    drop(comm);
}

/// A part that is made while MPI is being finalised is given up: its caller does not get it.
#[test]
fn a_split_does_not_outlive_mpi() {
    let ([first, _second], [comm, others], _device) = two_ranks();
    let begun = comm.engine("split").unwrap().begin_split(Some(0), 0).unwrap();
    let ended = first.begin_end(Ending::Other);
    first.join(&Options::new().timeout(HANGS / 3)).unwrap_err();
    let theirs = others.split(Some(0), 0);
    let part = begun.finish();
    drop((theirs, others));
    assert_eq!(ended.recv_timeout(HANGS), Err(RecvTimeoutError::Disconnected));
    assert!(part.is_err());
}
