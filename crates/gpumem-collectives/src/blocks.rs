//! Shapes of arrays that hold one block for each rank.

use crate::call::invalid;
use gpumem_core::{Backend, LayoutError, Result};
use gpumem_runtime::Stream;

/// Checks that two shapes are equal.
pub(crate) fn check_equal<B: Backend>(
    stream: &Stream<B>,
    operation: &'static str,
    source: &[usize],
    destination: &[usize],
) -> Result<()> {
    if source == destination {
        Ok(())
    } else {
        Err(mismatch(stream, operation, destination, source.to_vec()))
    }
}

/// Checks that `whole` has a block of shape `part` for each rank, along its first axis or along a further one before it.
pub(crate) fn check_whole<B: Backend>(
    stream: &Stream<B>,
    operation: &'static str,
    (whole, part): (&[usize], &[usize]),
    size: usize,
) -> Result<()> {
    let stacked = whole.split_first().is_some_and(|(first, rest)| *first == size && rest == part);
    let joined = match (whole, part) {
        ([first, rest @ ..], [own, own_rest @ ..]) => {
            // Checked: a shape of the user times the ranks may be no number.
            own.checked_mul(size) == Some(*first) && rest == own_rest
        }
        _ => false,
    };
    if stacked || joined {
        return Ok(());
    }
    let expected = match part {
        [own, rest @ ..] => [&[own.saturating_mul(size)], rest].concat(),
        [] => vec![size],
    };
    Err(mismatch(stream, operation, whole, expected))
}

/// Checks that the first axis has so many equal blocks.
pub(crate) fn check_blocks<B: Backend>(
    stream: &Stream<B>,
    operation: &'static str,
    shape: &[usize],
    size: usize,
) -> Result<()> {
    match shape.first() {
        Some(first) if first.is_multiple_of(size) => Ok(()),
        _ => Err(invalid(
            stream,
            operation,
            "the length of the first axis is no multiple of the number of ranks",
        )),
    }
}

/// Checks that the first axis has these numbers of rows for the ranks. Returns the elements of a row.
pub(crate) fn check_rows<B: Backend>(
    stream: &Stream<B>,
    operation: &'static str,
    shape: &[usize],
    counts: &[usize],
    size: usize,
) -> Result<usize> {
    if counts.len() != size {
        return Err(invalid(stream, operation, "there is not one number of rows for each rank"));
    }
    // Checked: the numbers are the user's.
    let sum = counts.iter().try_fold(0_usize, |sum, count| sum.checked_add(*count));
    match (shape, sum) {
        ([first, rest @ ..], Some(sum)) if sum == *first => Ok(rest.iter().product()),
        _ => Err(invalid(
            stream,
            operation,
            "the numbers of rows do not add up to the length of the first axis",
        )),
    }
}

fn mismatch<B: Backend>(
    stream: &Stream<B>,
    operation: &'static str,
    found: &[usize],
    expected: Vec<usize>,
) -> gpumem_core::Error {
    stream
        .timeline_by(crate::KEY)
        .context
        .error(operation, LayoutError::ShapeMismatch { found: found.to_vec(), expected })
}
