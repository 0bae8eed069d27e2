//! Arrays by another name of their type, and between brackets, are what they are by their own.
#![allow(clippy::unwrap_used)] // helpers of tests

use gpumem::{
    Device, DeviceRecord,
    kernel::{InOut, KernelDef, Parameters, config_for_items, prelude::*},
};

type Numbers = SliceMut<u32>;
type Pairs = SliceMut<Pair>;

#[derive(Debug, Clone, Copy, PartialEq, DeviceRecord)]
#[repr(C)]
struct Pair {
    a: u32,
    b: u32,
}

#[gpumem::device]
fn bump(y: SliceMut<u32>, i: usize) -> u32 {
    y[i] += 1;
    y[i]
}

/// The kernels `ordered` and `parts`, whose arrays stand in these expressions.
macro_rules! kernels {
    ($module:ident, $numbers:ty, $pairs:ty, $y:ident, $p:ident, $array:expr, $records:expr) => {
        mod $module {
            use super::*;

            // SAFETY: there is one work-item.
            #[gpumem::kernel(unsafe)]
            pub(super) fn ordered($y: $numbers) {
                $y[1] = $array[0] * 10 + bump($array, 0);
                $y[2] = bump($array, 0) * 10 + $array[0];
                $y[3] = bump($array, 0) * 10 + bump($array, $array.len() - 4);
            }

            // SAFETY: each work-item uses one field.
            #[gpumem::kernel(unsafe)]
            pub(super) fn parts($p: $pairs) {
                match global_id(0) {
                    0 => $records[0].a = $records[0].a + 1,
                    _ => $records[0].b = $records[0].b + 1,
                }
            }
        }
    };
}
kernels!(by_name, SliceMut<u32>, SliceMut<Pair>, y, p, y, p);
kernels!(by_alias, Numbers, Pairs, y, p, y, p);
kernels!(in_brackets, SliceMut<u32>, SliceMut<Pair>, y, p, (y), (p));
kernels!(by_alias_in_brackets, Numbers, Pairs, y, p, (y), (p));

/// The source, without the lines that it is from.
fn text<P: Parameters>(kernel: &KernelDef<P>) -> String {
    let text = kernel.source_text().unwrap();
    text.lines().filter(|line| !line.starts_with("#line")).collect::<Vec<_>>().join("\n")
}

#[test]
fn operands_are_computed_in_order() {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    let expected = by_name::ordered();
    assert!(text(&expected).contains("value"), "nothing is computed before: {}", text(&expected));
    for kernel in
        [expected.clone(), by_alias::ordered(), in_brackets::ordered(), by_alias_in_brackets::ordered()]
    {
        assert_eq!(text(&kernel), text(&expected));
        let mut y = [1; 4];
        let dims = config_for_items(1, 1);
        kernel.load(&device).unwrap().launch(&stream, &dims, (InOut(&mut y),)).unwrap();
        assert_eq!(y, [5, 12, 33, 45]);
    }
}

#[test]
fn work_items_may_use_different_fields_of_one_record() {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    for kernel in [by_name::parts(), by_alias::parts(), in_brackets::parts(), by_alias_in_brackets::parts()] {
        let kernel = kernel.race_checks(true).load(&device).unwrap();
        let mut p = [Pair { a: 1, b: 2 }];
        kernel.launch(&stream, &config_for_items(2, 2), (InOut(&mut p),)).unwrap();
        assert_eq!(p, [Pair { a: 2, b: 3 }]);
    }
}
