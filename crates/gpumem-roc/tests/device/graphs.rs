//! HIP's own graphs: asked for, tested, and refused with the reason.

use super::{
    fixture::{Lab, Skip},
    simulator::kernels::register,
};
use gpumem_conformance::RanOn;
use gpumem_roc::Roc;
use gpumem_runtime::{Device, reads, writes};
use rocsim::kernels::registry::Dispatch;
use std::{
    collections::BTreeMap,
    ffi::c_void,
    process::{Command, ExitCode},
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

/// In another process: what is wrong with HIP's graphs.
pub(super) const TASK: &str = "GPUMEM_TEST_GRAPHS";

pub(super) fn graphs_are_hips_own_where_they_are_asked_for(lab: &Lab) -> Result<(), Skip> {
    let told = |task: &str, asked: &str| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let output = child.env(TASK, task).env("GPUMEM_ROC_GRAPHS", asked).output().unwrap();
        assert!(output.status.success(), "{task}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let expect = |task, asked, words: &str| {
        let told = told(task, asked);
        assert!(told.contains(words), "{task:?} with {asked:?}: {told}");
    };
    for asked in ["", "replayed"] {
        expect(
            "",
            asked,
            "call by call: HIP's own graphs are used where GPUMEM_ROC_GRAPHS=native asks for them",
        );
    }
    expect("", "1", "GPUMEM_ROC_GRAPHS is native or replayed");
    let hip = gpumem_sys::hip::load(&gpumem_sys::Places::from_environment()).unwrap().functions;
    let version = gpumem_sys::hip::Version::of(&hip).unwrap();
    if (version.major(), version.minor()) < (6, 4) {
        expect(
            "",
            "native",
            "call by call: HIP's own graphs are used from version 6.4 on, and this HIP is older",
        );
        return Ok(());
    }
    expect("", "native", "1 graphs of the driver");
    expect(
        "",
        "native",
        "1025 fills\n0 bytes of temporaries in 0, and 0 bytes of constants\nenqueued call by call: the driver could not",
    );
    if lab.ran_on != RanOn::Rocsim {
        return Err("HIP's graphs are right; only the simulated GPU has wrong ones");
    }
    for task in ["one launch", "changes"] {
        expect(task, "native", "call by call: the self-test of HIP's own graphs found wrong results");
    }
    Ok(())
}

/// The other process: launches a graph and prints its report, or the error.
pub(super) fn launch_graphs(task: &str) -> ExitCode {
    match task {
        "one launch" => assert!(register(c"gpumem_graph_test", one_launch_is_wrong)),
        "changes" => assert!(register(c"gpumem_graph_test", changes_are_forgotten)),
        _ => {}
    }
    let device = match Device::<Roc>::open("roc") {
        Ok(device) => device,
        Err(error) => {
            println!("{error}");
            return ExitCode::SUCCESS;
        }
    };
    let stream = device.stream().unwrap();
    let forms = (reads::<u32, _>(100), writes::<u32, _>(100), writes::<u8, _>(8));
    let graph = device.record(forms, |stream, (x, mut y, mut z)| {
        stream.copy_to_device(&mut y, &x)?;
        // Within a word: from a table, which is uploaded for the first of such fills.
        let (_, mut rest) = z.split_at_mut(0, 1)?;
        stream.fill(&mut rest.split_at_mut(0, 2)?.0, 7)
    });
    let graph = graph.unwrap();
    let (mut x, mut y) = (device.to_device(&[0u32; 100]).unwrap(), device.to_device(&[0u32; 100]).unwrap());
    let mut z = device.to_device(&[0u8; 8]).unwrap();
    for round in 1..4 {
        stream.fill(&mut x, round).unwrap();
        stream.fill(&mut z, 1).unwrap();
        graph.launch(&stream, (&x, &mut y, &mut z)).unwrap();
        assert_eq!(y.copy_to_host().unwrap().to_vec(), [round; 100]);
        assert_eq!(z.copy_to_host().unwrap().to_vec(), [1, 7, 7, 1, 1, 1, 1, 1]);
    }
    let long = device.record((writes::<u32, _>(100),), |stream, (mut y,)| {
        (0..1025).try_for_each(|round| stream.fill(&mut y, round))
    });
    let long = long.unwrap();
    long.launch(&stream, (&mut y,)).unwrap();
    assert_eq!(y.copy_to_host().unwrap().to_vec(), [1024; 100]);
    println!("{}\n{}", graph.report(), long.report());
    ExitCode::SUCCESS
}

/// The arguments of the kernel of the self-test.
#[repr(C)]
struct Arguments {
    from: u64,
    to: u64,
    number: u32,
}

unsafe extern "C" fn one_launch_is_wrong(arguments: *const c_void, dispatch: *const c_void) -> i32 {
    static LAUNCHES: AtomicU32 = AtomicU32::new(0);
    let wrong = u32::from(LAUNCHES.fetch_add(1, Ordering::Relaxed) == 1000);
    // SAFETY: what the simulator passes.
    unsafe { compute(arguments, dispatch, |_, number| number + wrong) }
}

unsafe extern "C" fn changes_are_forgotten(arguments: *const c_void, dispatch: *const c_void) -> i32 {
    static FIRST: Mutex<BTreeMap<u64, u32>> = Mutex::new(BTreeMap::new());
    // SAFETY: what the simulator passes.
    unsafe { compute(arguments, dispatch, |to, number| *FIRST.lock().unwrap().entry(to).or_insert(number)) }
}

/// The kernel, with another number.
///
/// # Safety
/// These are the kernel's arguments and its launch.
unsafe fn compute(
    arguments: *const c_void,
    dispatch: *const c_void,
    number: impl Fn(u64, u32) -> u32,
) -> i32 {
    // SAFETY: the caller's promise.
    let (arguments, dispatch) = unsafe { (&*arguments.cast::<Arguments>(), &*dispatch.cast::<Dispatch>()) };
    // SAFETY: the simulator's function takes the launch.
    let place = |address| unsafe { (dispatch.translate)(dispatch, address, 64) }.cast::<u32>();
    let (from, to) = (place(arguments.from), place(arguments.to));
    if from.is_null() || to.is_null() {
        return 1;
    }
    let number = number(arguments.to, arguments.number);
    for at in 0..16 {
        // SAFETY: both have 64 bytes.
        unsafe { to.add(at).write(from.add(at).read().wrapping_mul(3).wrapping_add(number)) };
    }
    0
}
