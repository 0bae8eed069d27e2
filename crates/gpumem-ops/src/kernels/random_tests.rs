//! The words and the quantiles of random numbers, beside known answers.

use super::random::{philox, quantile_f32, quantile_f64};

/// The known answers of Random123 (`kat_vectors`, `philox4x32 10`).
#[test]
fn the_words_are_those_of_random123() {
    let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
    let rows = [
        ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
        ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
        (pi, [0xa409_3822, 0x299f_31d0], [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]),
    ];
    for (counter, key, words) in rows {
        assert_eq!(philox(counter, key), words);
    }
}

/// Words from all over the range, and their quantiles by mpmath with 40 digits.
const QUANTILES: [(u64, f64); 27] = [
    (0x0000_0000_0000_0000, 6.794_229_552_421_306e-20),
    (0x0000_0000_0000_0001, 2.038_268_865_726_391_7e-19),
    (0x0000_0000_8000_0000, 2.918_099_373_596_046e-10),
    (0x0000_0001_0000_0000, 5.836_198_746_512_668e-10),
    (0x4000_0000_0000_0000, 0.674_489_750_196_081_7),
    (0x6000_0000_0000_0000, 1.150_349_380_376_008),
    (0x7fff_ffff_ffff_ffff, 9.155_293_772_686_072),
    (0x7fff_ffff_ffff_fffe, 9.035_918_848_571_939),
    (0x7fff_ffff_fff0_0000, 7.423_939_875_108_593),
    (0x7fff_ffff_0000_0000, 6.230_260_138_007_281),
    (0x7fff_ff00_0000_0000, 5.294_704_084_854_681),
    (0x6ccc_cccc_cccc_cbff, 1.439_531_470_938_456),
    (0x6ccc_cccc_cccc_cc00, 1.439_531_470_938_456),
    (0x6ccc_cccc_cccc_cc01, 1.439_531_470_938_456),
    (0x7fff_ffff_f0ba_e32d, 6.657_904_496_413_161),
    (0x7fff_ffff_f0ba_e52d, 6.657_904_790_229_995),
    (0x48db_ac25_2265_b1f5, 0.787_830_036_782_177_1),
    (0x66b0_9f18_d8f1_6adf, 1.288_031_666_133_326),
    (0x0813_e268_c386_bbc4, 0.079_175_318_503_087_52),
    (0x0f17_f5c4_414c_343c, 0.148_331_321_174_564_77),
    (0x6167_37a2_7ed4_d57b, 1.177_395_820_517_436),
    (0x3c72_8830_7311_d8a3, 0.631_437_105_187_582_7),
    (0x7fff_ffff_ffff_fd64, 8.343_095_792_693_802),
    (0x7fff_ffff_ff9e_d189, 7.181_300_073_285_556),
    (0x7fff_f948_3616_39e9, 4.935_162_866_730_578),
    (0x7f06_37a6_e7f8_d173, 2.668_337_675_361_812),
    (0x71b4_f931_f8be_3857, 1.590_755_418_659_356_7),
];

#[test]
fn quantiles_are_accurate() {
    let close = |found: f64, expected: f64, bound: f64| {
        let error = ((found - expected) / expected).abs();
        assert!(error <= bound, "{found} is not {expected}, but differs by {error}");
    };
    for (word, expected) in QUANTILES {
        close(quantile_f64(word), expected, 1e-15);
        assert_eq!(quantile_f64(!word), -quantile_f64(word));
        // The middle of the words that begin so.
        let short = (word >> 32) as u32;
        let middle = quantile_f64((u64::from(short) << 32) | 0x7fff_ffff);
        close(f64::from(quantile_f32(short)), middle, 1e-6);
        assert_eq!(quantile_f32(!short), -quantile_f32(short));
    }
}

/// The quantiles of single precision grow with the words, and have those of double precision everywhere.
#[test]
#[cfg_attr(miri, ignore)] // a million numbers
fn quantiles_of_single_precision_follow_those_of_double() {
    let (mut last, mut worst) = (0.0f32, 0.0f64);
    for word in (0..1 << 31).step_by(2039) {
        let (found, expected) = (quantile_f32(word), quantile_f64((u64::from(word) << 32) | 0x7fff_ffff));
        assert!(found >= last * (1.0 - 1e-6), "{found} follows {last}");
        worst = worst.max((f64::from(found) / expected - 1.0).abs());
        last = found;
    }
    println!("at most {worst}");
    assert!(worst <= 1e-6, "{worst}");
}
