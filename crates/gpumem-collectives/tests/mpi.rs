//! Ranks in processes of their own, over MPI: what goes wrong, and who else uses the library.
//!
//! Each test starts this program again under MPI's launcher, with itself alone (`launcher`). Without an MPI it is skipped.
#![cfg(not(miri))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::*;
use gpumem_collectives::{
    CollectiveCause, CollectiveState, Communicator, CommunicatorId, InPlace, Max, Options, Sum,
};
use gpumem_core::ErrorKind;
use std::time::{Duration, Instant};

/// Runs the body in so many processes. The deadline is short enough for a test, and long enough for a busy machine.
fn under_mpi(test: &str, processes: usize, body: impl FnOnce(Comm, Stream)) {
    match launcher::of_this_process() {
        None => launcher::pass(processes, &[test, "--exact"], &[]),
        Some(place) => {
            let (comm, stream) = own(&options(), place);
            body(comm, stream);
        }
    }
}

fn options() -> Options {
    Options::new().timeout(Duration::from_secs(20))
}

fn own(options: &Options, (rank, size): (usize, usize)) -> (Comm, Stream) {
    let device = concurrent();
    let comm = Communicator::join(&device, &CommunicatorId::mpi(), rank, size, options).unwrap();
    let stream = device.stream().unwrap();
    (comm, stream)
}

/// Joins again with other options.
fn again(comm: &Comm, options: &Options) -> Comm {
    Communicator::join(comm.device(), &CommunicatorId::mpi(), comm.rank(), comm.size(), options).unwrap()
}

#[test]
fn the_launchers_place_is_taken_and_others_are_refused() {
    under_mpi("the_launchers_place_is_taken_and_others_are_refused", 2, |comm, stream| {
        assert_eq!(comm.size(), 2);
        let other = Communicator::join(comm.device(), &CommunicatorId::mpi(), 1 - comm.rank(), 2, &options());
        assert!(matches!(other.unwrap_err().kind(), ErrorKind::InvalidArgument { .. }));
        comm.on(&stream).barrier().unwrap();
        stream.synchronize().unwrap();
        comm.destroy().unwrap();
    });
}

#[test]
fn a_disagreement_names_the_ranks_on_every_rank_and_later_operations_work() {
    let test = "a_disagreement_names_the_ranks_on_every_rank_and_later_operations_work";
    under_mpi(test, 4, |comm, stream| {
        // All compare, whether they are asked to or not, also where some are.
        for check in [comm.rank() == 0, true, false] {
            disagree(&again(&comm, &options().check(check)), &stream);
        }
    });
}

fn disagree(comm: &Comm, stream: &Stream) {
    let rank = comm.rank();
    for odd in 0..4 {
        let mut array = stream.to_device(&[1, 2, 3, 4]).unwrap();
        match (rank == odd, odd) {
            (false, _) => comm.on(stream).all_reduce(InPlace, &mut array, Sum),
            (true, 0) => comm.on(stream).broadcast(&mut array, 2),
            (true, 1) => comm.on(stream).all_reduce(InPlace, &mut array, Max),
            (true, 2) => {
                comm.on(stream).all_reduce(InPlace, &mut array.slice_mut(ndarray::s![..2]).unwrap(), Sum)
            }
            (true, _) => comm.on(stream).barrier(),
        }
        .unwrap();
        stream.synchronize().unwrap_err();
        let expected = if rank == odd { (0..4).filter(|other| *other != odd).collect() } else { vec![odd] };
        assert_eq!(others(&comm.failure().unwrap()), expected, "rank {rank}, {odd} differs");
        // Nothing was moved, and it is written anew.
        stream.fill(&mut array, 1).unwrap();
        comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
        assert_eq!(array.copy_to_host().unwrap().to_vec(), [4; 4]);
    }
    // A split is an operation of all ranks.
    if rank == 1 {
        assert_eq!(others(&failed(comm.split(Some(0), 0))), [0, 2, 3]);
    } else {
        let (source, mut all) = (stream.to_device(&[1_u8; 24]).unwrap(), stream.to_device(&[0; 96]).unwrap());
        comm.on(stream).all_gather(&source, &mut all).unwrap();
        stream.synchronize().unwrap_err();
        assert_eq!(others(&comm.failure().unwrap()), [1]);
    }
    // Rows that two ranks see differently.
    let (source, mut rows) = (stream.to_device(&[rank; 4]).unwrap(), stream.to_device(&[9; 5]).unwrap());
    let to = if rank == 3 { [1, 1, 2, 1] } else { [1; 4] };
    let mut rows = rows.slice_mut(ndarray::s![..to.iter().sum::<usize>()]).unwrap();
    comm.on(stream).all_to_all_v((&source, &[1; 4]), (&mut rows, &to)).unwrap();
    stream.synchronize().unwrap_err();
    assert!(rank == 0 || rank == 1 || others(&comm.failure().unwrap()) == [5 - rank]);
    // Sends and receives compare too: types, and numbers of elements.
    let (mut array, floats) = (stream.to_device(&[1, 2]).unwrap(), stream.to_device(&[1.0_f32]).unwrap());
    for is_short in [true, false] {
        let mut one = array.slice_mut(ndarray::s![..1]).unwrap();
        match (rank, is_short) {
            (0, true) => comm.on(stream).send(&array, 1).unwrap(),
            (0, false) => comm.on(stream).send(&floats, 1).unwrap(),
            (1, _) => comm.on(stream).receive(&mut one, 0).unwrap(),
            _ => {}
        }
        assert_eq!(stream.synchronize().is_err(), rank < 2);
        if rank < 2 {
            assert_eq!(others(&comm.failure().unwrap()), [1 - rank]);
            stream.fill(&mut array, 1).unwrap();
        }
    }
}

