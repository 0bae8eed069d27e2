//! Compiling, loading and launching.

use crate::{Case, Skip, fixture::Lab};
use cudarc::nvrtc::sys as nvrtc;
use gpumem_core::{
    Barrier, BarrierPoint, BarrierScope, CompileOptions, DeviceBuffer, DriverDevice, DriverModule, ErrorKind,
    KernelArguments, KernelSource, LaunchConfig, Lowering, MappedOptions, MemoryKind, Stream,
};
use gpumem_cuda::{Cuda, CudaExt, CudaKernel};

pub(crate) const CASES: &[Case] = &[
    ("source_text_is_compiled_and_launched", text),
    ("groups_and_items_have_three_dimensions", dimensions),
    ("the_barriers_of_the_device_order_a_group_and_a_wave", barriers),
    ("shared_memory_beyond_48_kib_is_opted_into", shared),
    ("sizes_that_the_device_does_not_have_are_refused", sizes),
    ("a_compilation_error_gives_the_reason", broken_text),
    ("ptx_is_loaded", ptx),
    ("a_cubin_is_loaded_and_a_broken_one_refused", binary),
    ("options_reach_the_compiler", options),
    ("variables_of_a_module_are_found", globals),
    ("a_kernel_keeps_its_module", keeps),
];

fn none() -> CompileOptions {
    CompileOptions::default()
}

fn numbers(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|four| f32::from_ne_bytes(four.try_into().unwrap())).collect()
}

fn text(lab: &Lab) -> Result<(), Skip> {
    let kernel = lab.kernel(
        r#"
        extern "C" __global__ void mix(float* out, signed char a, unsigned short b, int c, double d, float4 e,
                                       unsigned long long n) {
            unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
            if (i < n) out[i] = (float)i * a + b + c + (float)d + e.x + e.y * 10 + e.z * 100 + e.w * 1000;
        }"#,
        "mix",
    );
    let count = 1000usize;
    let out = lab.allocate(MemoryKind::Device, count * 4);
    lab.write(out.address(), &vec![0; count * 4]);
    let stream = lab.stream();
    let arguments = KernelArguments::new()
        .with(out.address())
        .with(-2i8)
        .with(60_000u16)
        .with(-1_000_000i32)
        .with(0.5f64)
        .with([1f32, 2.0, 3.0, 4.0])
        .with(count as u64 - 1);
    lab.launch(&stream, &kernel, LaunchConfig::linear(8, 128), &arguments);
    stream.synchronize().unwrap();
    let found = numbers(&lab.read(out.address(), count * 4));
    for (i, value) in found[..count - 1].iter().enumerate() {
        assert_eq!(*value, i as f32 * -2.0 + 60_000.0 - 1_000_000.0 + 0.5 + 4321.0, "{i}");
    }
    assert_eq!(found[count - 1], 0.0);
    Ok(())
}

fn dimensions(lab: &Lab) -> Result<(), Skip> {
    let kernel = lab.kernel(
        r#"
        extern "C" __global__ void place(unsigned* out) {
            unsigned g = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
            unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
            unsigned n = blockDim.x * blockDim.y * blockDim.z;
            out[g * n + t] = g * 1000 + t;
        }"#,
        "place",
    );
    assert!(!Cuda::function(&kernel).is_null());
    let dims = LaunchConfig { groups: [3, 5, 2], group_size: [4, 2, 7], shared_bytes: 0 };
    let (groups, items) = (30, 56);
    let out = lab.allocate(MemoryKind::Device, groups * items * 4);
    let stream = lab.stream();
    lab.launch(&stream, &kernel, dims, &KernelArguments::new().with(out.address()));
    stream.synchronize().unwrap();
    let found = lab.read(out.address(), groups * items * 4);
    for (i, four) in found.chunks_exact(4).enumerate() {
        let expected = (i / items) * 1000 + i % items;
        assert_eq!(u32::from_ne_bytes(four.try_into().unwrap()) as usize, expected);
    }
    Ok(())
}

