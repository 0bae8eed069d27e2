//! Bodies that are split at their barriers: the values kept across them, faults in them, and bodies that are not split.
#![allow(clippy::unwrap_used)] // helpers of tests
#![allow(clippy::undocumented_unsafe_blocks)] // each work-item writes its own element, or what others use after a barrier

use gpumem::{
    DeviceRecord, LaunchConfig,
    generic::Device,
    host::{Host, HostOptions},
    kernel::{HostForm, KernelDef, config_for_items, prelude::*},
};

type Kernel = KernelDef<(SliceMut<i64>,)>;

/// Returns the results of a kernel with this launch, or its fault.
fn run(kernel: &Kernel, dims: &LaunchConfig, wave_size: u32) -> Result<Vec<i64>, String> {
    let device = Device::<Host>::from_raw(Host::open_with(&HostOptions::new().wave_size(wave_size)).unwrap());
    let stream = device.stream().unwrap();
    let items = dims.groups.iter().chain(&dims.group_size).map(|size| *size as usize).product::<usize>();
    let mut out = stream.to_device(&vec![0i64; items]).unwrap();
    kernel.clone().load(&device).unwrap().launch(&stream, dims, (&mut out,)).unwrap();
    let fault = |error: gpumem::Error| {
        let text = error.to_string();
        text.find("work-item").map_or(text.clone(), |at| text[at..].to_owned())
    };
    stream.synchronize().map_err(fault)?;
    Ok(stream.copy_to_host(&out).unwrap().view().unwrap().to_vec())
}

/// The kernel runs in this form, and has the same results in check mode, where it awaits.
#[track_caller]
fn agrees(kernel: &Kernel, form: HostForm, dims: &LaunchConfig) -> Result<Vec<i64>, String> {
    assert_eq!(kernel.host_form(), Some(form), "{}", kernel.name());
    let [first, second] = [32, 64].map(|wave_size| {
        let found = run(kernel, dims, wave_size);
        assert_eq!(found, run(&kernel.clone().race_checks(true), dims, wave_size), "{}", kernel.name());
        found
    });
    // Most kernels do not ask for waves.
    if !kernel.name().contains("wave") {
        assert_eq!(first, second);
    }
    first
}

#[derive(Clone, Copy, DeviceRecord)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
}

/// A value whose type only the first phase says.
#[allow(clippy::unnecessary_cast)] // another phase could not say it
#[gpumem::kernel(unsafe)]
fn infers(out: SliceMut<i64>) {
    let i = global_id(0);
    let bit = 1 << (local_id(0) & 63);
    let wide: i64 = bit;
    barrier(Local);
    out[i] = wide + (bit >> 1) as i64;
}

#[test]
fn a_value_has_one_type_in_all_phases() {
    let found = agrees(&infers(), HostForm::Phases, &config_for_items(63, 63)).unwrap();
    let expected: Vec<i64> = (0..63).map(|i| (1i64 << i) + ((1i64 << i) >> 1)).collect();
    assert_eq!(found, expected);
}

/// Values of many types live across a barrier, some assigned in a branch.
#[gpumem::kernel(unsafe)]
fn keeps(out: SliceMut<i64>) {
    let i = global_id(0);
    let n = i as i64;
    let mut point = Point { x: n as f32, y: 0.5 };
    let mut window = [0.25f32; 8];
    let mut pair = (n, true);
    let mut flag = false;
    let mut grid = local::<i32>([2, 3]);
    let again = i * 2 + 1;
    barrier(Local);
    window[i % 8] += point.x;
    grid[[1, i % 3]] = again as i32;
    if n % 3 == 0 {
        flag = true;
        pair.1 = false;
    } else {
        point.y *= 4.0;
    }
    barrier(Both);
    let mut sum = 0.0;
    for k in 0..8 {
        sum += window[k];
    }
    if flag && !pair.1 {
        sum += 100.0;
    }
    out[i] =
        (sum * 4.0) as i64 + (point.x + point.y) as i64 * 7 + pair.0 + grid[[1, i % 3]] as i64 + again as i64;
}

#[test]
fn values_of_all_types_are_kept() {
    let found = agrees(&keeps(), HostForm::Phases, &config_for_items(80, 40)).unwrap();
    let expected = (0..80i64).map(|n| {
        let (flag, y) = if n % 3 == 0 { (100.0, 0.5) } else { (0.0, 2.0) };
        ((2.0 + n as f32 + flag) * 4.0) as i64 + (n as f32 + y) as i64 * 7 + n + 2 * (2 * n + 1)
    });
    assert_eq!(found, expected.collect::<Vec<_>>());
}