#[test]
fn operations_of_two_communicators_in_different_order_are_named() {
    under_mpi("operations_of_two_communicators_in_different_order_are_named", 2, |comm, stream| {
        let comm = again(&comm, &options().check(true));
        let copy = comm.split(Some(0), 0).unwrap().unwrap();
        let (first, second) = if comm.rank() == 0 { (&comm, &copy) } else { (&copy, &comm) };
        let other = comm.device().stream().unwrap();
        first.on(&stream).barrier().unwrap();
        second.on(&other).barrier().unwrap();
        stream.synchronize().unwrap_err();
        other.synchronize().unwrap_err();
        for each in [first, second] {
            assert_eq!(others(&each.failure().unwrap()), [1 - comm.rank()]);
        }
    });
}

#[test]
fn a_rank_that_never_calls_is_named_in_time() {
    under_mpi("a_rank_that_never_calls_is_named_in_time", 3, |comm, stream| {
        let soon = again(&comm, &Options::new().timeout(Duration::from_secs(1)));
        if comm.rank() != 1 {
            let began = Instant::now();
            let mut array = stream.to_device(&[1, 2]).unwrap();
            soon.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
            stream.synchronize().unwrap_err();
            assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
            let failure = poisoned(array.copy_to_host());
            assert!(
                matches!(&failure.cause, CollectiveCause::Timeout { missing, .. } if *missing == [1]),
                "{failure}"
            );
            stream.fill(&mut array, 5).unwrap();
            assert_eq!(array.copy_to_host().unwrap().to_vec(), [5, 5], "it was written anew");
        }
        // The communicator is dead on all ranks, and others work on.
        comm.on(&stream).barrier().unwrap();
        stream.synchronize().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        failed(soon.on(&stream).barrier());
    });
}