fn barriers(lab: &Lab) -> Result<(), Skip> {
    let barrier = lab.device.barrier();
    let statement = |point| match barrier.lowering(point) {
        Lowering::Source(statement) => statement,
        Lowering::Suspend => panic!("a GPU suspends nothing"),
    };
    let wave = statement(BarrierPoint::Wave);
    for scope in [BarrierScope::Local, BarrierScope::Global, BarrierScope::Both] {
        let group = statement(BarrierPoint::Group(scope));
        // Each step reads values that another thread of the group, then of the warp, has written, in shared and in
        // global memory.
        let source = format!(
            r#"
            extern "C" __global__ void pass_on(int* global, int* out) {{
                __shared__ int shared[1024];
                int i = threadIdx.x, n = blockDim.x;
                shared[i] = i; global[i] = i * 3;
                {group}
                int far = (i + n / 2) % n, sum = shared[far] + global[far];
                {group}
                shared[i] = sum; global[i] = -sum;
                {wave}
                int near = i / {size} * {size} + (i + 1) % {size};
                out[i] = shared[near] * 2 + global[near];
            }}"#,
            size = barrier.wave_size(),
        );
        let kernel = lab.kernel(&source, "pass_on");
        let count = 1024usize;
        let [global, out] = [0, 1].map(|_| lab.allocate(MemoryKind::Device, count * 4));
        let stream = lab.stream();
        let arguments = KernelArguments::new().with(global.address()).with(out.address());
        lab.launch(&stream, &kernel, LaunchConfig::linear(1, count as u32), &arguments);
        stream.synchronize().unwrap();
        let found = lab.read(out.address(), count * 4);
        for (i, four) in found.chunks_exact(4).enumerate() {
            let near = i / 32 * 32 + (i + 1) % 32;
            let expected = (near + count / 2) % count * 4;
            assert_eq!(i32::from_ne_bytes(four.try_into().unwrap()) as usize, expected, "{i}");
        }
    }
    Ok(())
}

const SHARED: &str = r#"
    extern __shared__ unsigned dynamic[];
    extern "C" __global__ void reverse(unsigned* out, unsigned count) {
        __shared__ unsigned own[4096];
        for (unsigned i = threadIdx.x; i < count; i += blockDim.x) dynamic[i] = i;
        own[threadIdx.x] = threadIdx.x;
        __syncthreads();
        for (unsigned i = threadIdx.x; i < count; i += blockDim.x) out[i] = dynamic[count - 1 - i];
        out[count + threadIdx.x] = own[blockDim.x - 1 - threadIdx.x];
    }"#;
const SHARED_OWN: usize = 4096 * 4;

fn reverse(lab: &Lab, kernel: &CudaKernel, dynamic: usize) {
    let (count, items) = (dynamic / 4, 256);
    let bytes = (count + items) * 4;
    let out = lab.allocate(MemoryKind::Device, bytes);
    let stream = lab.stream();
    let dims = LaunchConfig { shared_bytes: dynamic as u32, ..LaunchConfig::linear(1, items as u32) };
    let arguments = KernelArguments::new().with(out.address()).with(count as u32);
    lab.launch(&stream, kernel, dims, &arguments);
    stream.synchronize().unwrap();
    let found = lab.read(out.address(), bytes);
    let expected = (0..count as u32).rev().chain((0..items as u32).rev());
    assert!(found.chunks_exact(4).map(|four| u32::from_ne_bytes(four.try_into().unwrap())).eq(expected));
}

fn shared(lab: &Lab) -> Result<(), Skip> {
    let all = lab.device.capabilities().shared_memory;
    if all <= 48 << 10 {
        return Err("the device has no more shared memory than 48 KiB");
    }
    let module = lab.compile(SHARED);
    let [kernel, again] = [0, 1].map(|_| module.kernel("reverse").unwrap());
    reverse(lab, &kernel, 1024);
    reverse(lab, &kernel, all - SHARED_OWN);
    // Less than before, through another handle of the same kernel, must not take the first one's share away.
    reverse(lab, &again, (48 << 10) - SHARED_OWN + 4);
    reverse(lab, &kernel, all - SHARED_OWN);
    Ok(())
}

