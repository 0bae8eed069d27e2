
use gpumem::{
    generic::Device,
    host::{Host, HostOptions},
    kernel::{HostForm, KernelDef, config_for_items, prelude::*},
};

const GROUPS: usize = 3;

/// Returns the results of a kernel, or its fault.
fn run(device: &Device<Host>, kernel: KernelDef<(SliceMut<i64>,)>) -> Result<Vec<i64>, String> {
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

fn main() {
    let all = all();
    let split = all.iter().filter(|kernel| kernel.host_form() == Some(HostForm::Phases)).count();
    let mut faults = 0;
    for wave_size in [32, 64] {
        let device = Device::from_raw(Host::open_with(&HostOptions::new().wave_size(wave_size)).unwrap());
        for kernel in &all {
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
}
