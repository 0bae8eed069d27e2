//! The part of the HSA runtime that the proof programs use.

use super::{api, ok};
use std::ffi::{CStr, c_void};

pub(crate) const FOREVER: u64 = 20_000_000_000; // nanoseconds: long enough, and a hang fails
pub(crate) const EQUAL: u32 = 0;
pub(crate) const LESS: u32 = 2;
pub(crate) const OUT_OF_RESOURCES: u32 = 0x1008;

pub(crate) type HandleCallback = unsafe extern "C" fn(u64, *mut c_void) -> u32;

/// `hsa_queue_t`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct HsaQueue {
    pub(crate) kind: u32,
    pub(crate) features: u32,
    pub(crate) base: *mut [u64; 8],
    pub(crate) doorbell: u64,
    pub(crate) size: u32,
    pub(crate) reserved: u32,
    pub(crate) id: u64,
}

/// `hsa_pitched_ptr_t`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Pitched {
    pub(crate) base: *mut u8,
    pub(crate) pitch: usize,
    pub(crate) slice: usize,
}

/// `hsa_amd_event_t` of a memory fault.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct FaultEvent {
    pub(crate) kind: u32,
    pub(crate) agent: u64,
    pub(crate) address: u64,
    pub(crate) reason: u32,
}

api! {
    /// Functions of the HSA runtime. Handles are 64-bit numbers.
    HsaApi = "libhsa-runtime64.so.1" {
        hsa_init() -> u32;
        hsa_shut_down() -> u32;
        hsa_iterate_agents(callback: HandleCallback, data: *mut c_void) -> u32;
        hsa_agent_get_info(agent: u64, what: u32, value: *mut c_void) -> u32;
        hsa_amd_agent_iterate_memory_pools(agent: u64, callback: HandleCallback, data: *mut c_void) -> u32;
        hsa_amd_memory_pool_get_info(pool: u64, what: u32, value: *mut c_void) -> u32;
        hsa_amd_agent_memory_pool_get_info(agent: u64, pool: u64, what: u32, value: *mut c_void) -> u32;
        hsa_amd_memory_pool_allocate(pool: u64, bytes: usize, flags: u32, address: *mut *mut u8) -> u32;
        hsa_amd_memory_pool_free(address: *mut u8) -> u32;
        hsa_amd_agents_allow_access(count: u32, agents: *const u64, flags: *const u32, address: *const u8) -> u32;
        hsa_amd_memory_lock(host: *mut u8, bytes: usize, agents: *const u64, count: i32, agent: *mut *mut u8) -> u32;
        hsa_amd_memory_unlock(host: *mut u8) -> u32;
        hsa_amd_memory_fill(address: *mut u8, value: u32, count: usize) -> u32;
        hsa_memory_copy(to: *mut u8, from: *const u8, bytes: usize) -> u32;
        hsa_amd_memory_async_copy(to: *mut u8, to_agent: u64, from: *const u8, from_agent: u64, bytes: usize,
            count: u32, after: *const u64, done: u64) -> u32;
        hsa_amd_memory_async_copy_rect(to: *const Pitched, to_offset: *const [u32; 3], from: *const Pitched,
            from_offset: *const [u32; 3], range: *const [u32; 3], agent: u64, direction: u32, count: u32,
            after: *const u64, done: u64) -> u32;
        hsa_signal_create(value: i64, count: u32, consumers: *const u64, signal: *mut u64) -> u32;
        hsa_signal_destroy(signal: u64) -> u32;
        hsa_signal_store_screlease(signal: u64, value: i64) -> ();
        hsa_signal_load_scacquire(signal: u64) -> i64;
        hsa_signal_wait_scacquire(signal: u64, condition: u32, value: i64, timeout: u64, state: u32) -> i64;
        hsa_queue_create(agent: u64, size: u32, kind: u32, callback: *const c_void, data: *mut c_void,
            private: u32, group: u32, queue: *mut *mut HsaQueue) -> u32;
        hsa_queue_destroy(queue: *mut HsaQueue) -> u32;
        hsa_queue_add_write_index_screlease(queue: *const HsaQueue, count: u64) -> u64;
        hsa_amd_profiling_async_copy_enable(enable: bool) -> u32;
        hsa_amd_profiling_get_async_copy_time(signal: u64, time: *mut [u64; 2]) -> u32;
        hsa_amd_register_system_event_handler(handler: unsafe extern "C" fn(*const FaultEvent, *mut c_void) -> u32,
            data: *mut c_void) -> u32;
        hsa_amd_ipc_memory_create(address: *mut u8, bytes: usize, handle: *mut [u32; 8]) -> u32;
        hsa_amd_ipc_memory_attach(handle: *const [u32; 8], bytes: usize, count: u32, agents: *const u64,
            address: *mut *mut u8) -> u32;
        hsa_amd_ipc_memory_detach(address: *mut u8) -> u32;
    }
}

/// The runtime, its agents and the pools that matter.
#[derive(Debug)]
pub(crate) struct Hsa {
    pub(crate) api: HsaApi,
    pub(crate) cpu: u64,
    pub(crate) gpus: Vec<Gpu>,
    /// Host memory, fine-grained.
    pub(crate) host: u64,
}

/// A GPU and the pool of its memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gpu {
    pub(crate) agent: u64,
    pub(crate) vram: u64,
}

unsafe extern "C" fn collect(handle: u64, list: *mut c_void) -> u32 {
    // SAFETY: `list` is the vector that the caller of the iteration has passed.
    unsafe { (*list.cast::<Vec<u64>>()).push(handle) };
    0
}

