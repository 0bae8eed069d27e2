//! Kernels whose names stand for something else than their letters say, and kernels that a `macro_rules` writes.

use gpumem::{
    Device, DeviceRecord,
    kernel::{InOut, config_for_items, prelude::*},
};

macro_rules! two_arrays {
    ($name:ident, $t:ty) => {
        // SAFETY: each work-item writes its own elements between barriers.
        #[gpumem::kernel(unsafe)]
        fn $name(y: SliceMut<$t>) {
            let a = shared::<$t>([64]);
            let b = shared::<$t>([64]);
            let i = local_id(0);
            a[i] = y[i];
            b[i] = y[i] * 1000;
            barrier(Local);
            y[i] = a[63 - i] + b[63 - i];
        }
    };
}
two_arrays!(two_arrays, u32);

#[test]
fn arrays_that_one_macro_declares_are_different() {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    // In check mode the body is not split.
    for checks in [false, true] {
        let mut y: Vec<u32> = (0..64).collect();
        let kernel = two_arrays().race_checks(checks).load(&device).unwrap();
        kernel.launch(&stream, &config_for_items(64, 64), (InOut(&mut y),)).unwrap();
        let expected: Vec<u32> = (0..64).rev().map(|i| 1001 * i).collect();
        assert_eq!(y, expected, "checks: {checks}");
    }
}

#[derive(Clone, Copy, Debug, Default, DeviceRecord, PartialEq)]
#[repr(C)]
struct Row {
    a: [usize; 4],
}

#[gpumem::kernel]
fn names_of_the_expansion(y: Own<Row>) {
    let i = global_id(0);
    if i < y.len() {
        let __value = 3usize;
        let __at = 2usize;
        let __k0 = 1usize;
        let __new = 5usize;
        y[own()].a[__value] = __at;
        y[own()].a[__at] += __new;
        y[own()].a[__k0] = y[own()].a[__at] + __k0;
    }
}

#[test]
fn variables_of_the_user_are_the_users() {
    let mut y = [Row::default(); 2];
    let device = Device::open("host").unwrap();
    let kernel = names_of_the_expansion().load(&device).unwrap();
    kernel.launch(&device.stream().unwrap(), &config_for_items(2, 2), (InOut(&mut y),)).unwrap();
    assert_eq!(y, [Row { a: [0, 6, 5, 2] }; 2]);
}

/// Where `assert!` is a macro of the user's.
mod with_own_assert {
    use gpumem::kernel::prelude::*;

    #[allow(unused_macros)]
    macro_rules! assert {
        ($($any:tt)*) => {};
    }

    #[gpumem::kernel]
    pub(super) fn asserts(y: Own<u32>) {
        let i = global_id(0);
        if i < y.len() {
            assert!(y[own()] < 3);
            y[own()] = 7;
        }
    }
}

#[test]
fn an_assertion_is_that_of_rust() {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    let kernel = with_own_assert::asserts().load(&device).unwrap();
    let mut y = [9u32];
    let launched = kernel.launch(&stream, &config_for_items(1, 1), (InOut(&mut y),));
    launched.and_then(|()| stream.synchronize()).unwrap_err();
}

macro_rules! parting {
    ($barriers:ident $waves:ident) => {
        // SAFETY: each work-item writes its own element.
        #[gpumem::kernel(unsafe)]
        fn $barriers(y: SliceMut<u32>) {
            let i = global_id(0);
            if i < 2 {
                barrier(Local);
                y[i] = 1;
            } else {
                barrier(Local);
                y[i] = 2;
            }
        }

        // SAFETY: each work-item writes its own element.
        #[gpumem::kernel(unsafe)]
        fn $waves(y: SliceMut<u32>) {
            let i = global_id(0);
            if i < 2 {
                y[i] = wave_sum(1);
            } else {
                y[i] = wave_sum(2);
            }
        }
    };
}
parting!(barriers_apart waves_apart);

#[test]
fn work_items_part_also_where_a_macro_has_written_both_ways() {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    for (kernel, what) in [(barriers_apart(), "barrier"), (waves_apart(), "wave")] {
        let mut y = [0u32; 4];
        let launched =
            kernel.load(&device).unwrap().launch(&stream, &config_for_items(4, 4), (InOut(&mut y),));
        let message = launched.and_then(|()| stream.synchronize()).unwrap_err().to_string();
        assert!(message.contains("waits at") && message.contains(what), "{message}");
    }
}

/// Has methods and functions of the names that kernels know, for numbers too.
trait Others: Sized {
    fn plus(self, other: Self) -> Self;
    fn signum(self) -> Self;
    fn from_f32(value: f32) -> Self;
}

