//! The interleavings of the ordering code, tried out by loom over a driver that records every call (`fixture.rs`), those of the
//! threads of transfers (`event_count.rs`, `staged_chunk.rs`, `worker_pool.rs`), those of launches of a graph (`graphs.rs`),
//! and those of arrays that leave the device (`spill.rs`).
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p gpumem-runtime --profile loom --test loom`. Not more than three preemptions per
//! execution are tried unless `LOOM_MAX_PREEMPTIONS` says otherwise, as by night.
#![cfg(loom)]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, unreachable_pub, reason = "a test")]

mod captured;
mod event_count;
mod fixture;
mod graphs;
mod spill;
mod staged_chunk;
mod worker_pool;

use fixture::{Lab, Mock, Progress};
use gpumem_core::HostAccess;
use gpumem_runtime::loom_models::{
    Memory, abort, begin_loan, end_loan, lend, lend_with_an_early_index, outcome, submit, submit_with_a_gap,
};
use gpumem_runtime::{Device, Stream};
use loom::thread;
use std::ops::Range;

const ALL: Range<usize> = 0..16;
const LEFT: Range<usize> = 0..8;
const RIGHT: Range<usize> = 8..16;

/// Tries all interleavings of `body` on a slow and on a fast device. The rest is flushed, and then the records are
/// checked.
fn model(body: impl Fn(&Device<Mock>) + Send + Sync + Copy + 'static) {
    model_within(4, body);
}

/// With so many preemptions in an execution if they are fewer than three, and by night with as many fewer than other models as they are
/// fewer than four: they take long.
fn model_within(preemptions: usize, body: impl Fn(&Device<Mock>) + Send + Sync + Copy + 'static) {
    for progress in [Progress::WhenWaitedFor, Progress::WhenAsked] {
        let mut builder = loom::model::Builder::new();
        let by_night = |most: usize| (most + preemptions).saturating_sub(4);
        builder.preemption_bound = Some(builder.preemption_bound.map_or(preemptions.min(3), by_night));
        // An allocation that makes arrays leave takes more than a thousand.
        builder.max_branches = 10_000;
        builder.check(move || {
            let raw = Lab::device(progress);
            let lab = raw.lab.clone();
            let device = Device::from_raw(raw);
            body(&device);
            device.flush().unwrap();
            assert!(device.take_errors().is_empty());
            drop(device);
            lab.check();
        });
    }
}

fn stream(device: &Device<Mock>) -> Stream<Mock> {
    device.stream().unwrap()
}

fn memory(device: &Device<Mock>) -> Memory<Mock> {
    Memory::new(device, ALL.len()).unwrap()
}

fn at(memory: &Memory<Mock>, extent: &Range<usize>) -> Range<u64> {
    let start = memory.address();
    start + extent.start as u64..start + extent.end as u64
}

fn use_part(stream: &Stream<Mock>, memory: &Memory<Mock>, extent: Range<usize>, write: bool) {
    let bytes = at(memory, &extent);
    submit(stream, &[(memory, extent, write)], |raw| raw.touch(bytes, write)).unwrap();
}

fn write(stream: &Stream<Mock>, memory: &Memory<Mock>) {
    use_part(stream, memory, ALL, true);
}

fn read(stream: &Stream<Mock>, memory: &Memory<Mock>) {
    use_part(stream, memory, ALL, false);
}

fn copy(stream: &Stream<Mock>, from: &Memory<Mock>, to: &Memory<Mock>) {
    let (source, destination) = (at(from, &ALL), at(to, &ALL));
    submit(stream, &[(from, ALL, false), (to, ALL, true)], |raw| {
        raw.touch(source, false)?;
        raw.touch(destination, true)
    })
    .unwrap();
}

#[test]
fn writers_of_one_block_are_ordered() {
    model(|device| {
        let (first, second, block) = (stream(device), stream(device), memory(device));
        let theirs = block.clone();
        let other = thread::spawn(move || write(&first, &theirs));
        write(&second, &block);
        other.join().unwrap();
        read(&second, &block);
    });
}

/// The planted fault is found, so the models can find one.
#[test]
#[should_panic(expected = "is not ordered after")]
fn a_gap_between_lookup_and_record_is_found() {
    model(|device| {
        let (first, second, block) = (stream(device), stream(device), memory(device));
        let theirs = block.clone();
        let act = |stream: &Stream<Mock>, block: &Memory<Mock>| {
            let bytes = at(block, &ALL);
            submit_with_a_gap(stream, &[(block, ALL, true)], |raw| raw.touch(bytes, true)).unwrap();
        };
        let other = thread::spawn(move || act(&first, &theirs));
        act(&second, &block);
        other.join().unwrap();
    });
}

/// Without a second thread the fault does no harm: it is the interleaving that is found, not the function.
#[test]
fn the_gap_is_harmless_on_one_thread() {
    model(|device| {
        let (first, second, block) = (stream(device), stream(device), memory(device));
        for stream in [&first, &second, &first] {
            let bytes = at(&block, &ALL);
            submit_with_a_gap(stream, &[(&block, ALL, true)], |raw| raw.touch(bytes, true)).unwrap();
        }
    });
}

/// Two copies that lock the same two logs, named in opposite order.
#[test]
fn opposite_copies_do_not_deadlock() {
    model(|device| {
        let (first, second, a, b) = (stream(device), stream(device), memory(device), memory(device));
        let (their_a, their_b) = (a.clone(), b.clone());
        let other = thread::spawn(move || copy(&first, &their_a, &their_b));
        copy(&second, &b, &a);
        other.join().unwrap();
    });
}

/// One stream, two threads: the submission index of each must cover its own work, or its consumer would wait for too
/// little.
#[test]
fn submission_indexes_are_in_queue_order() {
    model(|device| {
        let (shared, first, second) = (stream(device), stream(device), stream(device));
        let (a, b) = (memory(device), memory(device));
        let (theirs, their_block) = (shared.clone(), a.clone());
        let other = thread::spawn(move || {
            write(&theirs, &their_block);
            read(&first, &their_block);
        });
        write(&shared, &b);
        read(&second, &b);
        other.join().unwrap();
    });
}

/// A mark is looked up or recorded for one consumer while the producer goes on.
#[test]
fn events_are_found_while_the_producer_goes_on() {
    model(|device| {
        let (producer, consumer, block, more) =
            (stream(device), stream(device), memory(device), memory(device));
        write(&producer, &block);
        let theirs = producer.clone();
        let their_more = more.clone();
        let other = thread::spawn(move || {
            write(&theirs, &their_more);
            write(&theirs, &their_more);
        });
        read(&consumer, &block);
        read(&consumer, &more);
        other.join().unwrap();
        write(&consumer, &more);
    });
}

/// Both want a mark of the same producer, and the writer after them waits for both.
#[test]
fn readers_share_an_event_and_the_writer_waits() {
    model(|device| {
        let (producer, first, second) = (stream(device), stream(device), stream(device));
        let block = memory(device);
        write(&producer, &block);
        let (their_stream, theirs) = (first.clone(), block.clone());
        let other = thread::spawn(move || read(&their_stream, &theirs));
        read(&second, &block);
        other.join().unwrap();
        write(&producer, &block);
    });
}

/// A stream is dropped while its submission indexes are resolved, by a stream and by the host.
#[test]
fn a_stream_may_end_at_any_time() {
    model(|device| {
        let (ended, consumer, block) = (stream(device), stream(device), memory(device));
        write(&ended, &block);
        let other = thread::spawn(move || drop(ended));
        read(&consumer, &block);
        block.wait_for_host(&ALL, HostAccess::Read).unwrap();
        device.raw().lab.host(at(&block, &ALL), false);
        other.join().unwrap();
        write(&consumer, &block);
    });
}

/// The driver's stream is destroyed while another thread may be waiting for it.
#[test]
fn a_stream_may_end_while_it_is_waited_for() {
    model(|device| {
        let (ended, block) = (stream(device), memory(device));
        write(&ended, &block);
        let theirs = block.clone();
        let lab = device.raw().lab.clone();
        let other = thread::spawn(move || {
            theirs.wait_for_host(&ALL, HostAccess::Read).unwrap();
            lab.host(at(&theirs, &ALL), false);
        });
        drop(ended);
        device.flush().unwrap();
        other.join().unwrap();
    });
}

/// The host waits for one half while work on the other half is enqueued: it may not take that for its own.
#[test]
fn the_host_waits_for_its_part() {
    model(|device| {
        let (first, second, block) = (stream(device), stream(device), memory(device));
        use_part(&first, &block, LEFT, true);
        use_part(&second, &block, LEFT, false);
        let theirs = block.clone();
        let other = thread::spawn(move || {
            use_part(&first, &theirs, RIGHT, true);
            use_part(&second, &theirs, RIGHT, true);
        });
        block.wait_for_host(&LEFT, HostAccess::Write).unwrap();
        device.raw().lab.host(at(&block, &LEFT), true);
        other.join().unwrap();
        block.wait_for_host(&ALL, HostAccess::Read).unwrap();
        device.raw().lab.host(at(&block, &ALL), false);
    });
}

/// Memory is dropped, with its stream, while an allocation frees pending items.
#[test]
fn a_sweep_frees_only_unused_memory() {
    model(|device| {
        let (first, second, block) = (stream(device), stream(device), memory(device));
        let shared = memory(device);
        copy(&first, &shared, &block);
        copy(&second, &block, &shared);
        let their_shared = shared.clone();
        let other = thread::spawn(move || {
            write(&first, &their_shared);
            drop((their_shared, block, first));
        });
        let fresh = memory(device);
        write(&second, &fresh);
        drop(shared);
        drop(fresh);
        let _last = memory(device);
        other.join().unwrap();
    });
}

/// The events of a stream that is gone are recorded again by others, while a thread still waits for their old
/// recordings.
#[test]
fn events_are_used_again() {
    model(|device| {
        let (ended, first, second) = (stream(device), stream(device), stream(device));
        let (a, b) = (memory(device), memory(device));
        write(&ended, &a);
        read(&first, &a);
        write(&second, &b);
        let theirs = a.clone();
        let other = thread::spawn(move || {
            write(&first, &theirs);
            drop((theirs, ended));
        });
        read(&second, &a);
        write(&second, &b);
        drop(a);
        device.flush().unwrap();
        other.join().unwrap();
        write(&second, &b);
    });
}

/// Two streams, each of which needs the other's results: each is locked while the other's lock is tried.
#[test]
fn streams_that_need_each_other_do_not_deadlock() {
    model(|device| {
        let (first, second, a, b) = (stream(device), stream(device), memory(device), memory(device));
        write(&first, &a);
        write(&second, &b);
        let (their_stream, theirs) = (first.clone(), b.clone());
        let other = thread::spawn(move || {
            write(&their_stream, &theirs);
            read(&their_stream, &theirs);
        });
        write(&second, &a);
        other.join().unwrap();
        copy(&first, &a, &b);
    });
}

/// Work reads what other work was to write, which is aborted meanwhile: it is refused, or it fails too. On the same stream, and on one
/// that waits for that.
#[test]
fn work_that_is_submitted_during_an_abort_fails() {
    for is_same in [true, false] {
        model(move |device| {
            let (first, second, a, b) = (stream(device), stream(device), memory(device), memory(device));
            write(&first, &a);
            let (source, destination) = (at(&a, &ALL), at(&b, &ALL));
            let aborted = first.clone();
            let other = thread::spawn(move || abort(&aborted));
            let stream = if is_same { &first } else { &second };
            let submitted = submit(stream, &[(&a, ALL, false), (&b, ALL, true)], |raw| {
                raw.touch(source, false)?;
                raw.touch(destination, true)
            });
            other.join().unwrap();
            assert!(submitted.is_err() || outcome(stream).is_err());
        });
    }
}

/// As above, on the stream that is aborted, of what another stream has made from its work.
#[test]
fn work_that_comes_back_to_an_aborted_stream_fails() {
    model(|device| {
        let (first, second) = (stream(device), stream(device));
        let [a, b, c] = [(); 3].map(|()| memory(device));
        write(&first, &a);
        copy(&second, &a, &b);
        let (source, destination) = (at(&b, &ALL), at(&c, &ALL));
        let aborted = first.clone();
        let other = thread::spawn(move || abort(&aborted));
        let submitted = submit(&first, &[(&b, ALL, false), (&c, ALL, true)], |raw| {
            raw.touch(source, false)?;
            raw.touch(destination, true)
        });
        other.join().unwrap();
        assert!(submitted.is_err() || outcome(&first).is_err());
    });
}

/// Streams take turns on two halves of a block, so that spent uses come back to life while others look.
#[test]
fn two_streams_alternate_on_both_halves() {
    model(|device| {
        let (first, second, block) = (stream(device), stream(device), memory(device));
        use_part(&first, &block, LEFT, true);
        use_part(&second, &block, LEFT, true);
        let (their_stream, theirs) = (first.clone(), block.clone());
        let other = thread::spawn(move || {
            use_part(&their_stream, &theirs, LEFT, true);
            use_part(&their_stream, &theirs, ALL, true);
        });
        use_part(&second, &block, RIGHT, true);
        use_part(&second, &block, ALL, false);
        other.join().unwrap();
        use_part(&second, &block, RIGHT, true);
    });
}

/// Work of another library goes to a stream while an event is recorded there for another stream. That event may come
/// before the work, so it must not be taken for it.
fn while_an_event_is_recorded(lent: impl Fn(&Stream<Mock>, &Memory<Mock>) + Send + Sync + Copy + 'static) {
    model(move |device| {
        let (producer, consumer) = (stream(device), stream(device));
        let (a, b) = (memory(device), memory(device));
        write(&producer, &b);
        let (theirs, their_block) = (producer.clone(), a.clone());
        let other = thread::spawn(move || lent(&theirs, &their_block));
        read(&consumer, &b);
        other.join().unwrap();
        read(&consumer, &a);
    });
}

#[test]
fn an_event_before_lent_work_does_not_cover_it() {
    while_an_event_is_recorded(|stream, block| {
        lend(stream, &[(block, ALL, true)], |raw| raw.touch(at(block, &ALL), true)).unwrap();
    });
}

/// The planted fault is found.
#[test]
#[should_panic(expected = "is not ordered after")]
fn an_index_before_lent_work_is_found() {
    while_an_event_is_recorded(|stream, block| {
        lend_with_an_early_index(stream, &[(block, ALL, true)], |raw| raw.touch(at(block, &ALL), true))
            .unwrap();
    });
}

/// Another handle of the memory is used while it is being lent. What the borrower enqueues afterwards runs after that use.
#[test]
fn a_borrower_comes_after_uses_from_before_its_work() {
    model(|device| {
        let (borrower, reader, block) = (stream(device), stream(device), memory(device));
        let (theirs, their_block) = (borrower.clone(), block.clone());
        let lending = thread::spawn(move || begin_loan(&theirs, &their_block, &ALL).unwrap());
        read(&reader, &block);
        let loan = lending.join().unwrap();
        end_loan(&borrower, &block, loan, |raw| raw.touch(at(&block, &ALL), true)).unwrap();
    });
}

/// Two threads return memory to the pool while both take from it: no thread gets a block that another stream still uses
/// without waiting for it, and no byte is lost.
#[test]
fn the_pool_reuses_a_block_after_its_last_use() {
    model(|device| {
        let (first, second, block) = (stream(device), stream(device), memory(device));
        write(&first, &block);
        let theirs = device.clone();
        let other = thread::spawn(move || {
            drop(block);
            let again = memory(&theirs);
            write(&first, &again);
        });
        let mine = memory(device);
        write(&second, &mine);
        drop(mine);
        let last = memory(device);
        write(&second, &last);
        other.join().unwrap();
    });
}
