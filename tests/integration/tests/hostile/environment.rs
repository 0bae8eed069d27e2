//! Every variable that the library reads, with values that make no sense.

use super::{DONE, child, is_done, task_of_child};
use gpumem::{
    Device, Error, LaunchConfig, Result,
    kernel::{InOut, KernelDef, SliceMut},
    ndarray::Array1,
};
use gpumem_integration::{fill, slow_copy};
use std::{
    ffi::{CString, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::Path,
    process::Stdio,
    sync::Mutex,
    thread,
};

/// Variables for which a wrong value is an error, and not replaced by a default.
const ALONE: &[&str] =
    &["GPUMEM_DEVICE", "GPUMEM_HOST_DEVICES", "GPUMEM_HOST_MEMORY", "GPUMEM_HOST_SEED", "GPUMEM_ROC_GRAPHS"];

const TOGETHER: &[&str] = &[
    "GPUMEM_POOL",
    "GPUMEM_RACE_CHECKS",
    "GPUMEM_TRACE_FILE",
    "GPUMEM_CACHE_DIR",
    "GPUMEM_CACHE_BYTES",
    "GPUMEM_TRANSFER_THREADS",
    "GPUMEM_TRANSFER_BLOCK_KIB",
    "GPUMEM_TRANSFER_PARALLEL_MIN_KIB",
    "GPUMEM_TRANSFER_SINGLE_BLOCK_MAX_KIB",
    "GPUMEM_TRANSFER_NON_TEMPORAL",
    "GPUMEM_MAX_PENDING_DEALLOCS_COUNT",
    "GPUMEM_MAX_PENDING_DEALLOCS_RATIO",
    "GPUMEM_ROC_LIBRARY_PATH",
    "ROCM_PATH",
    "HIP_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "XDG_CACHE_HOME",
    "HOME",
];

fn values(folder: &Path) -> Vec<OsString> {
    let pipe = |name: &str| {
        let path = folder.join(name);
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: a string that ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        path.into_os_string()
    };
    // A folder in which every library of ROCm is a pipe.
    for name in ["amdhip64", "hsa-runtime64", "hiprtc"] {
        for version in ["", ".1", ".5", ".6", ".7"] {
            pipe(&format!("lib{name}.so{version}"));
        }
    }
    let texts = ["", "0", "-1", "nan", "18446744073709551615", "off", "host:4294967296"];
    let mut values: Vec<OsString> = texts.map(OsString::from).into();
    values.push("9".repeat(100_000).into());
    values.push(OsString::from_vec(vec![0xff, 0xfe, b'/', 0x80]));
    values.extend([folder.into(), pipe("a pipe"), "/dev/full".into()]);
    values
}

/// Looks at an answer. An error has words.
fn look<T>(result: Result<T>) -> Option<T> {
    result.map_err(|error: Error| assert!(!error.to_string().is_empty())).ok()
}

/// The code that reads the environment, and the code that depends on it.
fn use_everything() {
    let opened = ["host", "host:1", "cuda", "roc"].map(|name| look(Device::open(name)));
    let more = [look(Device::open_default()), look(Device::open_first_available())];
    let _ = look(Device::list());
    for device in opened.into_iter().chain(more).flatten() {
        let _ = look(use_device(&device));
        let _ = (look(device.memory_report().map(|report| report.to_string())), look(device.flush()));
        let _ = (device.transfer_options(), device.deferred_limits(), device.take_errors());
    }
}

fn use_device(device: &Device) -> Result<()> {
    let (stream, other) = (device.stream()?, device.stream()?);
    let host = Array1::from_iter(0..1 << 15);
    let mut array = stream.to_device(&host)?;
    let copy = other.to_device(&array)?;
    assert_eq!(copy.copy_to_host()?, host);
    let (fill, copies) = (fill().load(device)?, slow_copy().load(device)?);
    let dims = gpumem::kernel::config_for_items([100, 1, 1], [50, 1, 1]);
    copies.launch(&stream, &dims, (&copy, &mut array))?;
    fill.launch(&stream, &dims, (&mut array, 9))?;
    assert_eq!(stream.copy_to_host(&array)?.view()?[99], 9);
    let arrays: Vec<_> = (0..30).map(|_| device.device_array::<u8, _>(1 << 12)).collect::<Result<_>>()?;
    drop(arrays);
    device.synchronize()
}

/// Two work-items write one element.
// SAFETY: it is to race.
#[gpumem::kernel(unsafe)]
fn race(y: SliceMut<u32>) {
    y[0] = global_id(0) as u32;
}

#[test]
fn a_variable_turns_race_checks_on() {
    if let Some(task) = task_of_child(60) {
        let finds = |declaration: KernelDef<(SliceMut<u32>,)>| {
            let mut y = [0; 1];
            let device = Device::open("host").unwrap();
            let launched = declaration.load(&device).unwrap().launch(
                &device.stream().unwrap(),
                &LaunchConfig::linear(1, 2),
                (InOut(&mut y),),
            );
            launched.is_err_and(|error| error.to_string().contains("races in global memory"))
        };
        assert_eq!([finds(race()), finds(race().race_checks(false))], [task == "on", false]);
        assert!(finds(race().race_checks(true)));
        println!("{DONE}");
        return;
    }
    for (task, value) in [("on", "1"), ("off", "0"), ("off", "")] {
        let mut child = child("environment::a_variable_turns_race_checks_on", task);
        let output = child.env("GPUMEM_RACE_CHECKS", value).stdin(Stdio::null()).output().unwrap();
        assert!(is_done(&output), "{value}: {output:?}");
    }
}

#[test]
fn no_variable_makes_a_program_panic_or_hang() {
    if task_of_child(60).is_some() {
        use_everything();
        println!("{DONE}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let values = values(folder.path());
    let together = values.iter().map(|value| (TOGETHER, value));
    let alone = ALONE.chunks(1).flat_map(|variable| values.iter().map(move |value| (variable, value)));
    let runs = Mutex::new(together.chain(alone));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some((variables, value)) = runs.lock().unwrap().next() else { break };
                    let mut child =
                        child("environment::no_variable_makes_a_program_panic_or_hang", "use everything");
                    child.envs(variables.iter().map(|variable| (variable, value))).stdin(Stdio::null());
                    // Where a value names a file or a folder, it is made there.
                    let output = child.current_dir(folder.path()).output().unwrap();
                    let value = value.to_string_lossy();
                    let shown: String = value.chars().take(100).collect();
                    assert!(is_done(&output), "{variables:?}={shown:?}: {output:?}");
                }
            });
        }
    });
}
