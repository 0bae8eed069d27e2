//! The machine code of kernels that ship, against plain loops.

use super::{
    object::{Object, compile},
    rig::{Arguments, Array, NODE, Shape, architectures, launch},
};
use std::time::Duration;

/// A kernel of the project for one architecture, as AMD's compiler makes it.
fn shipped(name: &str, isa: &str, wave: u32) -> Option<Object> {
    let kernel = gpumem_kernel_suite::all().into_iter().find(|kernel| kernel.name == name).unwrap();
    Some(Object::load(NODE, &compile(&kernel.text(wave, true), isa, &[])?))
}

fn each(name: &str, test: impl Fn(&Object, (u32, u32, u32))) {
    for (isa, version, wave) in architectures() {
        let Some(object) = shipped(name, isa, wave) else { return };
        test(&object, version);
    }
}

fn numbers(count: usize, modulus: usize) -> Vec<f32> {
    (0..count).map(|i| (i % modulus) as f32 - (modulus / 2) as f32).collect()
}

/// The time that all threads of the process have had together.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one structure that is ours.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn saxpy_of_a_million() {
    each("saxpy_", |object, isa| {
        let n = 1_000_003;
        let (x, y) = (numbers(n, 1000), numbers(n, 77));
        let (x_array, y_array) = (Array::new(&x), Array::new(&y));
        let arguments = Arguments::default().slice(&x_array).slice(&y_array).with(2.5f32);
        let start = processor_time();
        let count = launch(object, isa, "saxpy_", &Shape::line(n.div_ceil(256), 256), arguments).unwrap();
        let rate = count as f64 / (processor_time() - start).as_secs_f64() / 1e6;
        println!("{isa:?}: {count} instructions of waves, {rate:.1} million a second of one core");
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 2.5 * x + y).collect();
        assert!(y_array.get() == expected);
    });
}

#[test]
fn transposed() {
    each("transpose_", |object, isa| {
        let (rows, columns) = (515, 301);
        let x: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
        let (from, to) = (Array::new(&x), Array::new(&vec![0f32; rows * columns]));
        let arguments = Arguments::default().view(&from, [rows, columns]).view(&to, [columns, rows]);
        let groups = [columns.div_ceil(16) as u32, rows.div_ceil(16) as u32, 1];
        let shape = Shape { groups, group: [16, 16, 1], ..Shape::line(1, 1) };
        launch(object, isa, "transpose_", &shape, arguments).unwrap();
        let found = to.get();
        assert!((0..rows * columns).all(|i| found[i % columns * rows + i / columns] == x[i]));
    });
}

#[test]
fn multiplied() {
    each("matmul_", |object, isa| {
        let (m, n, depth) = (130, 75, 93);
        let (a, b) = (numbers(m * depth, 13), numbers(depth * n, 7));
        let (a_array, b_array, c_array) = (Array::new(&a), Array::new(&b), Array::new(&vec![0f32; m * n]));
        let arguments = Arguments::default().view(&a_array, [m, depth]).view(&b_array, [depth, n]);
        let arguments = arguments.view(&c_array, [m, n]);
        let groups = [n.div_ceil(16) as u32, m.div_ceil(16) as u32, 1];
        let shape = Shape { groups, group: [16, 16, 1], ..Shape::line(1, 1) };
        launch(object, isa, "matmul_", &shape, arguments).unwrap();
        let found = c_array.get();
        for (i, found) in found.iter().enumerate() {
            let (row, column) = (i / n, i % n);
            let sum: f32 = (0..depth).map(|k| a[row * depth + k] * b[k * n + column]).sum();
            assert_eq!(*found, sum, "row {row}, column {column}");
        }
    });
}

#[test]
fn reduced() {
    each("reduce_", |object, isa| {
        let n = 100_001;
        let groups = usize::div_ceil(n, 256);
        let x = numbers(n, 19);
        let arrays = [Array::new(&x), Array::new(&vec![0f32; groups]), Array::new(&vec![0f32; groups])];
        let arguments = arrays.iter().fold(Arguments::default(), Arguments::slice);
        launch(object, isa, "reduce_", &Shape::line(groups, 256), arguments).unwrap();
        let expected: Vec<f32> = x.chunks(256).map(|chunk| chunk.iter().sum()).collect();
        assert!(arrays[1].get() == expected && arrays[2].get() == expected);
    });
}

#[test]
fn scanned() {
    each("scan_", |object, isa| {
        let x: Vec<u32> = (0..700u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let groups = x.len().div_ceil(256);
        let before: Vec<u32> = vec![1000, 7];
        let arrays = [
            Array::new(&x),
            Array::new(&before),
            Array::new(&vec![0u32; groups]),
            Array::new(&vec![0u32; x.len()]),
        ];
        let arguments = arrays.iter().fold(Arguments::default(), Arguments::slice);
        launch(object, isa, "scan_", &Shape::line(groups, 256), arguments).unwrap();
        let mut sum = 0u32;
        for (i, found) in arrays[3].get().into_iter().enumerate() {
            if i % 256 == 0 {
                sum = if i == 0 { 0 } else { before[i / 256 - 1] };
            }
            sum = sum.wrapping_add(x[i]);
            assert_eq!(found, sum, "element {i}");
        }
    });
}

#[test]
fn an_index_past_the_end_traps() {
    let text = |wave: u32| {
        let saxpy = gpumem_kernel_suite::all().into_iter().find(|kernel| kernel.name == "saxpy_").unwrap();
        let text = saxpy.text(wave, true);
        let prelude = text.split("#line 1 \"kernel\"").next().unwrap().to_owned();
        format!(
            "{prelude}\nusing namespace gpumem;\nGPUMEM_KERNEL past(slice<u32> x, u32 index) {{ x[index + local_id(0)] = 5; }}"
        )
    };
    for (isa, version, wave) in architectures() {
        let Some(code) = compile(&text(wave), isa, &[]) else { return };
        let object = Object::load(NODE, &code);
        let array = Array::new(&[0u32; 64]);
        let past = |index: u32| {
            let arguments = Arguments::default().slice(&array).with(index);
            launch(&object, version, "past", &Shape::line(1, 32), arguments)
        };
        past(32).unwrap();
        let failure = format!("{:?}", past(33).unwrap_err());
        assert!(failure.contains("Trap") && failure.contains("past"), "{failure}");
    }
}
