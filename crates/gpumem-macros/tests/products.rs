//! Products of numbers of which a compiler knows that upper bits are zeros or copies of the sign: each device gives the bits of Rust.
#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    reason = "tests; each work-item writes its own column"
)]

#[allow(dead_code, reason = "others are tests of their own")]
mod gpus;

use gpumem::{
    Backend,
    generic::Device,
    host::Host,
    kernel::{config_for_items, prelude::*},
};
use gpus::{Check, on_each_gpu};
use ndarray::Array2;

const ROWS: usize = 45;

#[gpumem::kernel(unsafe)]
fn products(a: Slice<u64>, b: Slice<u64>, out: ViewMut<u64, 2>) {
    let i = global_id(0);
    if i < a.len() {
        let (x, y) = (a[i], b[i]);
        let (m, n) = (x as u32, y as u32);
        // Without signs: 24 bits, one bit more, one less, 16 bits.
        let (p, q) = (m & 0xff_ffff, n & 0xff_ffff);
        out[[0, i]] = p as u64 * q as u64;
        out[[1, i]] = (p as u64 * q as u64) >> 32;
        out[[2, i]] = ((p as u64 * q as u64) >> 32) as u32 as u64;
        out[[3, i]] = ((p as u64 * q as u64) >> 24) as u32 as u64;
        out[[4, i]] = p.wrapping_mul(q) as u64;
        out[[5, i]] = (p.wrapping_mul(q) >> 8) as u64;
        out[[6, i]] = (m >> 8) as u64 * (n >> 8) as u64;
        out[[7, i]] = (m & 0x1ff_ffff) as u64 * (n & 0x1ff_ffff) as u64;
        out[[8, i]] = (m & 0x7f_ffff) as u64 * (n & 0x7f_ffff) as u64;
        out[[9, i]] = (m & 0xffff) as u64 * q as u64;
        out[[10, i]] = ((m & 0xffff) * (n & 0xffff)) as u64;
        out[[11, i]] = p as u64 * 0xab_cdef;
        out[[12, i]] = (p as u64 * 0xab_cdef) >> 32;
        out[[13, i]] = (p as u64 * q as u64).wrapping_mul(y);
        out[[14, i]] = p as u64 * p as u64 + q as u64;
        out[[15, i]] = ((m & 0x7f_ffff) + (n & 0x7f_ffff)) as u64 * q as u64;
        // With signs.
        let (s, t) = (((m << 8) as i32) >> 8, ((n << 8) as i32) >> 8);
        out[[16, i]] = (s as i64 * t as i64) as u64;
        out[[17, i]] = ((s as i64 * t as i64) >> 32) as u64;
        out[[18, i]] = ((s as i64 * t as i64) >> 32) as u32 as u64;
        out[[19, i]] = ((s as i64 * t as i64) >> 24) as u64;
        out[[20, i]] = s.wrapping_mul(t) as u64;
        out[[21, i]] = (s.wrapping_mul(t) >> 8) as u64;
        out[[22, i]] = (p as i64 * t as i64) as u64;
        out[[23, i]] = ((p as i64 * t as i64) >> 32) as u64;
        out[[24, i]] = (s as u64).wrapping_mul(t as u64);
        out[[25, i]] = (s as u64).wrapping_mul(q as u64) >> 32;
        out[[26, i]] = (m as i16 as i64 * n as i16 as i64) as u64;
        out[[27, i]] = (m as i8 as i32 * n as i16 as i32) as u64;
        out[[28, i]] = (s as i64 * -0x12_3456) as u64;
        out[[29, i]] = s as u32 as u64 * t as u32 as u64;
        out[[30, i]] = (s as u32 as u64 * t as u32 as u64) >> 32;
        // Of 64 bits, narrow by a mask or a shift.
        let (u, v) = (x & 0xff_ffff, y & 0xff_ffff);
        out[[31, i]] = u * v;
        out[[32, i]] = (u * v) >> 20;
        out[[33, i]] = (u * v) >> 32;
        out[[34, i]] = (x >> 40) * (y >> 40);
        let (g, h) = ((x as i64) >> 40, (y as i64) >> 40);
        out[[35, i]] = (g * h) as u64;
        out[[36, i]] = ((g * h) >> 32) as u64;
        out[[37, i]] = (g * v as i64) as u64;
        out[[38, i]] = (g as i32).wrapping_mul(h as i32) as u64;
        out[[39, i]] = ((g as i32).wrapping_mul(h as i32) as u32 >> 16) as u64;
        out[[40, i]] = s as u32 as u64 * 0x12_3456;
        out[[41, i]] = (s as u32 as i64 * q as i64) as u64;
        out[[42, i]] = (m as i16 as u32 as u64 * n as i8 as u32 as u64) >> 16;
        out[[43, i]] = (g as u64 & 0xffff_ffff) * (h as u64 & 0xffff_ffff);
        let mut product = s as u32 as usize;
        product *= t as u32 as usize;
        out[[44, i]] = product as u64;
    }
}

/// Numbers around powers of two, with and without upper bits.
fn numbers() -> Vec<u64> {
    let powers = [0, 7, 8, 15, 16, 22, 23, 24, 25, 31, 32, 39, 40, 47, 48, 62, 63];
    let around = powers.iter().flat_map(|bit| [-1i64, 0, 1].map(|by| (1u64 << bit).wrapping_add_signed(by)));
    around.flat_map(|one| [one, !one]).chain([0x1234_5678_9abc_def0, 0xfedc_ba98_7654_3210]).collect()
}

fn found<B: Backend>(device: &Device<B>) -> Array2<u64> {
    let (stream, numbers) = (device.stream().unwrap(), numbers());
    let pairs = || numbers.iter().flat_map(|x| numbers.iter().map(move |y| (*x, *y)));
    let (a, b): (Vec<u64>, Vec<u64>) = pairs().unzip();
    let mut out = stream.to_device(&Array2::<u64>::zeros((ROWS, a.len()))).unwrap();
    let (a, b) = (stream.to_device(&a).unwrap(), stream.to_device(&b).unwrap());
    let dims = config_for_items(a.len(), 64);
    products().load(device).unwrap().launch(&stream, &dims, (&a, &b, &mut out)).unwrap();
    out.copy_to_host().unwrap()
}

struct Same(Array2<u64>);

impl Check for Same {
    fn check<B: Backend>(&self, device: &Device<B>) {
        let found = found(device);
        for row in 0..ROWS {
            let wrong = found.row(row).iter().zip(self.0.row(row)).position(|(found, right)| found != right);
            if let Some(at) = wrong {
                let numbers = numbers();
                let (x, y) = (numbers[at / numbers.len()], numbers[at % numbers.len()]);
                println!(
                    "row {row} of {x:#x} and {y:#x}: {:#x}, in Rust {:#x}",
                    found[[row, at]],
                    self.0[[row, at]]
                );
            }
        }
        assert!(found == self.0);
    }
}

#[test]
fn products_of_narrow_numbers() {
    on_each_gpu("products_of_narrow_numbers", &Same(found(&Device::<Host>::open("host").unwrap())));
}
