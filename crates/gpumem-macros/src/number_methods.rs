//! The methods of numbers that kernels know.

/// Methods of numbers that `arithmetic.hpp` has under the same name.
pub(crate) const NUMBERS: &str = "
    sqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 exp_m1 ln ln_1p log2
    log10 floor ceil trunc round abs powf powi atan2 hypot copysign min max clamp mul_add recip plus times
    fract is_nan is_finite is_infinite to_bits to_f32 to_f64 wrapping_add wrapping_sub wrapping_mul
    wrapping_neg saturating_add saturating_sub rotate_left rotate_right count_ones leading_zeros
    trailing_zeros count_zeros leading_ones trailing_ones swap_bytes reverse_bits wrapping_abs wrapping_shl
    wrapping_shr signum is_positive is_negative is_sign_positive is_sign_negative abs_diff unsigned_abs
    rem_euclid div_euclid is_multiple_of conj norm_sqr
";

/// Whether a method of numbers has this name.
pub(crate) fn is_method_of_numbers(name: &str) -> bool {
    NUMBERS.split_whitespace().any(|known| known == name)
}
