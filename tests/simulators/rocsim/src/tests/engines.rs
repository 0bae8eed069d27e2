use crate::{
    abi::{AmdSignal, MemFlags, PAGE, QueueResource, Status, packet, queue_type},
    engine, memory,
};
use std::{
    sync::atomic::{AtomicU16, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Host memory that the GPUs of these nodes may use.
fn memory(bytes: u64, nodes: &[u32]) -> u64 {
    let address = memory::allocate(0, bytes, MemFlags(MemFlags::NON_PAGED)).unwrap();
    memory::map(address, bytes, nodes).unwrap()
}

fn bytes<'a>(address: u64, count: usize) -> &'a mut [u8] {
    // SAFETY: the tests look at memory of their own that is never freed, and not while an engine writes it.
    unsafe { std::slice::from_raw_parts_mut(address as *mut u8, count) }
}

fn word<'a>(address: u64) -> &'a AtomicU64 {
    // SAFETY: an aligned word of memory that is never freed.
    unsafe { AtomicU64::from_ptr(address as *mut u64) }
}

fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        thread::sleep(Duration::from_micros(100));
    }
}

const RING: u64 = 4096;

struct Queue {
    resource: QueueResource,
    ring: u64,
}

impl Queue {
    fn new(node: u32, kind: u32) -> Self {
        let (ring, pointers) = (memory(RING, &[node]), memory(PAGE, &[node]));
        let mut resource = QueueResource {
            queue_id: 0,
            doorbell: std::ptr::null_mut(),
            write_ptr: pointers as *mut u64,
            read_ptr: (pointers + 64) as *mut u64,
            error_reason: std::ptr::null_mut(),
        };
        for slot in bytes(ring, RING as usize).chunks_mut(64) {
            slot[0] = packet::INVALID as u8;
        }
        // SAFETY: the ring and the pointers are never freed.
        unsafe { engine::create(node, kind, ring, RING, &mut resource).unwrap() };
        Self { resource, ring }
    }

    fn write_index(&self) -> &AtomicU64 {
        word(self.resource.write_ptr as u64)
    }

    fn read_index(&self) -> u64 {
        word(self.resource.read_ptr as u64).load(Ordering::Acquire)
    }

    fn ring_doorbell(&self, value: u64) {
        word(self.resource.doorbell as u64).store(value, Ordering::Release);
    }

    /// Appends words to an SDMA ring and rings.
    fn sdma(&self, words: &[u32]) {
        let start = self.write_index().load(Ordering::Relaxed);
        for (index, value) in words.iter().enumerate() {
            let at = self.ring + (start + 4 * index as u64) % RING;
            bytes(at, 4).copy_from_slice(&value.to_ne_bytes());
        }
        let end = start + 4 * words.len() as u64;
        self.write_index().store(end, Ordering::Release);
        self.ring_doorbell(end);
    }

    fn is_drained(&self) -> bool {
        self.read_index() == self.write_index().load(Ordering::Acquire)
    }

    /// Publishes an AQL packet at an index, without ringing.
    fn aql(&self, index: u64, header: u16, words: [u64; 8]) {
        let slot = self.ring + index * 64 % RING;
        for (at, value) in words.iter().enumerate().skip(1) {
            bytes(slot + 8 * at as u64, 8).copy_from_slice(&value.to_ne_bytes());
        }
        // SAFETY: the header is the first half-word of a slot that this test owns.
        unsafe { AtomicU16::from_ptr(slot as *mut u16) }.store(header, Ordering::Release);
    }
}

fn low(address: u64) -> u32 {
    address as u32
}

fn high(address: u64) -> u32 {
    (address >> 32) as u32
}

fn add_64(target: u64, value: u32) -> [u32; 8] {
    [10 | 47 << 25, low(target), high(target), value, 0, 0, 0, 0]
}