/// Groups of three axes that leave as a whole, rounds that go on and end for all, a name that is hidden.
#[gpumem::kernel(unsafe)]
fn together(out: SliceMut<i64>) {
    let tile = shared::<i64>([2, 3, 5]);
    let (x, y, z) = (local_id(0), local_id(1), local_id(2));
    let linear = local_linear() + group_linear() * 30;
    out[linear] = -1;
    if group_id(1) == 1 {
        return;
    }
    let mut total = 0;
    let mut round = 0;
    'rounds: loop {
        round += 1;
        tile[[z, y, x]] = (linear + round) as i64;
        barrier(Local);
        for axis in 0..3 {
            if round == 2 && axis == 1 {
                continue 'rounds;
            }
            if round > 3 {
                break 'rounds;
            }
            let total_before = total;
            total += tile[[(z + 1) % 2, (y + axis) % 3, (x + round) % 5]];
            let total = total_before * 2;
            barrier(Local);
            out[linear] += total;
            barrier(Local);
        }
    }
    out[linear] += total;
}

#[test]
fn groups_break_and_continue_as_a_whole() {
    let dims = LaunchConfig { groups: [2, 2, 2], group_size: [5, 3, 2], ..config_for_items(1, 1) };
    let found = agrees(&together(), HostForm::Phases, &dims).unwrap();
    assert_eq!(found.iter().filter(|value| **value == -1).count(), 120);
}

/// Operations of waves, also of those that are not full.
#[gpumem::kernel(unsafe)]
fn in_waves(out: SliceMut<i64>) {
    let i = global_id(0);
    let n = i as i64 * 7 % 31;
    let sum = wave_sum(n);
    let least = wave_min(n);
    let most = wave_max(n);
    let scanned = wave_scan(n);
    let other = shuffle(n, 3);
    let up = shuffle_up(n, 2);
    let down = shuffle_down(n, local_id(0) % 5);
    let crossed = shuffle_xor(n, 9);
    let votes = wave_ballot(n > 15);
    let any = wave_any(n > 29);
    let all = wave_all(n < 31);
    let by = 5;
    let mut folded = wave_reduce(n, |a, b| (a * by + b) & 1023);
    folded = wave_sum(folded);
    let mine = (lane() + wave_id() * 100 + wave_items() * 10000) as i64;
    let told = if any { 1 } else { 2 } + if all { 3 } else { 4 };
    out[i] = sum
        + least * 3
        + most * 5
        + scanned * 7
        + other * 11
        + up * 13
        + down * 17
        + crossed * 19
        + votes as i64 % 1009
        + told
        + folded
        + mine;
}

#[test]
fn operations_of_waves_equal_those_of_the_awaiting_body() {
    for group in [32, 33, 64, 100] {
        agrees(&in_waves(), HostForm::Phases, &config_for_items(group as usize * 2, group)).unwrap();
    }
}

const PANIC: u32 = line!() + 7;
/// Two work-items go wrong after a barrier.
#[gpumem::kernel(unsafe)]
fn panics(out: SliceMut<i64>) {
    let i = global_id(0);
    barrier(Local);
    let at = if i == 13 || i == 47 { 1000 } else { i };
    out[at] = 1;
}

/// The fault is in code that the group runs once.
#[gpumem::kernel(unsafe)]
fn divides_by_zero(out: SliceMut<i64>) {
    barrier(Local);
    let turns = 7 / group_id(0);
    barrier(Local);
    out[global_id(0)] = turns as i64;
}

/// What a body asserts comes before what the group computes below it.
#[gpumem::kernel(unsafe)]
fn shares(out: SliceMut<i64>) {
    let i = global_id(0);
    assert!(group_id(0) > 0, "no shares");
    let each = 100 / group_id(0);
    out[i] = each as i64;
    barrier(Local);
    out[i] += 1;
}

/// No work-item reaches a phase.
#[gpumem::kernel(unsafe)]
fn leaves(out: SliceMut<i64>) {
    if !out.is_empty() {
        return;
    }
    barrier(Local);
}

#[test]
fn a_body_without_phases_is_split() {
    assert_eq!(agrees(&leaves(), HostForm::Phases, &config_for_items(64, 32)).unwrap(), [0; 64]);
}

