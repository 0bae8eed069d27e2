//! Memory of the library's own that leaves it as a loan, and comes back.

use super::device;
use gpumem::{
    Backend, BackendDevice, CudaArrayInterface, DescriptorError, DlpackTensor, ErrorKind,
    HasCudaArrayInterface, ImportedArray, Loan, Result,
    any::{AnyDevice, Typed},
    cuda_array, cuda_array_mut,
    kernel::*,
};
use gpumem_core::{Attach, MappedOptions};
use gpumem_host::{Host, HostOptions};
use gpumem_integration::{fill, reset, slow_copy};
use gpumem_runtime as runtime;
use host_double::{Double, DoubleOptions};
use ndarray::{Array1, Ix1, s};

type Taken = Result<runtime::ImportedArray<u32, Ix1, Host>>;
type Way<'a> = (&'static str, Box<dyn Fn(Loan<Host>) -> Taken + 'a>);

fn refuses<T>(result: Result<T>) -> bool {
    matches!(result, Err(error) if matches!(error.kind(), ErrorKind::InvalidArgument { .. }))
}

fn overlaps<T>(result: Result<T>) -> bool {
    matches!(result, Err(error) if matches!(error.kind(), ErrorKind::Overlap { .. }))
}

fn says_read_only<T>(result: Result<T>) -> bool {
    matches!(result, Err(error) if *error.kind() == ErrorKind::Descriptor(DescriptorError::ReadOnly))
}

/// The ways in which memory comes back.
fn ways(device: &runtime::Device<Host>) -> [Way<'_>; 2] {
    [
        ("cuda array", Box::new(|loan| device.as_cuda_array(loan))),
        ("dlpack", Box::new(|loan| device.from_dlpack(loan.into_dlpack()?, None))),
    ]
}

#[test]
fn memory_of_a_scope_cannot_be_lent() {
    let device = device();
    let stream = device.stream().unwrap();
    let mut data = Array1::<u32>::from_elem(1024, 7);
    let refused = |result: Result<Loan<Host>>| {
        assert!(matches!(result, Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. })));
    };
    device
        .mapped([data.view_mut()], |arrays| {
            let view = arrays[0].device_view();
            refused(view.lend_to_host());
            refused(view.lend(&stream));
            refused(view.slice(s![3..9]).unwrap().lend(&stream));
            let mut view = arrays[0].device_view_mut();
            refused(view.lend_mut_to_host());
            refused(view.lend_mut(&stream));
        })
        .unwrap();
    stream
        .scope(|scope| {
            let mut mapped = scope.mapped(data.view_mut()).unwrap();
            refused(mapped.device_view_mut().lend_mut_to_host());
        })
        .unwrap();
    // An object that the library has taken over lives as long as the loan.
    let mut registered = device.register_mapped(data).unwrap();
    let loan = registered.lend_mut_to_host().unwrap();
    drop(registered);
    device.flush().unwrap();
    assert!(!loan.is_read_only());
    drop(loan);
}

/// Elements that a slow kernel copies. More than one group is run by threads of rayon, whose queues Miri's stacked borrows
/// refuse.
const LEN: usize = if cfg!(miri) { 1 << 8 } else { 1 << 14 };

