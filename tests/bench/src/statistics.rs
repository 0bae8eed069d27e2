//! Medians, which a few disturbed rounds do not move.

/// The value below which the part `fraction` of the values lies; between two values, in proportion. `NaN` of none.
pub(crate) fn quantile(values: &[f64], fraction: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let position = fraction.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    let (low, high) = (sorted[below], sorted[above]);
    low + (high - low) * (position - below as f64)
}

pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Half the distance between the quartiles, as a part of the median.
pub(crate) fn spread(values: &[f64]) -> f64 {
    (quantile(values, 0.75) - quantile(values, 0.25)) / 2.0 / median(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_the_values() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(median(&values), 2.5);
        assert_eq!(quantile(&values, 0.0), 1.0);
        assert_eq!(quantile(&values, 1.0), 4.0);
        assert_eq!(quantile(&values, 0.25), 1.75);
        assert_eq!(median(&[7.0]), 7.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn one_disturbed_round_does_not_move_the_median() {
        assert_eq!(median(&[1.0, 1.0, 1000.0, 1.0, 1.0]), 1.0);
        assert_eq!(spread(&[1.0, 1.0, 1000.0, 1.0, 1.0]), 0.0);
        assert_eq!(spread(&[1.0, 2.0, 3.0]), 0.25);
    }
}