fn sizes(lab: &Lab) -> Result<(), Skip> {
    let kernel = lab.kernel(SHARED, "reverse");
    let small = lab.kernel(r#"extern "C" __global__ void __launch_bounds__(64) small() {}"#, "small");
    let has = lab.device.capabilities();
    let stream = lab.stream();
    let dims = |groups, group_size, shared_bytes| LaunchConfig { groups, group_size, shared_bytes };
    let [x, y, z] = has.max_grid_dims;
    for wrong in [
        dims([0, 1, 1], [1, 1, 1], 0),
        dims([1, 1, 0], [1, 1, 1], 0),
        dims([1, y + 1, 1], [1, 1, 1], 0),
        dims([1, 1, z + 1], [1, 1, 1], 0),
        dims([x.saturating_add(1), 1, 1], [0, 1, 1], 0),
        dims([1, 1, 1], [1, 0, 1], 0),
        dims([1, 1, 1], [has.max_group_dims[0] + 1, 1, 1], 0),
        dims([1, 1, 1], [1, 1, has.max_group_dims[2] + 1], 0),
        dims([1, 1, 1], [has.max_group_size / 2, 3, 1], 0),
        dims([1, 1, 1], [u32::MAX, u32::MAX, u32::MAX], 0),
        dims([1, 1, 1], [1, 1, 1], (has.shared_memory - SHARED_OWN) as u32 + 1),
        dims([1, 1, 1], [1, 1, 1], u32::MAX),
    ] {
        let arguments = KernelArguments::new().with(0u64).with(0u32);
        // SAFETY: nothing is launched.
        let error = unsafe { stream.launch(&kernel, &wrong, &arguments) }.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{wrong:?}: {error}");
    }
    // SAFETY: the kernel does nothing.
    let error =
        unsafe { stream.launch(&small, &LaunchConfig::linear(1, 65), &KernelArguments::new()) }.unwrap_err();
    assert!(error.to_string().contains("registers"), "{error}");
    lab.launch(&stream, &small, LaunchConfig::linear(1, 64), &KernelArguments::new());
    stream.synchronize().unwrap();
    Ok(())
}

fn build_log(lab: &Lab, source: KernelSource, options: &CompileOptions) -> String {
    let error = lab.device.compile(&source, options).unwrap_err();
    match error.kind() {
        ErrorKind::Build { log } => log.clone(),
        _ => panic!("{error}"),
    }
}

fn broken_text(lab: &Lab) -> Result<(), Skip> {
    let source = "extern \"C\" __global__ void f() {\n    no_such_thing();\n}";
    let log = build_log(lab, KernelSource::Text(source.to_owned()), &none());
    assert!(log.contains("no_such_thing") && log.contains("(2)"), "{log}");
    let bad = CompileOptions { flags: vec!["--no-such-option".to_owned()], ..none() };
    let log = build_log(lab, KernelSource::Text("".to_owned()), &bad);
    assert!(log.contains("no-such-option"), "{log}");
    assert!(build_log(lab, KernelSource::Text("a\0b".to_owned()), &none()).contains("zero byte"));
    let module = lab.compile("extern \"C\" __global__ void f() {}");
    for name in ["g", "", "f\0"] {
        let error = module.kernel(name).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::NoSuchKernel { name: name.to_owned() });
    }
    let host = lab.device.compile(&KernelSource::Host(Vec::new()), &none()).unwrap_err();
    assert!(matches!(host.kind(), ErrorKind::Unsupported { .. }));
    Ok(())
}

const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64
.visible .entry store(.param .u64 to, .param .u32 value)
{
    .reg .b32 %r1;
    .reg .b64 %rd1;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [value];
    st.global.u32 [%rd1], %r1;
    ret;
}
";

fn ptx(lab: &Lab) -> Result<(), Skip> {
    let module = lab.device.compile(&KernelSource::Ptx(PTX.to_owned()), &none()).unwrap();
    stores(lab, &module.kernel("store").unwrap());
    let log = build_log(lab, KernelSource::Ptx(PTX.replace("st.global.u32", "st.nowhere.u32")), &none());
    assert!(log.contains("nowhere"), "{log}");
    assert!(!build_log(lab, KernelSource::Ptx("not PTX".to_owned()), &none()).is_empty());
    assert!(!build_log(lab, KernelSource::Ptx(PTX.replace("sm_52", "sm_999")), &none()).is_empty());
    Ok(())
}