#[test]
fn an_array_imported_from_its_own_loan_is_read_in_order() {
    let device = device();
    let (ours, theirs) = (device.stream().unwrap(), device.stream().unwrap());
    for (way, take) in ways(&device) {
        let mut array = device.to_device(&[1u32; LEN]).unwrap();
        let alias = take(array.lend_mut_to_host().unwrap()).unwrap();
        assert!(alias.is_read_only() && alias.address() == array.address(), "{way}");
        let (alias, error) = alias.try_into_array().unwrap_err();
        assert!(says_read_only::<()>(Err(error)), "{way}");
        // A slow writer of the one is waited for by readers of the other, on any stream, and the other way round.
        let slow = slow_copy().load(&device).unwrap();
        let dims = config_for_items([LEN, 1, 1], [256, 1, 1]);
        for value in 2..6u32 {
            let source = device.to_device(&[value; LEN]).unwrap();
            slow.launch(&ours, &dims, (&source, &mut array)).unwrap();
            let copy = theirs.to_device(&alias).unwrap();
            ours.fill(&mut array, 99).unwrap();
            assert!(copy.copy_to_host().unwrap().iter().all(|found| *found == value), "{way}");
            assert!(alias.copy_to_host().unwrap().iter().all(|found| *found == 99), "{way}");
        }
        // One launch cannot read memory by one name and write it by the other.
        assert!(overlaps(slow.launch(&ours, &dims, (&alias, &mut array))), "{way}");
        {
            let low = alias.slice(s![..100]).unwrap();
            let mut high = array.slice_mut(s![100..200]).unwrap();
            slow.launch(&ours, &config_for_items([100, 1, 1], [100, 1, 1]), (&low, &mut high)).unwrap();
        }
        // The handle keeps the memory, and is its only one once the array is gone.
        drop(array);
        ours.synchronize().unwrap();
        device.flush().unwrap();
        assert!(alias.copy_to_host().unwrap().iter().all(|found| *found == 99), "{way}");
        assert!(!alias.is_read_only());
        let mut array = alias.try_into_array().map_err(|(_, error)| error).unwrap();
        array.fill(5).unwrap();
        assert_eq!(array.get(17).unwrap(), 5);
    }
    assert!(device.take_errors().is_empty());
}

#[test]
fn a_lent_part_is_imported_as_that_part() {
    let device = device();
    for (_, take) in ways(&device) {
        let array = device.to_device(&Array1::from_iter(0..100u32)).unwrap();
        let view = array.slice(s![10..90;-3]).unwrap();
        let alias = take(view.lend_to_host().unwrap()).unwrap();
        assert_eq!(alias.copy_to_host().unwrap(), view.copy_to_host().unwrap());
        // Once more, from the handle.
        let part = alias.slice(s![1..5]).unwrap();
        let again = take(part.lend_to_host().unwrap()).unwrap();
        assert_eq!(again.copy_to_host().unwrap(), part.copy_to_host().unwrap());
        assert!(again.is_read_only());
    }
}

#[test]
fn memory_that_the_host_sees_is_not_imported_again() {
    let device = device();
    let stream = device.stream().unwrap();
    for (way, take) in ways(&device) {
        let mut pinned = device.pinned_array::<u32, _>(64usize).unwrap();
        assert!(refuses(take(pinned.lend_mut_to_host().unwrap())), "{way}");
        let mut mapped = device.mapped_array::<u32, _>(64usize, MappedOptions::default()).unwrap();
        assert!(refuses(take(mapped.lend_mut_to_host().unwrap())), "{way}");
        assert!(refuses(take(mapped.device_view_mut().lend_mut_to_host().unwrap())), "{way}");
        let mut managed = device.managed_array::<u32, _>(64usize, Attach::Global).unwrap();
        assert!(refuses(take(managed.lend_mut_to_host().unwrap())), "{way}");
        let mut registered = device.register(Array1::<u32>::zeros(64)).unwrap();
        assert!(refuses(take(registered.lend_mut_to_host().unwrap())), "{way}");
        // Nothing of a loan is left: the array is deregistered, and its views are right.
        assert_eq!(registered.deregister().unwrap().sum(), 0);
        mapped.view_mut().unwrap().fill(3);
        assert_eq!(mapped.copy_to_host().unwrap().sum(), 3 * 64);
    }
    // Nor copied from or written through a loan, which is borrowed only.
    let mut mapped = device.mapped_array::<u32, _>(64usize, MappedOptions::default()).unwrap();
    let mut loan = mapped.device_view_mut().lend_mut(&stream).unwrap();
    assert!(refuses(device.to_device(&cuda_array::<u32, Ix1>(&loan))));
    let fill = fill().load(&device).unwrap();
    let dims = config_for_items([64, 1, 1], [64, 1, 1]);
    assert!(refuses(fill.launch(&stream, &dims, (Out(cuda_array_mut::<u32, Ix1>(&mut loan)), 1u32))));
}

