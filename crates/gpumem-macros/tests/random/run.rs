
use gpumem::{
    Backend,
    generic::Device,
    host::{Host, HostOptions},
    kernel::{HostForm, KernelDef, config_for_items, prelude::*},
};
use gpumem_cuda::Cuda;
use gpumem_roc::Roc;

const GROUPS: usize = 3;
/// Says that the program was started with the simulated GPU on its library path.
const SIMULATED: &str = "GPUMEM_KERNELS_SIMULATED";

const LEAST: i64 = 0;
const MOST: i64 = 3;

/// Methods that kernels know, with other results.
trait Hostile: Sized {
    fn plus(self, other: Self) -> Self;
    fn signum(self) -> Self;
}

impl Hostile for i64 {
    fn plus(self, _: i64) -> i64 {
        1_000_003
    }
    fn signum(self) -> i64 {
        1_000_033
    }
}

fn host(wave_size: u32) -> Device<Host> {
    Device::from_raw(Host::open_with(&HostOptions::new().wave_size(wave_size)).unwrap())
}

/// Returns the results of a kernel, or its fault.
fn run<B: Backend>(device: &Device<B>, kernel: KernelDef<(SliceMut<i64>,)>) -> Result<Vec<i64>, String> {
    let stream = device.stream().unwrap();
    let items = GROUP * GROUPS;
    let mut out = stream.to_device(&vec![-1i64; items]).unwrap();
    let kernel = kernel.load(device).unwrap();
    kernel.launch(&stream, &config_for_items(items, GROUP as u32), (&mut out,)).unwrap();
    let fault = |error: gpumem::Error| {
        let text = error.to_string();
        text.find("work-item").map_or(text.clone(), |at| text[at..].to_owned())
    };
    stream.synchronize().map_err(fault)?;
    Ok(stream.copy_to_host(&out).unwrap().view().unwrap().to_vec())
}

/// Compares the kernels without faults on the first GPU of a backend, if there is one. Work-items that part at a barrier are a
/// fault on the host only: a GPU may wait for ever.
fn on_gpu<B: Backend>(name: &str, all: &[KernelDef<(SliceMut<i64>,)>]) {
    let device = match Device::<B>::open(name) {
        Ok(device) => device,
        Err(error) => return println!("skipped: no {name}: {error}"),
    };
    let wave_size = device.capabilities().wave_size;
    let host = host(wave_size);
    let mut compared = 0;
    for kernel in all {
        if let Ok(expected) = run(&host, kernel.clone()) {
            assert_eq!(run(&device, kernel.clone()), Ok(expected), "{} on {device:?}", kernel.name());
            compared += 1;
        }
    }
    assert!(compared > all.len() / 2);
    println!("{compared} of {} gave the same on {device:?}", all.len());
}

/// Starts the program again with the simulated GPU.
fn on_simulated_gpu(folder: &str) {
    let mut path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    if !path.is_empty() {
        path.push(":");
    }
    path.push(folder);
    let mut this = std::process::Command::new(std::env::current_exe().unwrap());
    assert!(this.env("LD_LIBRARY_PATH", path).env(SIMULATED, "1").status().unwrap().success());
}

fn main() {
    if std::env::var_os(SIMULATED).is_some() {
        let mut some = hostile();
        some.truncate(20);
        return on_gpu::<Roc>("roc", &some);
    }
    let all = all();
    let split = all.iter().filter(|kernel| kernel.host_form() == Some(HostForm::Phases)).count();
    let mut faults = 0;
    for wave_size in [32, 64] {
        let device = host(wave_size);
        for kernel in all.iter().chain(&hostile()) {
            let found = run(&device, kernel.clone());
            faults += usize::from(found.is_err());
            assert_eq!(found, run(&device, kernel.clone().race_checks(true)), "{} in waves of {wave_size}", kernel.name());
        }
    }
    let count = all.len();
    // The kernels are such that most are split, some are not, and the work-items of some part.
    assert!(split > count / 2 && split < count, "{split} of {count} are split");
    assert!(faults > 0 && faults < count, "{faults} faults in {count} kernels");
    println!("{split} of {count} are split; {faults} faults");
    // Each is compiled for the GPU, which takes long.
    if std::env::var_os("GPUMEM_KERNELS_ON_GPUS").is_some() {
        on_gpu::<Cuda>("cuda", &all);
        on_gpu::<Roc>("roc", &all);
        on_gpu::<Cuda>("cuda", &hostile());
        on_gpu::<Roc>("roc", &hostile());
    }
    if let Some(folder) = SIMULATOR {
        on_simulated_gpu(folder);
    }
}