/// Launches `store(to, value)` with an address of the host's memory that the device reaches.
fn stores(lab: &Lab, kernel: &CudaKernel) {
    let to = lab.allocate(MemoryKind::Mapped(MappedOptions::default()), 4);
    let stream = lab.stream();
    let arguments = KernelArguments::new().with(to.address()).with(0x1234_5678u32);
    lab.launch(&stream, kernel, LaunchConfig::linear(1, 1), &arguments);
    stream.synchronize().unwrap();
    assert_eq!(to.bytes(), 0x1234_5678u32.to_ne_bytes());
}

/// A cubin for the device, by NVRTC without our help.
fn cubin(lab: &Lab) -> Option<Vec<u8>> {
    // SAFETY: the library is only looked for; then its functions are used as documented.
    unsafe {
        if !nvrtc::is_culib_present() {
            return None;
        }
        let source = c"extern \"C\" __global__ void store(unsigned* to, unsigned value) { *to = value; }";
        let architecture = format!("--gpu-architecture={}\0", lab.device.info().architecture);
        let options = [architecture.as_ptr().cast()];
        let program = cudarc::nvrtc::result::create_program(source, None).unwrap();
        nvrtc::nvrtcCompileProgram(program, 1, options.as_ptr()).result().unwrap();
        let mut bytes = 0;
        nvrtc::nvrtcGetCUBINSize(program, &mut bytes).result().unwrap();
        let mut cubin = vec![0u8; bytes];
        nvrtc::nvrtcGetCUBIN(program, cubin.as_mut_ptr().cast()).result().unwrap();
        cudarc::nvrtc::result::destroy_program(program).unwrap();
        Some(cubin)
    }
}

fn binary(lab: &Lab) -> Result<(), Skip> {
    let cubin = cubin(lab).ok_or("cudarc does not find NVRTC under one of its names")?;
    let module = lab.device.compile(&KernelSource::Binary(cubin.clone()), &none()).unwrap();
    stores(lab, &module.kernel("store").unwrap());
    for length in [0, 3, 64, cubin.len() / 2, cubin.len() - 1] {
        build_log(lab, KernelSource::Binary(cubin[..length].to_vec()), &none());
    }
    build_log(lab, KernelSource::Binary(PTX.as_bytes().to_vec()), &none());
    Ok(())
}

fn options(lab: &Lab) -> Result<(), Skip> {
    let source = "extern \"C\" __global__ void store(unsigned* to, unsigned value) { *to = value + EXTRA; }";
    let source = KernelSource::Text(source.to_owned());
    let architecture = format!("--gpu-architecture={}", lab.device.info().architecture);
    for flags in [vec!["-DEXTRA=0".to_owned()], vec![architecture, "-DEXTRA=0".to_owned()]] {
        let module = lab.device.compile(&source, &CompileOptions { flags, ..none() }).unwrap();
        stores(lab, &module.kernel("store").unwrap());
    }
    let flags = vec!["--gpu-architecture=compute_80".to_owned(), "-DEXTRA=0".to_owned()];
    assert!(build_log(lab, source, &CompileOptions { flags, ..none() }).contains("virtual"));
    Ok(())
}

fn globals(lab: &Lab) -> Result<(), Skip> {
    let module = lab.compile(
        "__constant__ unsigned table[4]; __device__ unsigned other[3];
        extern \"C\" __global__ void store(unsigned* to, unsigned value) { *to = value - 1 + table[2]; other[0] = 0; }",
    );
    // C++ names are mangled unless they are variables of the global namespace.
    let (address, bytes) = Cuda::global(&module, "table").unwrap();
    assert_eq!((bytes, Cuda::global(&module, "other").unwrap().1), (16, 12));
    let table: Vec<u8> = [7u32, 8, 1, 9].iter().flat_map(|value| value.to_ne_bytes()).collect();
    lab.write(address, &table);
    stores(lab, &module.kernel("store").unwrap());
    let error = Cuda::global(&module, "nothing").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    Ok(())
}

fn keeps(lab: &Lab) -> Result<(), Skip> {
    let kernel = {
        let module = lab.device.compile(&KernelSource::Ptx(PTX.to_owned()), &none()).unwrap();
        module.kernel("store").unwrap()
    };
    std::thread::scope(|scope| scope.spawn(|| stores(lab, &kernel.clone())).join()).unwrap();
    stores(lab, &kernel);
    Ok(())
}