macro_rules! others {
    ($($t:ty)*) => {$(
        impl Others for $t {
            fn plus(self, _: Self) -> Self {
                1000.0 as $t
            }
            fn signum(self) -> Self {
                2000.0 as $t
            }
            fn from_f32(_: f32) -> Self {
                3000.0 as $t
            }
        }
    )*};
}
others!(f32);

#[gpumem::kernel]
fn methods_of_the_user(y: Own<f32>) {
    let i = global_id(0);
    if i < y.len() {
        y[own()] = y[own()].plus(1.5);
    }
}

/// As a generic kernel sees them, they come before all others.
#[gpumem::kernel]
fn generic_methods_of_the_user<T: Numeric + Others>(y: Own<T>, one: T) {
    let i = global_id(0);
    if i < y.len() {
        y[own()] = y[own()].plus(one) * y[own()].signum();
    }
}

#[test]
fn methods_are_those_of_the_list() {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    let mut y = [2.0f32, -5.0];
    let kernel = methods_of_the_user().load(&device).unwrap();
    kernel.launch(&stream, &config_for_items(2, 2), (InOut(&mut y),)).unwrap();
    assert_eq!(y, [3.5, -3.5]);
    let kernel = generic_methods_of_the_user::<f32>().load(&device).unwrap();
    kernel.launch(&stream, &config_for_items(2, 2), (InOut(&mut y), 1.0)).unwrap();
    assert_eq!(y, [4.5, 2.5]);
    assert_eq!(
        (Others::plus(1.0f32, 1.0), Others::signum(1.0f32), <f32 as Others>::from_f32(1.0)),
        (1000.0, 2000.0, 3000.0)
    );
}

#[gpumem::kernel]
fn assertions(y: Own<u32>, limit: u32, told: u32) {
    if global_id(0) < y.len() {
        if told > 0 {
            assert!(y[own()] < limit, "{} of {n} at {told}", y[own()], n = limit * 2);
        }
        assert!(y[own()] < limit);
    }
}