#[test]
fn a_rank_that_aborts_leaves_or_fails_is_told_to_the_others() {
    under_mpi("a_rank_that_aborts_leaves_or_fails_is_told_to_the_others", 3, |comm, stream| {
        let rank = comm.rank();
        let aborted = again(&comm, &options());
        let mut array = stream.to_device(&[1]).unwrap();
        if rank == 0 {
            aborted.abort();
            failed(aborted.on(&stream).barrier());
        } else {
            aborted.on(&stream).all_reduce(InPlace, &mut array, Sum).ok();
            stream.synchronize().ok();
            assert_eq!(aborted.failure().unwrap().cause, CollectiveCause::Aborted { rank: 0 });
        }
        // What the rank that leaves has called takes place.
        let left = again(&comm, &options());
        let mut sum = stream.to_device(&[1]).unwrap();
        left.on(&stream).all_reduce(InPlace, &mut sum, Sum).unwrap();
        if rank == 2 {
            drop(left);
        } else {
            left.on(&stream).barrier().ok();
            stream.synchronize().ok();
            let cause = left.failure().unwrap().cause;
            assert!(matches!(cause, CollectiveCause::PeerLost { rank: 2, .. }), "{cause}");
        }
        assert_eq!(sum.get(0).unwrap(), 3);
        for check in [true, false] {
            let failing = again(&comm, &options().check(check));
            let mut array = stream.to_device(&[1, 2]).unwrap();
            if rank == 1 {
                comm.device().raw().inject(gpumem_host::Injection::next(
                    gpumem_host::Operation::Fill,
                    ErrorKind::AsynchronousFault { what: "the test wants it".to_owned() },
                ));
                stream.fill(&mut array, 7).unwrap();
            }
            // Refused at once on its rank, if the failure is known by then.
            let called = failing.on(&stream).all_reduce(InPlace, &mut array, Sum);
            assert!(called.is_ok() || rank == 1);
            if called.is_ok() || rank == 1 {
                stream.synchronize().unwrap_err();
                array.copy_to_host().unwrap_err();
            }
            if rank != 1 {
                let cause = failing.failure().unwrap().cause;
                assert!(matches!(cause, CollectiveCause::PeerLost { rank: 1, .. }), "{cause}");
            }
            stream.fill(&mut array, 1).unwrap();
            failing.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
            assert_eq!(array.copy_to_host().unwrap().to_vec(), [3, 3], "later operations work");
        }
        comm.on(&stream).barrier().unwrap();
        stream.synchronize().unwrap();
    });
}

#[test]
fn a_failure_is_told_though_all_ranks_have_dropped_the_communicator() {
    under_mpi("a_failure_is_told_though_all_ranks_have_dropped_the_communicator", 3, |comm, stream| {
        let (holding, failing) = (again(&comm, &options()), again(&comm, &options()));
        let mut array = stream.to_device(&[1, 2]).unwrap();
        if comm.rank() == 1 {
            // The others do not call it.
            holding.on(&stream).broadcast(&mut array, 0).unwrap();
        }
        failing.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
        drop(failing);
        if comm.rank() == 1 {
            std::thread::sleep(Duration::from_millis(200));
            // What it was to write is used by the operation above, which so does not run.
            holding.abort();
        } else {
            stream.synchronize().unwrap_err();
            let cause = poisoned(array.copy_to_host()).cause;
            assert!(matches!(cause, CollectiveCause::PeerLost { rank: 1, .. }), "{cause}");
        }
        comm.on(&comm.device().stream().unwrap()).barrier().unwrap();
    });
}

#[test]
fn what_is_in_flight_may_be_dropped_or_forgotten() {
    under_mpi("what_is_in_flight_may_be_dropped_or_forgotten", 3, |comm, stream| {
        let rank = comm.rank();
        let source = stream.to_device(&[rank as i32; 1000]).unwrap();
        let mut sum = stream.device_array::<i32, _>(1000).unwrap();
        let part = comm.split(Some(0), 0).unwrap().unwrap();
        part.on(&stream).all_reduce(&source, &mut sum, Sum).unwrap();
        let mut lost = stream.device_array::<i32, _>((20, 50)).unwrap();
        part.on(&stream).all_reduce(InPlace, &mut lost.view_mut().reversed_axes(), Sum).unwrap();
        match rank {
            0 => drop((source, part)),
            1 => std::mem::forget(source),
            _ => drop(source),
        }
        drop(lost);
        let next = stream.to_device(&[9; 1000]).unwrap();
        assert_eq!(sum.copy_to_host().unwrap().to_vec(), [3; 1000]);
        assert_eq!(next.copy_to_host().unwrap().to_vec(), [9; 1000]);
    });
}

