//! The types in C++ are those that rustc infers: of literals, shadowed names, constants, casts, and results of operators.
#![allow(clippy::unwrap_used)] // helpers of tests

use gpumem::kernel::prelude::*;
use std::any::type_name_of_val;

trait Width {
    const BITS: u8;
}
impl Width for f32 {
    const BITS: u8 = 32;
}
const LIMIT: i16 = -7;

#[gpumem::device]
fn wider(x: u32) -> u64 {
    x as u64
}

#[gpumem::device]
fn same<T: Numeric>(x: T) -> T {
    x
}

/// Makes a kernel of the declarations, and the list of their types as rustc has them in a function.
macro_rules! declarations {
    ($x:ident, $n:ident, $big:ident; $($name:ident = [$($value:tt)+];)*) => {
        #[allow(unused_variables, unused_assignments)]
        #[gpumem::kernel]
        fn declarations(out: Own<u8>, $x: f32, $n: u16, $big: u64) {
            $(let $name = $($value)+;)*
        }

        #[allow(unused_variables, clippy::all)]
        fn types($x: f32, $n: u16, $big: u64) -> Vec<(&'static str, &'static str)> {
            let mut types = Vec::new();
            $(
                let $name = $($value)+;
                types.push((stringify!($name), type_name_of_val(&$name)));
            )*
            types
        }
    };
}

declarations! {
    // Their types are those of the parameters.
    x, n, big;
    integer = [1];
    float = [1.5];
    suffixed = [7u8];
    suffixed_float = [2f32];
    wide = [3_000_000_000u64];
    signed = [-5i64];
    hex = [0xffu16];
    of_parameter = [x];
    beside_float = [x * 2.0];
    beside_integer = [n + 1];
    beside_wide = [big - 1];
    compared = [x < 1.0];
    both = [x < 1.0 && n == 3];
    not = [!compared];
    turned = [!n];
    negated = [-x];
    shifted = [n << 3];
    shifted_by_other = [big >> n];
    cast = [n as f64];
    cast_again = [cast as i8];
    size = [n as usize];
    beside_size = [size * 2];
    signed_size = [n as isize];
    constant = [LIMIT];
    associated = [<f32 as Width>::BITS];
    bound = [u32::MAX];
    block = [{ let part = n; part as i32 }];
    chosen = [if n > 2 { 1u32 } else { 2 }];
    matched = [match n { 0 => 0.25f32, _ => 0.5 }];
    called = [wider(4)];
    generic = [same(x)];
    generic_by_value = [same(9)];
    generic_twice = [same(same(n))];
    method = [x.sqrt()];
    counted = [n.count_ones()];
    bits = [x.to_bits()];
    wrapped = [n.wrapping_add(1)];
    tuple_part = [(n, x).1];
    element = [[1i16, 2][1]];
    integer_again = [integer + 1];
    shadowed = [integer_again];
    combined = [beside_wide % 7];
    rounded = [x.mul_add(2.0, 1.0)];
    smallest = [n.min(4)];
    found = [f64::from(x)];
}

#[test]
fn variables_have_the_types_that_rustc_infers() {
    let names = [("f32", "float"), ("f64", "double"), ("usize", "u64"), ("isize", "i64")];
    let declaration = declarations();
    let source = declaration.source_text().unwrap();
    let types = types(1.0, 2, 3);
    assert!(types.len() >= 40);
    for (name, ty) in types {
        let expected = names.iter().find(|(rust, _)| *rust == ty).map_or(ty, |(_, cpp)| cpp);
        // Names of C++ end in an underscore.
        let is_declared = [name.to_owned(), format!("{name}_")].iter().any(|name| {
            source.contains(&format!("const {expected} {name} = "))
                || source.contains(&format!("    {expected} {name};"))
                // One of 64 bits whose values fit 32 has these.
                || *expected == *"u64" && source.contains(&format!("const u32 {name} = "))
        });
        assert!(is_declared, "{name}: {ty}\n{source}");
    }
}

/// Kernels where the type of a name is not that of the word.
#[allow(non_camel_case_types, clippy::unnecessary_cast, reason = "such names and casts are what is tested")]
mod renamed {
    use gpumem::kernel::prelude::*;

    type f32 = f64;
    type Wide = u64;

    /// rustc gives a literal the type that it is cast to.
    #[gpumem::kernel(unsafe)]
    pub fn casts(out: SliceMut<u64>) {
        out[0] = 0xffff_ffff as u64;
        out[1] = 3_000_000_000 as usize as u64;
        out[2] = (0x1_0000_0000) as u64;
        out[3] = -3_000_000_000 as i64 as u64;
        out[4] = !0xffff_ffff as u64;
        out[5] = (0.1 as f32).to_bits();
        out[6] = 7 as Wide;
        out[7] = (if out[6] == 7 { -1 } else { 1 }) as u64;
        out[8] = const { 5 } as u64;
        out[10] = u64::from((-2. as std::primitive::f32).to_bits()) + (3. as f32).to_bits();
        out[9] = u64::from((16777217.5 as std::primitive::f32).to_bits());
    }
}

#[test]
fn a_literal_has_the_type_that_it_is_cast_to() {
    let device = gpumem::Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    let mut out = stream.device_array::<u64, _>(11).unwrap();
    let kernel = renamed::casts().load(&device).unwrap();
    kernel.launch(&stream, &gpumem::kernel::config_for_items(1, 1), (&mut out,)).unwrap();
    let all = [
        0xffff_ffff,
        3_000_000_000,
        0x1_0000_0000,
        -3_000_000_000i64 as u64,
        !0xffff_ffffu64,
        f64::from(0.1f32).to_bits(),
        7,
        u64::MAX,
        5,
        u64::from((16777217.5f64 as f32).to_bits()),
        u64::from((-2f32).to_bits()) + 3f64.to_bits(),
    ];
    assert_eq!(out.copy_to_host().unwrap().to_vec(), all);
    // What is printed for a GPU are these numbers, in types that have them.
    let declaration = renamed::casts();
    let source = declaration.source_text().unwrap();
    for (at, value) in
        ["4294967295", "3000000000", "4294967296", "3000000000", "4294967295", "0.1f"].iter().enumerate()
    {
        let line = source.lines().find(|line| line.contains(&format!("out_[{at}"))).unwrap();
        assert!(line.contains(value) && !line.contains("(-1)"), "{line}");
    }
}
