//! The bits of 2/pi by which AMD's library reduces large arguments of sine and cosine: `v_trig_preop_f64`, as AMD's instruction set
//! documents describe it.

use super::{
    instruction::{Flow, Form, Instruction, Kind, honours},
    mode::Arithmetic,
    soft::{self, F64},
    wave::Wave,
};

/// The first 1201 bits of 2/pi after the point, the highest first.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_0000,
];

/// Bits of a segment.
const SEGMENT: u32 = 53;

/// The integer of 53 bits of 2/pi, so many bits after the point.
fn segment(shift: u32) -> u64 {
    let bit = |at: u32| {
        let word = TWO_OVER_PI.get(at as usize / 64).copied().unwrap_or(0);
        word >> (63 - at % 64) & 1
    };
    (shift..shift + SEGMENT).fold(0, |bits, at| bits << 1 | bit(at))
}

/// The segment of that number for the argument `x`.
fn look_up(x: u64, number: u32) -> u64 {
    let exponent = (x >> 52 & 0x7ff) as u32;
    let shift = (number & 31) * SEGMENT + exponent.saturating_sub(1077);
    let large = if exponent >= 1968 { 128 } else { 0 };
    let scale = large - (SEGMENT + shift) as i32;
    soft::scale(F64, (segment(shift) as f64).to_bits(), scale, Arithmetic::IEEE)
}

fn preoperation(wave: &mut Wave, i: &Instruction) -> Flow {
    let (x, number) = (wave.wide_source(&i.operands[1]), wave.source(i, 2));
    let (number, mut out) = (&wave.vectors[number], [0; 64]);
    for lane in 0..64 {
        out[lane] = look_up(x[lane], number[lane]);
    }
    wave.put_wide(i.operands[0].vector(), &out);
    Flow::Next
}

/// The instruction of that name.
pub(super) fn find(name: &str) -> Option<Form> {
    let kinds: &[Kind] = &[Kind::Out(2), Kind::F64, Kind::B32];
    (name == "v_trig_preop_f64")
        .then(|| Form::new(kinds, |wave, i, _| preoperation(wave, i)).honouring(honours::SIGNS))
}

#[cfg(test)]
mod tests {
    use super::look_up;

    #[test]
    fn segments_of_two_over_pi_add_up() {
        let small = 1.0f64.to_bits();
        let [first, second] = [0, 1].map(|number| f64::from_bits(look_up(small, number)));
        assert_eq!(first + second, std::f64::consts::FRAC_2_PI);
        assert!(second > 0.0 && second < 2f64.powi(-53));
        // Of an argument of 2^100 the product with the first bits is a multiple of 4.
        assert!(f64::from_bits(look_up(2f64.powi(100).to_bits(), 0)) < 2f64.powi(-45));
        // Beyond the table there is nothing.
        assert_eq!(look_up(f64::MAX.to_bits(), 31), 0);
    }
}