#[test]
fn streams_of_one_rank_may_come_in_any_order() {
    under_mpi("streams_of_one_rank_may_come_in_any_order", 2, |comm, stream| {
        let (other, late) = (comm.device().stream().unwrap(), again(&comm, &options()));
        let (mut first, mut second) = (stream.to_device(&[1]).unwrap(), other.to_device(&[10]).unwrap());
        // The first operation begins late on one of the ranks.
        if comm.rank() == 0 {
            late.on(&stream).barrier().unwrap();
        }
        comm.on(&stream).all_reduce(InPlace, &mut first, Sum).unwrap();
        comm.on(&other).all_reduce(InPlace, &mut second, Sum).unwrap();
        if comm.rank() == 1 {
            std::thread::sleep(Duration::from_millis(50));
            late.on(&comm.device().stream().unwrap()).barrier().unwrap();
        }
        assert_eq!((first.get(0).unwrap(), second.get(0).unwrap()), (2, 20));
    });
}

#[test]
fn splits_of_two_threads_do_not_wait_for_each_other() {
    under_mpi("splits_of_two_threads_do_not_wait_for_each_other", 3, |comm, stream| {
        let copies = [comm.split(Some(0), 0).unwrap().unwrap(), comm.split(Some(0), 0).unwrap().unwrap()];
        let rank = comm.rank() as i64;
        std::thread::scope(|scope| {
            let parts: Vec<_> = copies
                .iter()
                .map(|copy| scope.spawn(move || copy.split((rank != 2).then_some(1), -rank).unwrap()))
                .collect();
            for part in parts {
                let part = part.join().unwrap();
                let Some(part) = part else { continue };
                assert_eq!((part.rank() as i64, part.size()), (1 - rank, 2));
            }
        });
        comm.on(&stream).barrier().unwrap();
        stream.synchronize().unwrap();
    });
}

#[test]
fn a_rank_that_took_no_part_in_a_split_takes_part_in_later_ones() {
    under_mpi("a_rank_that_took_no_part_in_a_split_takes_part_in_later_ones", 3, |comm, stream| {
        for without in 0..3 {
            let part = comm.split((comm.rank() != without).then_some(0), 0).unwrap();
            assert_eq!(part.as_ref().map(|part| part.size()), (comm.rank() != without).then_some(2));
            // Each part is one of its own: nothing of an earlier one is met.
            let Some(part) = part else { continue };
            assert_eq!(part.all_reduce_scalar(&stream, without as i32, Sum).unwrap(), 2 * without as i32);
        }
        comm.on(&stream).barrier().unwrap();
        stream.synchronize().unwrap();
        assert!(
            comm.recent().iter().all(|record| record.state == CollectiveState::Done),
            "{:?}",
            comm.recent()
        );
    });
}

#[test]
fn a_rank_whose_stream_has_not_come_so_far_is_named() {
    under_mpi("a_rank_whose_stream_has_not_come_so_far_is_named", 3, |comm, stream| {
        let soon = again(&comm, &Options::new().timeout(Duration::from_secs(1)));
        if comm.rank() == 1 {
            // The others call it when the operation after it has failed.
            comm.on(&stream).barrier().unwrap();
        }
        soon.on(&stream).barrier().unwrap();
        if comm.rank() != 1 {
            stream.synchronize().unwrap_err();
            comm.on(&stream).barrier().unwrap();
        }
        stream.synchronize().ok();
        let cause = soon.failure().unwrap().cause;
        assert!(matches!(&cause, CollectiveCause::Timeout { missing, .. } if *missing == [1]), "{cause}");
    });
}

#[test]
fn a_rank_ends_after_the_others_though_one_has_aborted() {
    under_mpi("a_rank_ends_after_the_others_though_one_has_aborted", 2, |comm, stream| {
        let aborted = again(&comm, &options());
        if comm.rank() == 0 {
            aborted.abort();
        }
        aborted.on(&stream).barrier().ok();
        stream.synchronize().ok();
        assert_eq!(aborted.failure().unwrap().cause, CollectiveCause::Aborted { rank: 0 });
        if comm.rank() == 1 {
            // The launcher ends all ranks if one ends without MPI's end.
            std::thread::sleep(Duration::from_secs(3));
        }
    });
}