impl Hsa {
    pub(crate) fn start() -> Self {
        let api = HsaApi::load();
        ok!(api.hsa_init());
        let mut agents: Vec<u64> = Vec::new();
        ok!(api.hsa_iterate_agents(collect, (&raw mut agents).cast()));
        let mut hsa = Self { api, cpu: 0, gpus: Vec::new(), host: 0 };
        for agent in agents {
            let mut pools: Vec<u64> = Vec::new();
            ok!(api.hsa_amd_agent_iterate_memory_pools(agent, collect, (&raw mut pools).cast()));
            // Pools of global memory (segment 0), by their flags: 1 kernel arguments, 2 fine, 4 coarse.
            let global = |flags: u32| {
                let pool = pools.iter().find(|pool| {
                    hsa.pool_info::<u32>(**pool, 0) == 0 && hsa.pool_info::<u32>(**pool, 1) == flags
                });
                *pool.unwrap()
            };
            if hsa.agent_info::<u32>(agent, 17) == 1 {
                let vram = global(4);
                hsa.gpus.push(Gpu { agent, vram });
            } else {
                let host = global(2);
                (hsa.cpu, hsa.host) = (agent, host);
            }
        }
        hsa
    }

    pub(crate) fn agent_info<T: Default>(&self, agent: u64, what: u32) -> T {
        let mut value = T::default();
        ok!(self.api.hsa_agent_get_info(agent, what, (&raw mut value).cast()));
        value
    }

    pub(crate) fn pool_info<T: Default>(&self, pool: u64, what: u32) -> T {
        let mut value = T::default();
        ok!(self.api.hsa_amd_memory_pool_get_info(pool, what, (&raw mut value).cast()));
        value
    }

    pub(crate) fn agent_name(&self, agent: u64) -> String {
        let name = self.agent_info::<[u64; 8]>(agent, 0);
        // SAFETY: the runtime writes a C string into the 64 bytes.
        unsafe { CStr::from_ptr(name.as_ptr().cast()) }.to_str().unwrap().to_owned()
    }

    pub(crate) fn allocate(&self, pool: u64, bytes: usize) -> *mut u8 {
        let mut address = std::ptr::null_mut();
        ok!(self.api.hsa_amd_memory_pool_allocate(pool, bytes, 0, &mut address));
        address
    }

    /// Host memory that the GPUs may use, with these contents.
    pub(crate) fn host_memory(&self, contents: &[u8]) -> *mut u8 {
        let address = self.allocate(self.host, contents.len());
        let agents: Vec<u64> = self.gpus.iter().map(|gpu| gpu.agent).collect();
        let api = &self.api;
        ok!(api.hsa_amd_agents_allow_access(agents.len() as u32, agents.as_ptr(), std::ptr::null(), address));
        // SAFETY: the memory is new, that long, and visible to the host.
        unsafe { std::ptr::copy_nonoverlapping(contents.as_ptr(), address, contents.len()) };
        address
    }

    pub(crate) fn free(&self, address: *mut u8) {
        ok!(self.api.hsa_amd_memory_pool_free(address));
    }

    pub(crate) fn signal(&self, value: i64) -> u64 {
        let mut signal = 0;
        ok!(self.api.hsa_signal_create(value, 0, std::ptr::null(), &mut signal));
        signal
    }

    /// Waits for a signal to become 0.
    pub(crate) fn wait(&self, signal: u64) {
        let value = self.api.hsa_signal_wait_scacquire(signal, LESS, 1, FOREVER, 0);
        assert_eq!(value, 0, "a signal was not completed");
    }

    /// Starts a copy that the first GPU does; gives the signal of its completion.
    pub(crate) fn copy(&self, to: *mut u8, from: *const u8, bytes: usize, after: &[u64], kind: Copy) -> u64 {
        let gpu = self.gpus[0].agent;
        let (to_agent, from_agent) = match kind {
            Copy::HostToDevice => (gpu, self.cpu),
            Copy::DeviceToHost => (self.cpu, gpu),
            Copy::DeviceToDevice => (gpu, gpu),
        };
        let done = self.signal(1);
        // The runtime refuses a list if its length is given as zero.
        let list = if after.is_empty() { std::ptr::null() } else { after.as_ptr() };
        let count = after.len() as u32;
        let api = &self.api;
        ok!(api.hsa_amd_memory_async_copy(to, to_agent, from, from_agent, bytes, count, list, done));
        done
    }

    /// Bytes of device memory, read through a copy.
    pub(crate) fn read(&self, from: *const u8, bytes: usize) -> Vec<u8> {
        let host = self.host_memory(&vec![0; bytes]);
        let done = self.copy(host, from, bytes, &[], Copy::DeviceToHost);
        self.wait(done);
        ok!(self.api.hsa_signal_destroy(done));
        let contents = host_bytes(host, bytes).to_vec();
        self.free(host);
        contents
    }

    /// Writes device memory through a copy.
    pub(crate) fn write(&self, to: *mut u8, contents: &[u8]) {
        let host = self.host_memory(contents);
        let done = self.copy(to, host, contents.len(), &[], Copy::HostToDevice);
        self.wait(done);
        ok!(self.api.hsa_signal_destroy(done));
        self.free(host);
    }
}

/// The direction of a copy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Copy {
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
}

/// Host memory as a slice, for reading while nothing writes.
pub(crate) fn host_bytes<'a>(address: *const u8, bytes: usize) -> &'a [u8] {
    // SAFETY: the proof programs look only at live host memory that no copy is under way to.
    unsafe { std::slice::from_raw_parts(address, bytes) }
}
