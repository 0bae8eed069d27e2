//! Graphs of the driver that a fault, a fork or a reset ends, each in a process of its own.

use crate::{Case, Part, fixture::Lab, processes::start};
use gpumem_core::{Error, ErrorKind, LaunchConfig, Result};
use gpumem_cuda::Cuda;
use gpumem_kernel::{KernelDef, SliceMut};
use gpumem_runtime::{Device, DeviceArray, Graph, Stream, WriteForm};
use ndarray::Ix1;

pub(crate) const CASES: &[Case] = &[
    ("a_fault_in_a_graph_loses_the_device", |_| start("graph_fault")),
    #[cfg(unix)]
    ("a_forked_child_drops_a_graph", |_| start("graph_fork")),
    ("a_reset_ends_a_graph_that_was_launched", |_| start("graph_reset")),
];

pub(crate) const PARTS: &[Part] = &[
    ("graph_fault", fault),
    #[cfg(unix)]
    ("graph_fork", fork),
    ("graph_reset", reset),
];

const LEN: usize = 100;

type Array = DeviceArray<u32, Ix1, Cuda>;
type Recorded = Graph<(WriteForm<u32, Ix1>, u32), Array, Cuda>;

/// A graph that has been launched, and its argument. With a number other than 0 its kernel faults.
fn launched(lab: &Lab) -> (Device<Cuda>, Stream<Cuda>, Recorded, Array) {
    let device = Device::<Cuda>::from_raw(lab.device.clone());
    // SAFETY: each work-item writes its own element. The address of the fault is no memory.
    let declaration = unsafe { KernelDef::<(SliceMut<u32>, u32)>::new("fault_or_write") }.source(
        "GPUMEM_KERNEL fault_or_write(gpumem::slice<gpumem::u32> y, gpumem::u32 wrong) {
            gpumem::u32 i = (gpumem::u32)gpumem::global_id(0);
            if (wrong != 0) *(volatile int*)(8ull << 40) = 1;
            if (i < y.size()) y[i] = i + 1;
        }",
    );
    let kernel = declaration.load(&device).unwrap();
    let (stream, mut x) = (device.stream().unwrap(), device.device_array::<u32, _>(LEN).unwrap());
    let graph = device.record((&mut x, 0u32), |stream, (mut x, wrong)| {
        stream.fill(&mut x, 0)?;
        kernel.launch(stream, &LaunchConfig::linear(1, 128), (&mut x, wrong))?;
        stream.to_device(&x)
    });
    let graph = graph.unwrap();
    let made = graph.launch(&stream, (&mut x, 0u32)).unwrap();
    assert_eq!(made.copy_to_host().unwrap().to_vec(), (1..=LEN as u32).collect::<Vec<_>>());
    assert_eq!((graph.report().driver_graphs, graph.report().replayed), (1, None));
    (device, stream, graph, x)
}

fn fault(lab: &Lab) {
    let (device, stream, graph, mut x) = launched(lab);
    let made = graph.launch(&stream, (&mut x, 1u32)).unwrap();
    let error = stream.synchronize().unwrap_err();
    println!("    {error}");
    let ErrorKind::DeviceLost { cause } = error.kind() else { panic!("{error}") };
    assert!(cause.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{cause}");
    // Every later call tells the first cause again.
    let lost = |error: Error| assert_eq!(error.kind(), &ErrorKind::DeviceLost { cause: cause.clone() });
    lost(stream.synchronize().unwrap_err());
    lost(made.copy_to_host().unwrap_err());
    lost(x.copy_to_host().unwrap_err());
    lost(graph.launch(&stream, (&mut x, 0u32)).map(drop).unwrap_err());
    let again = |device: &Device<Cuda>| -> Result<()> {
        let graph = device.record((&x,), |stream, (x,)| stream.to_device(&x))?;
        graph.launch(&stream, (&x,)).map(drop)
    };
    lost(again(&device).unwrap_err());
    // All goes quietly.
    drop((graph, made, x, stream));
    let _ = (device.flush(), device.take_errors());
}

#[cfg(unix)]
fn fork(lab: &Lab) {
    let (device, stream, graph, mut x) = launched(lab);
    // SAFETY: the child calls nothing that another thread of the parent could hold a lock of, and ends by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let error = graph.launch(&stream, (&mut x, 0u32)).map(drop).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::ForkedChild, "{error}");
        let _ = (graph.report(), graph.dot());
        drop((graph, x, stream, device));
        // SAFETY: ends the child at once, without the parent's exit handlers.
        unsafe { libc::_exit(42) };
    }
    let mut status = 0;
    // SAFETY: a place for a number; the child is ours.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 42, "the child ended with {status:#x}");
    // The parent's graph is still the driver's.
    let made = graph.launch(&stream, (&mut x, 0u32)).unwrap();
    assert_eq!(made.get(LEN - 1).unwrap(), LEN as u32);
}

fn reset(lab: &Lab) {
    let (device, stream, graph, x) = launched(lab);
    // SAFETY: no other thread uses the device, and objects from before are only refused and dropped.
    unsafe { device.reset() }.unwrap();
    let (fresh, mut y) = (device.stream().unwrap(), device.device_array::<u32, _>(LEN).unwrap());
    let error = graph.launch(&fresh, (&mut y, 0u32)).map(drop).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Stale { .. }), "{error}");
    drop((stream, graph, x));
    device.flush().unwrap();
    assert_eq!(device.take_errors(), []);
    let (_, _, again, _) = launched(lab);
    assert_eq!(again.launch(&fresh, (&mut y, 0u32)).unwrap().get(0).unwrap(), 1);
}