#[test]
fn the_dma_engine_runs_every_packet() {
    let queue = Queue::new(3, queue_type::SDMA);
    let data = memory(2 * PAGE, &[3]);
    let target = data + PAGE;
    for (index, byte) in bytes(data, 1000).iter_mut().enumerate() {
        *byte = index as u8;
    }
    queue.sdma(&[0, 0, 1, 999, 0, low(data), high(data), low(target), high(target)]);
    wait_for("copy", || queue.is_drained());
    assert_eq!(bytes(data, 1000), bytes(target, 1000));

    // Three rows of five bytes, pitches 16 and 32, from (2, 1) to (4, 0).
    bytes(target, 200).fill(0);
    let from = [low(data), high(data), 2 | 1 << 16, 15 << 13, 255];
    let to = [low(target), high(target), 4, 31 << 13, 255];
    queue.sdma(&[&[1 | 4 << 8][..], &from, &to, &[4 | 2 << 16, 0]].concat());
    wait_for("rectangle", || queue.is_drained());
    for row in 0..3u8 {
        let at = 32 * usize::from(row);
        let first = 16 * (row + 1) + 2;
        assert_eq!(bytes(target, 200)[at + 4..at + 9], [0, 1, 2, 3, 4].map(|byte| first + byte));
        assert_eq!(bytes(target, 200)[at + 9..at + 32], [0; 23]);
    }

    queue.sdma(&[11 | 2 << 30, low(target), high(target), 0x0403_0201, 1000 - 4]);
    queue.sdma(&add_64(target + 2000, 40));
    queue.sdma(&[5, low(target + 2008), high(target + 2008), 77]);
    queue.sdma(&[13 | 2 << 8, low(target + 2016), high(target + 2016)]);
    queue.sdma(&[17, 0, 0, 0, 0]);
    wait_for("fill, atomic, fence, timestamp, cache", || queue.is_drained());
    assert!(bytes(target, 1000).chunks(4).all(|word| word == [1, 2, 3, 4]) && bytes(target, 1001)[1000] != 1);
    assert_eq!(word(target + 2000).load(Ordering::Acquire), 40);
    assert_eq!(word(target + 2008).load(Ordering::Acquire), 77);
    assert!(word(target + 2016).load(Ordering::Acquire) > 0);

    // Waits until the word is at least 5, then adds once more.
    let gate = target + 3000 / 8 * 8;
    queue.sdma(&[8 | 5 << 28 | 1 << 31, low(gate), high(gate), 5, u32::MAX, 0]);
    queue.sdma(&add_64(target + 2000, 2));
    thread::sleep(Duration::from_millis(5));
    assert_eq!(word(target + 2000).load(Ordering::Acquire), 40, "the engine did not wait");
    word(gate).store(6, Ordering::Release);
    wait_for("poll", || queue.is_drained());
    assert_eq!(word(target + 2000).load(Ordering::Acquire), 42);

    // Many packets: the ring wraps around.
    for _ in 0..500 {
        queue.sdma(&add_64(target + 2000, 1));
        wait_for("room in the ring", || queue.is_drained());
    }
    assert_eq!(word(target + 2000).load(Ordering::Acquire), 542);
    assert_eq!(engine::destroy(queue.resource.queue_id), Status::SUCCESS);
    assert_eq!(engine::destroy(queue.resource.queue_id), Status::INVALID_HANDLE);
}

#[test]
fn a_fault_stops_the_gpu_and_only_that() {
    let (broken, sound) = (Queue::new(4, queue_type::SDMA), Queue::new(5, queue_type::SDMA));
    let data = memory(PAGE, &[4, 5]);
    let secret = memory(PAGE, &[5]);
    broken.sdma(&[1, 99, 0, low(secret), high(secret), low(data), high(data)]);
    broken.sdma(&add_64(data + 128, 1));
    sound.sdma(&add_64(data + 256, 1));
    wait_for("the other GPU", || sound.is_drained());
    thread::sleep(Duration::from_millis(20));
    assert_eq!((broken.read_index(), word(data + 128).load(Ordering::Acquire)), (0, 0));
    // A queue of a GPU that stands still can be destroyed.
    assert_eq!(engine::destroy(broken.resource.queue_id), Status::SUCCESS);
    assert_eq!(engine::destroy(sound.resource.queue_id), Status::SUCCESS);
}

#[test]
fn a_paused_queue_goes_on_later() {
    let queue = Queue::new(6, queue_type::SDMA);
    let data = memory(PAGE, &[6]);
    assert_eq!(engine::pause(queue.resource.queue_id, true), Status::SUCCESS);
    queue.sdma(&add_64(data, 3));
    thread::sleep(Duration::from_millis(10));
    assert_eq!(word(data).load(Ordering::Acquire), 0);
    assert_eq!(engine::pause(queue.resource.queue_id, false), Status::SUCCESS);
    wait_for("the queue", || queue.is_drained());
    assert_eq!(word(data).load(Ordering::Acquire), 3);
    assert_eq!(engine::destroy(queue.resource.queue_id), Status::SUCCESS);
}

#[test]
fn packets_are_taken_when_the_doorbell_has_rung_and_in_order() {
    let queue = Queue::new(7, queue_type::COMPUTE_AQL);
    let signal = memory(PAGE, &[7]);
    let value = word(signal + std::mem::offset_of!(AmdSignal, value) as u64);
    value.store(2, Ordering::Release);
    let barrier = |signal| [0, 0, 0, 0, 0, 0, 0, signal];
    // Two producers: the second one is ready first.
    queue.write_index().store(2, Ordering::Release);
    queue.aql(1, packet::BARRIER_AND, barrier(signal));
    let doorbell = || word(queue.resource.doorbell as u64).load(Ordering::Acquire);
    let silent = doorbell();
    queue.ring_doorbell(1);
    // The engine looks only after it has answered, however late it gets a processor.
    wait_for("the engine", || doorbell() == silent);
    thread::sleep(Duration::from_millis(20));
    assert_eq!(queue.read_index(), 0, "the first packet is not there yet");
    queue.aql(0, packet::BARRIER_AND, barrier(signal));
    thread::sleep(Duration::from_millis(5));
    assert_eq!(queue.read_index(), 0, "the doorbell was not rung");
    queue.ring_doorbell(0);
    wait_for("both packets", || value.load(Ordering::Acquire) == 0);
    assert_eq!(queue.read_index(), 2);
    assert_eq!(engine::destroy(queue.resource.queue_id), Status::SUCCESS);
}