/// Waits until the file of a test is there.
fn wait_for(path: &std::path::Path) {
    let began = Instant::now();
    while !path.exists() && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[cfg(unix)]
fn a_killed_rank_is_named_and_the_others_end_by_themselves() {
    const FOLDER: &str = "GPUMEM_TEST_FOLDER";
    let test = "a_killed_rank_is_named_and_the_others_end_by_themselves";
    let Some(place) = launcher::of_this_process() else {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().to_str().unwrap();
        let arguments = [test, "--exact", "--test-threads=1", "--nocapture"];
        // A shell around each keeps the launcher from seeing the death, as that of a machine that is lost.
        let shell = ["sh", "-c", "\"$0\" \"$@\"; status=$?; [ $status -gt 128 ] && sleep 8; exit $status"];
        let done = launcher::launch(3, &shell, &arguments, &[(FOLDER, name)]);
        let Some(done) = done else { return };
        let output = launcher::text(&done);
        // The launcher may end before them, and then does not pass on what they print.
        for rank in ["0", "2"] {
            let end = folder.path().join(format!("{rank}.end"));
            wait_for(&end);
            let said = std::fs::read_to_string(end).unwrap_or_default();
            assert_eq!(said, "well", "rank {rank}: {output}");
        }
        return;
    };
    let folder = std::path::PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let (patient, stream) = own(&options(), place);
    let comm = again(&patient, &Options::new().timeout(Duration::from_secs(1)));
    drop(patient);
    let mut array = stream.to_device(&vec![1.0_f32; 1 << 20]).unwrap();
    comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    stream.synchronize().unwrap();
    if comm.rank() == 1 {
        // In the middle of the next operation, as far as the others can tell.
        for name in ["0", "2"] {
            wait_for(&folder.join(name));
        }
        let own = std::process::id().to_string();
        std::process::Command::new("kill").args(["-9", &own]).status().unwrap();
    }
    std::fs::write(folder.join(comm.rank().to_string()), "").unwrap();
    let began = Instant::now();
    comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    stream.synchronize().unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    match poisoned(array.copy_to_host()).cause {
        CollectiveCause::Timeout { missing, .. } => assert_eq!(missing, [1]),
        CollectiveCause::PeerLost { rank, .. } => assert_eq!(rank, 1),
        other => panic!("{other}"),
    }
    stream.fill(&mut array, 2.0).unwrap();
    assert_eq!(array.get(0).unwrap(), 2.0, "the device works on");
    let end = folder.join(format!("{}.end", comm.rank()));
    drop((array, comm, stream));
    std::fs::write(end.with_extension("part"), "well").unwrap();
    std::fs::rename(end.with_extension("part"), end).unwrap();
}

/// Initialises the library as another part of a program does, with a level of threads.
fn initialise(level: i32) -> libloading::Library {
    // SAFETY: MPI's library, which stays loaded; its functions have these signatures, and are called in this order.
    unsafe {
        let library = libloading::Library::new(std::env::var_os("GPUMEM_MPI").unwrap()).unwrap();
        type Init = unsafe extern "C" fn(*mut i32, *mut u8, i32, *mut i32) -> i32;
        let init = library.get::<Init>(b"MPI_Init_thread\0").unwrap();
        let mut provided = 0;
        assert_eq!(init(std::ptr::null_mut(), std::ptr::null_mut(), level, &mut provided), 0);
        assert_eq!(provided, level);
        library
    }
}

fn call(library: &libloading::Library, name: &[u8]) {
    // SAFETY: a function of MPI without arguments.
    let function = unsafe { library.get::<unsafe extern "C" fn() -> i32>(name) }.unwrap();
    // SAFETY: MPI is initialised, and not finalised.
    assert_eq!(unsafe { function() }, 0);
}

#[test]
fn mpi_that_another_library_has_initialised_is_used_and_left_to_it() {
    let test = "mpi_that_another_library_has_initialised_is_used_and_left_to_it";
    let Some(place) = launcher::of_this_process() else {
        return launcher::pass(2, &[test, "--exact"], &[]);
    };
    let library = initialise(4096);
    let (comm, stream) = own(&options(), place);
    let mut array = stream.to_device(&[1]).unwrap();
    comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    assert_eq!(array.get(0).unwrap(), 2);
    // The other library ends MPI, with communicators that are in use. What comes later is a typed error.
    let others: Vec<Comm> = (0..8).map(|_| again(&comm, &options())).collect();
    for other in &others {
        other.on(&stream).barrier().unwrap();
    }
    stream.synchronize().unwrap();
    // MPICH 5 takes no locks from the first step of `MPI_Finalize` on, before it tells the engine: a call of the engine's thread
    // that is under way just then would leave one locked.
    std::thread::sleep(Duration::from_millis(50));
    call(&library, b"MPI_Finalize\0");
    for comm in others.iter().chain([&comm]) {
        comm.on(&stream).barrier().unwrap_err();
        let cause = comm.failure().unwrap().cause;
        assert!(matches!(cause, CollectiveCause::PeerLost { .. }), "{cause}");
    }
}

#[test]
fn mpi_that_takes_calls_of_one_thread_only_is_refused() {
    let test = "mpi_that_takes_calls_of_one_thread_only_is_refused";
    let Some((rank, size)) = launcher::of_this_process() else {
        return launcher::pass(2, &[test, "--exact"], &[]);
    };
    let library = initialise(0);
    let refused = Communicator::join(&concurrent(), &CommunicatorId::mpi(), rank, size, &options());
    let error = refused.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Load(_)), "{error}");
    assert!(error.to_string().contains("MPI_THREAD_MULTIPLE"), "{error}");
    call(&library, b"MPI_Finalize\0");
}

