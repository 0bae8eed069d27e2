use crate::{
    abi::{Event, EventDescriptor, Status, SyncVar},
    events,
};
use std::{
    thread,
    time::{Duration, Instant},
};

fn create(manual_reset: bool) -> u32 {
    let descriptor =
        EventDescriptor { event_type: 0, node_id: 0, sync_var: SyncVar { user_data: 0, sync_var_size: 0 } };
    let event: *mut Event = events::create(&descriptor, manual_reset, false).unwrap();
    // SAFETY: the event was just made, and is destroyed by the test only.
    unsafe { (&raw const (*event).event_id).read_unaligned() }
}

#[test]
fn waiting_takes_an_event_unless_it_is_reset_by_hand() {
    let (once, always) = (create(false), create(true));
    assert_eq!(events::wait(&[once, always], false, 0), Status::WAIT_TIMEOUT);
    events::set(once, true);
    assert_eq!(events::wait(&[once, always], true, 5), Status::WAIT_TIMEOUT, "all");
    events::set(always, true);
    assert_eq!(events::wait(&[once, always], true, 5), Status::SUCCESS, "all");
    assert_eq!((events::is_set(once), events::is_set(always)), (Some(false), Some(true)));
    events::set(always, false);
    assert_eq!(events::wait(&[always], true, 5), Status::WAIT_TIMEOUT);
    assert_eq!((events::destroy(once), events::destroy(always)), (Status::SUCCESS, Status::SUCCESS));
    assert_eq!(events::destroy(once), Status::INVALID_HANDLE);
}

#[test]
fn a_waiter_is_woken_by_the_event_and_by_its_end() {
    let (event, doomed) = (create(false), create(false));
    let start = Instant::now();
    thread::scope(|scope| {
        let waiter = scope.spawn(move || events::wait(&[event], true, u32::MAX));
        let mourner = scope.spawn(move || events::wait(&[doomed], true, 60_000));
        thread::sleep(Duration::from_millis(5));
        events::set(event, true);
        events::destroy(doomed);
        assert_eq!(waiter.join().unwrap(), Status::SUCCESS);
        assert_eq!(mourner.join().unwrap(), Status::INVALID_HANDLE);
    });
    assert!(start.elapsed() < Duration::from_secs(30));
    events::destroy(event);
}

/// Both AMD's runtime and the one who waits for a signal wait for its event.
#[test]
fn an_event_that_resets_itself_wakes_all_that_wait_for_it() {
    let event = create(false);
    thread::scope(|scope| {
        let waiters = [(); 3].map(|()| scope.spawn(move || events::wait(&[event], true, 30_000)));
        while events::waiters(event) < waiters.len() {
            thread::yield_now();
        }
        events::set(event, true);
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), Status::SUCCESS);
        }
    });
    assert_eq!(events::is_set(event), Some(false));
    events::destroy(event);
}