#[test]
fn an_assertion_is_told_as_it_was_written() {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    let kernel = assertions().load(&device).unwrap();
    for (told, expected) in [(0, "assertion failed: y[own()] < limit"), (5, "9 of 6 at 5")] {
        let mut y = [9u32];
        let launched = kernel.launch(&stream, &config_for_items(1, 1), (InOut(&mut y), 3, told));
        let message = launched.and_then(|()| stream.synchronize()).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[gpumem::device]
fn tripled(x: u32) -> u32 {
    x * 3
}

/// Stands for a function by its witness alone.
struct Alias;

impl Alias {
    fn __witness() -> gpumem::kernel::codegen::Witness<tripled> {
        gpumem::kernel::codegen::Witness::new()
    }

    #[allow(dead_code)]
    fn __call(_: &gpumem::kernel::codegen::Witness<tripled>, _: u32) -> u32 {
        7
    }
}

/// A type of the name of one in expansions, with a constant that all types have otherwise.
enum __Origin {}

#[allow(dead_code)]
trait Width {
    const WIDTH: u32 = 1000;
}

impl<T> Width for T {}

impl __Origin {
    const WIDTH: u32 = 5;
}

#[gpumem::device]
fn widened(x: u32) -> u32 {
    x + __Origin::WIDTH
}

#[gpumem::kernel]
fn calls_by_names(y: Own<u32>) {
    if global_id(0) < y.len() {
        y[own()] = widened(Alias(y[own()]));
    }
}

#[test]
fn a_path_calls_one_function_on_all_devices() {
    let device = Device::open("host").unwrap();
    let kernel = calls_by_names().load(&device).unwrap();
    let mut y = [2u32, 4];
    kernel.launch(&device.stream().unwrap(), &config_for_items(2, 2), (InOut(&mut y),)).unwrap();
    assert_eq!(y, [11, 17]);
    let declared = calls_by_names();
    let source = declared.source_text().unwrap();
    assert!(source.contains("functions::tripled") && source.contains(" + 5u"), "{source}");
}

/// A kernel in the scope of these items.
macro_rules! in_scope {
    ($name:ident { $($items:item)* }) => {
        mod $name {
            use gpumem::kernel::prelude::*;
            $($items)*

            #[gpumem::kernel]
            pub(super) fn measured(y: Own<u64>) {
                let n = global_id(0) as u64 * 300;
                barrier(Local);
                let sum = wave_sum(n);
                barrier(Local);
                if global_id(0) < y.len() {
                    y[own()] = n + sum + local_id(0) as u64;
                }
            }
        }
    };
}
in_scope!(alone {});
in_scope!(beside_traits {
    use gpumem::kernel::codegen::Witness;

    /// Takes every value for a byte.
    #[allow(dead_code)]
    trait Forge {
        fn see<V>(self, value: V) -> V;
        fn of<V>(self, value: &V) -> &V;
    }

    impl Forge for Witness<u8> {
        fn see<V>(self, value: V) -> V {
            value
        }
        fn of<V>(self, value: &V) -> &V {
            value
        }
    }

    /// Methods of the names that expansions call.
    #[allow(dead_code)]
    trait Any: Sized {
        fn local_id(&self, _: usize) -> usize {
            1 << 20
        }
        fn global_id(&self, _: usize) -> usize {
            1 << 20
        }
        fn own(&self) -> usize {
            0
        }
        fn first(self) {}
        fn next_group(self) -> bool {
            false
        }
        fn each<F>(self, _: F) {}
        fn each_inside<A, B, F>(self, _: A, _: B, _: F) {}
        fn get<I>(self, _: I) -> u64 {
            7
        }
        fn set<I, V>(self, _: I, _: V) {}
        fn wave_sum<A, B>(self, _: A, _: B) {}
    }

    impl<T> Any for T {}
});

#[test]
fn traits_of_the_user_stand_in_no_place_of_the_library() {
    let device = Device::open("host").unwrap();
    let [alone, beside] = [alone::measured(), beside_traits::measured()];
    assert_eq!(beside.source_text().unwrap(), alone.source_text().unwrap());
    for checks in [false, true] {
        let mut y = [0u64; 4];
        let kernel = beside.clone().race_checks(checks).load(&device).unwrap();
        kernel.launch(&device.stream().unwrap(), &config_for_items(4, 4), (InOut(&mut y),)).unwrap();
        assert_eq!(y, [1800, 2101, 2402, 2703], "checks: {checks}");
    }
}

#[gpumem::kernel]
fn variables_of_the_expansion(y: Own<u64>, last: u64) {
    let (__phases, __arguments, __calls) = (1u64, 2u64, 3u64);
    let __item = local_id(0) as u64;
    let mut __p0 = global_id(0) as u64;
    let (__w0, __w1, __w2, __w3, __f0, __l0, __r0) = (1u32, 2u32, 3u32, 4u32, 5u32, 6u32, 7u32);
    barrier(Local);
    '__group: for k in 0..3u64 {
        barrier(Local);
        __p0 += k + __item + __phases + __arguments + __calls;
        if k == last {
            return;
        }
        if k == 1 {
            continue '__group;
        }
        barrier(Local);
    }
    let sum = wave_sum(__p0);
    if global_id(0) < y.len() {
        y[own()] = sum + __item * 2 + (__w0 + __w1 + __w2 + __w3 + __f0 + __l0 + __r0) as u64;
    }
}

#[test]
fn names_of_the_expansion_are_free() {
    let device = Device::open("host").unwrap();
    for (checks, last, expected) in
        [(false, 9, [74, 76]), (true, 9, [74, 76]), (false, 1, [0; 2]), (true, 1, [0; 2])]
    {
        let mut y = [0u64; 2];
        let kernel = variables_of_the_expansion().race_checks(checks).load(&device).unwrap();
        kernel.launch(&device.stream().unwrap(), &config_for_items(2, 2), (InOut(&mut y), last)).unwrap();
        assert_eq!(y, expected, "checks: {checks}, last: {last}");
    }
}

#[no_implicit_prelude]
mod without_prelude {
    use ::gpumem::kernel::prelude::*;
    use ::std::ops::Range;

    #[allow(dead_code)]
    trait Turn {
        fn rev(self) -> Self;
        fn step_by(self, step: usize) -> Self;
    }

    impl Turn for Range<u32> {
        fn rev(self) -> Self {
            self
        }
        fn step_by(self, _: usize) -> Self {
            self
        }
    }

    #[::gpumem::kernel]
    pub(super) fn turned(y: Own<u32>) {
        let mut n = 0u32;
        for k in (0u32..4).rev() {
            n = n * 10 + k;
        }
        for k in (0u32..4).step_by(3) {
            n = n * 10 + k;
        }
        y[own()] = n;
    }
}

#[test]
fn ranges_are_those_of_rust() {
    let device = Device::open("host").unwrap();
    let kernel = without_prelude::turned().load(&device).unwrap();
    let mut y = [0u32];
    kernel.launch(&device.stream().unwrap(), &config_for_items(1, 1), (InOut(&mut y),)).unwrap();
    assert_eq!(y, [321_003]);
}