#[test]
fn a_borrowed_loan_is_read_in_order_and_not_written() {
    let device = device();
    let (ours, theirs) = (device.stream().unwrap(), device.stream().unwrap());
    let mut array = device.to_device(&[1u32; 256]).unwrap();
    let mut loan = array.lend_mut(&theirs).unwrap();
    let fill = fill().load(&device).unwrap();
    let slow = slow_copy().load(&device).unwrap();
    let dims = config_for_items([256, 1, 1], [256, 1, 1]);
    let written = fill.launch(&ours, &dims, (Out(cuda_array_mut::<u32, Ix1>(&mut loan)), 9u32));
    assert!(says_read_only(written));
    let mut out = vec![0u32; 256];
    for value in 2..5 {
        ours.fill(&mut array, value).unwrap();
        assert_eq!(device.to_device(&cuda_array::<u32, Ix1>(&loan)).unwrap().get(3).unwrap(), value);
        slow.launch(&theirs, &dims, (In(cuda_array::<u32, Ix1>(&loan)), Out(&mut out))).unwrap();
        assert!(out.iter().all(|found| *found == value));
        theirs
            .scope(|scope| {
                let from = In(cuda_array::<u32, Ix1>(&loan));
                slow.launch_in(scope, &dims, (from, Out(&mut out)))
            })
            .unwrap()
            .unwrap();
        assert!(out.iter().all(|found| *found == value));
    }
    let clash = slow.launch(&ours, &dims, (In(cuda_array::<u32, Ix1>(&loan)), &mut array));
    assert!(overlaps(clash));
}

#[test]
fn a_loan_of_another_backend_or_device_is_refused() {
    let (host, any) =
        (BackendDevice::<Host>::open("host:0").unwrap(), gpumem::Device::open("host:0").unwrap());
    fn takes<A: Backend>(device: &BackendDevice<A>, tensor: DlpackTensor) -> Result<()> {
        device.from_dlpack::<u32, Ix1>(tensor, None).map(drop)
    }
    let array = host.to_device(&[1u32, 2, 3]).unwrap();
    assert!(refuses(any.as_cuda_array::<u32, Ix1, _>(array.lend_to_host().unwrap())));
    assert!(refuses(takes(&any, array.lend_to_host().unwrap().into_dlpack().unwrap())));
    let array = any.to_device(&[1u32, 2, 3]).unwrap();
    assert!(refuses(host.as_cuda_array::<u32, Ix1, _>(array.lend_to_host().unwrap())));
    assert!(refuses(takes(&host, array.lend_to_host().unwrap().into_dlpack().unwrap())));
    let same: ImportedArray<u32, Ix1> = any.as_cuda_array(array.lend_to_host().unwrap()).unwrap();
    assert_eq!(same.copy_to_host().unwrap().to_vec(), [1, 2, 3]);
    let (one, two) = (device(), device());
    let array = one.to_device(&[1u32, 2, 3]).unwrap();
    assert!(two.as_cuda_array::<u32, Ix1, _>(array.lend_to_host().unwrap()).is_err());
}

/// Passes an object on by a shared pointer.
#[test]
fn through_a_shared_pointer_an_object_can_only_be_read() {
    use std::{rc::Rc, sync::Arc};
    let device = device();
    let stream = device.stream().unwrap();
    let mut array = device.to_device(&[1u32, 2, 3]).unwrap();
    let loan = Arc::new(array.lend_mut(&stream).unwrap());
    let says =
        |object: &dyn HasCudaArrayInterface| -> CudaArrayInterface { object.cuda_array_interface().unwrap() };
    assert!(!says(&*loan).data.1);
    assert!(says(&loan).data.1 && says(&&*loan).data.1 && says(&Rc::new(loan.clone())).data.1);
    assert!(!says(&Box::new(array.lend_mut(&stream).unwrap())).data.1);
}