#[test]
fn a_fault_is_the_same_in_both_bodies() {
    let found = agrees(&shares(), HostForm::Phases, &config_for_items(64, 32)).unwrap_err();
    assert!(found.contains("no shares"), "{found}");

    let found = agrees(&panics(), HostForm::Phases, &config_for_items(64, 32)).unwrap_err();
    assert!(found.starts_with("work-item (13, 0, 0) of group (0, 0, 0) uses index [1000]"), "{found}");
    assert!(found.contains(&format!("phases.rs:{PANIC}:")), "{found}");
    let found = agrees(&divides_by_zero(), HostForm::Phases, &config_for_items(64, 32)).unwrap_err();
    assert!(found.starts_with("work-item (0, 0, 0) of group (0, 0, 0) panicked"), "{found}");
}

/// Each work-item goes its own way to the barrier: all come equally often.
#[gpumem::kernel(unsafe)]
fn strides(out: SliceMut<i64>) {
    let tile = shared::<i64>([32]);
    let local = local_id(0);
    for i in (global_id(0)..out.len()).step_by(global_size(0)) {
        tile[local] = i as i64;
        barrier(Local);
        out[i] = tile[31 - local] * 2;
        barrier(Local);
    }
}

/// Only some wait for their wave.
#[gpumem::kernel(unsafe)]
fn first_wave(out: SliceMut<i64>) {
    let i = global_id(0);
    let mut sum = 0;
    if wave_id() == 0 {
        sum = wave_sum(1);
    }
    out[i] = i as i64 - if sum > 0 { 1 } else { 0 };
}

/// Half of the group leaves before a barrier.
#[gpumem::kernel(unsafe)]
fn parts(out: SliceMut<i64>) {
    if local_id(0) > 15 {
        return;
    }
    barrier(Local);
    out[global_id(0)] = 1;
}

/// An `assert!` assigns.
#[gpumem::kernel(unsafe)]
fn asserted(out: SliceMut<i64>) {
    let mut n = 1;
    let tile = shared::<i64>([32]);
    assert!({
        n += local_id(0);
        n > 0
    });
    tile[local_id(0)] = n as i64;
    barrier(Local);
    assert!(out.len() > n, "{n} of {len} for {n}", len = out.len());
    out[global_id(0)] = tile[31 - local_id(0)] + n as i64;
}

/// An `assert!` returns, before others wait.
#[gpumem::kernel(unsafe)]
fn left_in_assert(out: SliceMut<i64>) {
    assert!({
        if local_id(0) == 1 {
            return;
        }
        true
    });
    barrier(Local);
    out[global_id(0)] = 1;
}

#[test]
fn what_an_assert_does_is_seen() {
    let found = agrees(&asserted(), HostForm::Phases, &config_for_items(64, 32)).unwrap();
    assert_eq!(found, [33; 64]);
    let found = agrees(&left_in_assert(), HostForm::WorkItems, &config_for_items(64, 32)).unwrap_err();
    assert!(found.contains("has ended, while 31 of 32 work-items of its group wait"), "{found}");
}

/// Work-items use their own parts of one element.
#[gpumem::kernel(unsafe)]
fn own_parts(out: SliceMut<i64>, cells: SliceMut<[i64; 32]>) {
    let i = local_id(0);
    cells[0][i] = i as i64;
    out[i] = cells[0][i] + 1;
}

#[test]
fn reading_a_part_of_an_element_reads_no_other() {
    let device = Device::<Host>::open("host").unwrap();
    let stream = device.stream().unwrap();
    let (mut out, mut cells) =
        (stream.to_device(&[0i64; 32]).unwrap(), stream.to_device(&[[0i64; 32]]).unwrap());
    let kernel = own_parts().race_checks(true).load(&device).unwrap();
    kernel.launch(&stream, &config_for_items(32, 32), (&mut out, &mut cells)).unwrap();
    assert_eq!(out.copy_to_host().unwrap().to_vec(), (1..=32).collect::<Vec<i64>>());
}

#[test]
fn bodies_with_possible_divergence_await() {
    agrees(&strides(), HostForm::WorkItems, &config_for_items(64, 32)).unwrap();
    agrees(&first_wave(), HostForm::WorkItems, &config_for_items(200, 100)).unwrap();
    let found = agrees(&parts(), HostForm::WorkItems, &config_for_items(64, 32)).unwrap_err();
    assert!(found.contains("has ended, while 16 of 32 work-items of its group wait"), "{found}");
}
