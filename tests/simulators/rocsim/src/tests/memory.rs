use crate::{
    abi::{MemFlags, PAGE, Status, pointer},
    memory::{self, Cause, span},
};

const NODE: u32 = 1;
const PEER: u32 = 2;

fn vram(bytes: u64) -> u64 {
    memory::allocate(NODE, bytes, MemFlags::default()).unwrap()
}

fn cause(node: u32, address: u64, bytes: u64) -> Cause {
    span(node, address, bytes).unwrap_err().cause
}

#[test]
fn a_gpu_reaches_only_memory_mapped_for_it() {
    let address = vram(PAGE + 1);
    assert_eq!(cause(NODE, address, 1), Cause::NotMapped { mapped: vec![] });
    assert_eq!(memory::map(address, PAGE, &[NODE]), Ok(address));
    assert_eq!(span(NODE, address + 5, 2 * PAGE - 5).unwrap().bytes() as u64, 2 * PAGE - 5);
    assert_eq!(cause(NODE, address + 5, 2 * PAGE), Cause::BeyondEnd { start: address, bytes: 2 * PAGE });
    assert_eq!(cause(PEER, address, 1), Cause::NotMapped { mapped: vec![NODE] });
    // Mapping again sets which GPUs have access from now on.
    assert_eq!(memory::map(address, PAGE, &[PEER]), Ok(address));
    assert_eq!(cause(NODE, address, 1), Cause::NotMapped { mapped: vec![PEER] });
    assert_eq!(memory::unmap(address), Status::SUCCESS);
    assert_eq!(cause(PEER, address, 1), Cause::NotMapped { mapped: vec![] });
    assert_eq!(memory::free(address), Status::SUCCESS);
    assert_eq!(cause(NODE, address, 1), Cause::Unknown);
    assert_eq!(memory::free(address), Status::ERROR);
    assert!(span(NODE, u64::MAX - 1, 4).is_err(), "the end of the address space");
}

#[test]
fn memory_that_is_in_use_outlives_its_release() {
    let address = vram(PAGE);
    memory::map(address, PAGE, &[NODE]).unwrap();
    let held = span(NODE, address, PAGE).unwrap();
    assert_eq!(memory::free(address), Status::SUCCESS);
    held.fill(&[1, 2, 3]);
    // SAFETY: the span is alive and has a page.
    let bytes = unsafe { std::slice::from_raw_parts(held.as_ptr(), PAGE as usize) };
    assert!(bytes.iter().zip([1, 2, 3].iter().cycle()).all(|(one, two)| one == two));
    drop(held);
    // The addresses are not used again at once.
    assert_ne!(vram(PAGE), address);
}

#[test]
fn registered_memory_is_counted() {
    let mut host = vec![0u8; 3 * PAGE as usize];
    let address = host.as_mut_ptr() as u64 + 100;
    let bytes = PAGE + 7;
    assert_eq!(memory::register(address, bytes, MemFlags::default()), Status::SUCCESS);
    let gpu = memory::map(address, bytes, &[NODE]).unwrap();
    assert_ne!(gpu, address);
    assert_eq!(gpu % PAGE, address % PAGE);
    assert_eq!(cause(NODE, address, 1), Cause::HostAddress);
    span(NODE, gpu, bytes).unwrap().fill(&[7]);
    assert_eq!((host[99], host[100], host[106 + PAGE as usize], host[107 + PAGE as usize]), (0, 7, 7, 0));

    // The same range a second time, for a peer: both stay until both are undone.
    assert_eq!(memory::register(address, bytes, MemFlags::default()), Status::SUCCESS);
    assert_eq!(memory::map(address, bytes, &[PEER]), Ok(gpu));
    assert_eq!((memory::unmap(address), memory::deregister(address)), (Status::SUCCESS, Status::SUCCESS));
    assert!(span(NODE, gpu, bytes).is_ok() && span(PEER, gpu, bytes).is_ok());
    let info = memory::info(address + 1).unwrap();
    assert_eq!({ info.kind }, pointer::REGISTERED_USER);
    assert_eq!({ info.gpu_address }, gpu);
    assert_eq!({ info.size_in_bytes }, bytes);
    assert_eq!((memory::unmap(address), memory::deregister(address)), (Status::SUCCESS, Status::SUCCESS));
    assert_eq!(cause(NODE, gpu, 1), Cause::Unknown);
    assert_eq!(memory::deregister(address), Status::MEMORY_NOT_REGISTERED);
    assert!(memory::info(address).is_none());
}

#[test]
fn a_handle_leads_to_the_same_bytes() {
    let address = vram(2 * PAGE);
    memory::map(address, 2 * PAGE, &[NODE]).unwrap();
    let handle = memory::export(address).unwrap();
    let (other, bytes) = memory::import(&handle, &[NODE]).unwrap();
    assert_eq!(bytes, 2 * PAGE);
    span(NODE, address + PAGE, 8).unwrap().fill(&[9]);
    // SAFETY: the span has eight bytes.
    let seen = unsafe { span(NODE, other + PAGE, 8).unwrap().as_ptr().cast::<[u8; 8]>().read() };
    assert_eq!(seen, [9; 8]);
    assert_eq!(memory::deregister(other), Status::SUCCESS);
    assert_eq!(memory::import(&[0; 8], &[]), Err(Status::INVALID_HANDLE));
    assert_eq!(memory::free(address), Status::SUCCESS);
}

#[test]
fn more_than_the_gpu_has_is_refused() {
    // The default machine has 1 GiB.
    let gib = 1 << 30;
    assert_eq!(memory::allocate(NODE, gib + PAGE, MemFlags::default()), Err(Status::NO_MEMORY));
    assert_eq!(memory::allocate(NODE, 0, MemFlags::default()), Err(Status::INVALID_PARAMETER));
    assert_eq!(memory::allocate(NODE, u64::MAX, MemFlags::default()), Err(Status::INVALID_PARAMETER));
    assert_eq!(memory::allocate(99, PAGE, MemFlags::default()), Err(Status::INVALID_NODE_UNIT));
}