/// Memory that comes back again and again, and is not used meanwhile, keeps no event for each time.
#[test]
fn imports_of_lent_memory_leave_nothing() {
    let raw = Host::open_with(&HostOptions::new()).unwrap();
    let device: runtime::Device<Host> = runtime::Device::from_raw(raw.clone());
    let array = device.to_device(&[1_u32, 2, 3]).unwrap();
    let loan = std::sync::Arc::new(array.lend(&device.stream().unwrap()).unwrap());
    for _ in 0..200 {
        drop(device.as_cuda_array::<u32, Ix1, _>(loan.clone()).unwrap());
    }
    let events = raw.counters().events;
    assert!(events < 64, "{events} events");
}

#[test]
fn a_tensor_from_before_a_reset_is_stale() {
    let device = device();
    let mut array = device.to_device(&vec![7u32; 1 << 10]).unwrap();
    let read_only = array.lend_to_host().unwrap().into_dlpack().unwrap();
    let writable = array.lend_mut_to_host().unwrap().into_dlpack().unwrap();
    let unversioned = array.lend_mut_to_host().unwrap().into_dlpack_unversioned().unwrap();
    reset(&device).unwrap();
    // The memory is free again, and may be that of a newer array.
    let newer = device.to_device(&vec![1u32; 1 << 10]).unwrap();
    for tensor in [read_only, writable, unversioned] {
        let error = device.from_dlpack::<u32, Ix1>(tensor, None).map(drop).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Stale { .. }), "{error}");
    }
    assert!(newer.copy_to_host().unwrap().iter().all(|found| *found == 1));
}

#[test]
fn a_device_that_two_types_have_is_not_reset_by_one() {
    let raw = Host::open_with(&HostOptions::new()).unwrap();
    let any = gpumem::Device::from_raw(<AnyDevice as Typed<Host>>::from_typed(raw.clone()));
    let host = runtime::Device::<Host>::from_raw(raw);
    let pinned = any.pinned_array::<u32, _>(1 << 16).unwrap();
    let refused = |result: Result<()>| {
        assert!(matches!(result, Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. })));
    };
    refused(reset(&host));
    assert!(pinned.view().unwrap().iter().all(|found| *found == 0));
    refused(reset(&any));
    drop((pinned, any));
    reset(&host).unwrap();
}

/// The driver would go on using pages that were given back to the system, in the place of those that lie there next.
#[test]
fn a_neighbour_keeps_no_page_locked_but_the_shared_one() {
    let device = runtime::Device::<Double>::from_raw(Double::open_with(&DoubleOptions::default()).unwrap());
    let page = gpumem_core::process::page_size();
    let locked = || device.raw().host().counters().live_registered_bytes as usize;
    let mut all = Array1::<u8>::zeros(12 * page);
    let start = all.as_ptr().align_offset(page);
    // Of eight pages, a part of the first and the last.
    let (before, mut neighbour) = all.view_mut().split_at(ndarray::Axis(0), start + 7 * page + 50);
    let (_, mut array) = before.split_at(ndarray::Axis(0), start + 100);
    let (sender, receiver) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let device = &device;
        let first = scope.spawn(move || {
            device.pinned([array.view_mut()], |_| {
                sender.send(()).unwrap();
                ended.recv().unwrap();
            })
        });
        receiver.recv().unwrap();
        assert_eq!(locked(), 8 * page);
        device
            .pinned([neighbour.slice_mut(s![..10])], |_| {
                assert_eq!(locked(), 8 * page);
                end.send(()).unwrap();
                first.join().unwrap().unwrap();
                assert_eq!(locked(), page);
            })
            .unwrap();
    });
    assert_eq!(locked(), 0);
}