/// Runs the test again in a process whose `GPUMEM_MPI` is this file, and returns whether this is that process.
fn with_library(test: &str, path: &std::path::Path) -> bool {
    const INSIDE: &str = "GPUMEM_TEST_LIBRARY";
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let done = command.args([test, "--exact"]).env(INSIDE, "1").env("GPUMEM_MPI", path).output().unwrap();
    assert!(done.status.success(), "{}", launcher::text(&done));
    false
}

fn load_error() -> gpumem_core::LoadError {
    let joined = Communicator::join(&concurrent(), &CommunicatorId::mpi(), 0, 1, &options());
    match joined.unwrap_err().kind() {
        ErrorKind::Load(error) => error.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_missing_library_is_a_typed_error() {
    let path = std::path::Path::new("/nowhere/libmpi_abi.so.1");
    if with_library("a_missing_library_is_a_typed_error", path) {
        let error = load_error();
        assert_eq!(error.failure, gpumem_core::LoadFailure::Missing);
        assert_eq!(error.tried, ["/nowhere/libmpi_abi.so.1"]);
    }
}

#[test]
fn a_library_that_lacks_a_function_is_a_typed_error() {
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = (folder.path().join("mpi.rs"), folder.path().join("libmpi_abi.so.1"));
    let test = "a_library_that_lacks_a_function_is_a_typed_error";
    if std::env::var_os("GPUMEM_TEST_LIBRARY").is_none() {
        let code = "#[unsafe(no_mangle)] extern \"C\" fn MPI_Abi_get_version(major: *mut i32, minor: *mut i32) -> i32 \
                    { unsafe { (*major, *minor) = (1, 0) }; 0 }";
        std::fs::write(&source, code).unwrap();
        let mut rustc = std::process::Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        rustc.args(["--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort", "-o"]);
        let done = rustc.args([&path, &source]).output().unwrap();
        assert!(done.status.success(), "{}", launcher::text(&done));
    }
    if with_library(test, &path) {
        let missing = gpumem_core::LoadFailure::MissingSymbol { name: "MPI_Get_library_version".to_owned() };
        assert_eq!(load_error().failure, missing);
    }
}

#[test]
fn the_environment_of_the_launcher_makes_a_communicator() {
    under_mpi("the_environment_of_the_launcher_makes_a_communicator", 3, |other, stream| {
        let process = gpumem_collectives::ProcessRank::from_environment().unwrap();
        assert_eq!((process.rank, process.size), (other.rank(), 3));
        assert!(process.local_rank.is_none_or(|rank| rank < 3));
        let comm = Communicator::from_environment_with(other.device(), &options()).unwrap();
        let mut sum = stream.to_device(&[comm.rank() as f64]).unwrap();
        comm.on(&stream).all_reduce(InPlace, &mut sum, Sum).unwrap();
        assert_eq!(sum.get(0).unwrap(), 3.0);
    });
}
