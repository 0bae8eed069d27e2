//! Programs and launches.

use super::fixture::{Lab, Skip, allocate, download, release, upload};
use gpumem_core::{
    Backend, CompileOptions, CopyRegion, DeviceBuffer, DriverDevice, DriverModule, ErrorKind,
    KernelArguments, KernelSource, LaunchConfig, MemoryKind, Space, Stream, StreamOptions,
};
use gpumem_roc::{Roc, RocStream};
use std::thread;

const SOURCE: &str = r#"
extern "C" __global__ void increment(unsigned* values, unsigned count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] += 1;
}
"#;

pub(super) fn kernel(lab: &Lab) -> <Roc as Backend>::Kernel {
    let source = KernelSource::Text(SOURCE.to_owned());
    let module = lab.device.compile(&source, &CompileOptions::default()).unwrap();
    module.kernel("increment").unwrap()
}

pub(super) fn launch(stream: &RocStream, kernel: &<Roc as Backend>::Kernel, address: u64, count: u32) {
    let arguments = KernelArguments::new().with(address).with(count);
    let dims = LaunchConfig::linear(count.div_ceil(64), 64);
    // SAFETY: the signature's arguments; every case's memory is that long and is waited for.
    unsafe { stream.launch(kernel, &dims, &arguments) }.unwrap();
}

pub(super) fn run_increment(lab: &Lab, address: u64, count: u32) {
    launch(&lab.stream, &kernel(lab), address, count);
    lab.stream.synchronize().unwrap();
}

pub(super) fn kernels_and_copies_on_one_stream(lab: &Lab) -> Result<(), Skip> {
    const COUNT: usize = 256;
    let kernel = kernel(lab);
    let (one, two) =
        (allocate(lab, 4 * COUNT, MemoryKind::Device), allocate(lab, 4 * COUNT, MemoryKind::Device));
    upload(lab, one.address(), &[0; 4 * COUNT]);
    // The first thing on a fresh stream is a kernel.
    let stream = lab.device.create_stream(&StreamOptions::default()).unwrap();
    let here = Space::Device(0);
    for _ in 0..250 {
        launch(&stream, &kernel, one.address(), COUNT as u32);
        let there = CopyRegion::linear((one.address(), here), (two.address(), here), 4 * COUNT);
        let back = CopyRegion::linear((two.address(), here), (one.address(), here), 4 * COUNT);
        // SAFETY: both are that long, and are waited for.
        unsafe { stream.copy(&there) }.unwrap();
        launch(&stream, &kernel, two.address(), COUNT as u32);
        // SAFETY: as above.
        unsafe { stream.copy(&back) }.unwrap();
    }
    stream.synchronize().unwrap();
    let found = download(lab, one.address(), 4 * COUNT);
    assert!(found.chunks(4).all(|word| word == 500u32.to_ne_bytes()));
    release(lab, one);
    release(lab, two);
    Ok(())
}

pub(super) fn other_architectures_are_refused(lab: &Lab) -> Result<(), Skip> {
    let source = KernelSource::Text(SOURCE.to_owned());
    for flag in ["--gpu-architecture=gfx9999", "--offload-arch=gfx000"] {
        let options = CompileOptions { flags: vec![flag.to_owned()], ..Default::default() };
        let error = lab.device.compile(&source, &options).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Build { .. }), "{error}");
    }
    let wrong = KernelSource::Text("extern \"C\" __global__ void f() { no_such_thing(); }".to_owned());
    let error = lab.device.compile(&wrong, &CompileOptions::default()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Build { log } if log.contains("no_such_thing")), "{error}");
    let ptx = KernelSource::Ptx(String::new());
    let error = lab.device.compile(&ptx, &CompileOptions::default()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    Ok(())
}

pub(super) fn launches_that_do_not_fit_are_refused(lab: &Lab) -> Result<(), Skip> {
    let kernel = kernel(lab);
    let capabilities = lab.device.capabilities();
    let shared = u32::try_from(capabilities.shared_memory).unwrap() + 1;
    for dims in [
        LaunchConfig::linear(0, 64),
        LaunchConfig::linear(1, capabilities.max_group_size + 1),
        LaunchConfig {
            groups: [1; 3],
            group_size: [1, 1, capabilities.max_group_dims[2] + 1],
            shared_bytes: 0,
        },
        LaunchConfig { groups: [1; 3], group_size: [1; 3], shared_bytes: shared },
        LaunchConfig::linear(i32::MAX as u32, 64),
    ] {
        // SAFETY: nothing is launched.
        let error = unsafe { lab.stream.launch(&kernel, &dims, &KernelArguments::new()) }.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{dims:?}: {error}");
    }
    Ok(())
}

pub(super) fn threads_compile_at_the_same_time(lab: &Lab) -> Result<(), Skip> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|number| {
                scope.spawn(move || {
                    let compile = |text: String| {
                        lab.device.compile(&KernelSource::Text(text), &CompileOptions::default())
                    };
                    for round in 0..2 {
                        let name = format!("of_{number}_{round}");
                        let kernel =
                            format!("extern \"C\" __global__ void {name}(int* x) {{ *x = {number}; }}");
                        let module = compile(kernel).unwrap();
                        module.kernel(&name).unwrap();
                        // Each thread gets the words about its own source.
                        let wrong =
                            compile(format!("__global__ void f() {{ missing_{name}(); }}")).unwrap_err();
                        let ErrorKind::Build { log } = wrong.kind() else { panic!("{wrong}") };
                        assert!(log.contains(&format!("missing_{name}")), "{log}");
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    Ok(())
}
