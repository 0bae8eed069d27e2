//! Copies over page-locked memory that was locked in several pieces.
//!
//! Arrays that are neighbours share pages, and a page is locked once, by the first of them. The next one lies on pages of
//! several driver calls then, and a driver refuses a copy that runs from one into the other (CUDA: invalid value).

use gpumem_core::{CopyRegion, Endpoint};

/// The first cut strictly inside one side of the region, as bytes from its start.
fn crossing(region: &CopyRegion, side: &Endpoint, boundaries: &[u64]) -> Option<u64> {
    let (start, end) = (side.address, side.address + region.extent(side)? as u64);
    boundaries.iter().find(|cut| start < **cut && **cut < end).map(|cut| cut - start)
}

/// Calls `copy` with parts of the region that cross no cut, few calls: halves are halved again only where a cut is.
pub fn split_at_boundaries<E>(
    region: &CopyRegion,
    boundaries: &[u64],
    copy: &mut impl FnMut(&CopyRegion) -> Result<(), E>,
) -> Result<(), E> {
    let inside = crossing(region, &region.source, boundaries)
        .or_else(|| crossing(region, &region.destination, boundaries));
    let Some(inside) = inside else { return copy(region) };
    let (mut first, mut second) = (*region, *region);
    let ahead = |side: &mut Endpoint, bytes: usize| side.address += bytes as u64;
    if region.slices > 1 {
        first.slices = region.slices / 2;
        second.slices = region.slices - first.slices;
        ahead(&mut second.source, first.slices * region.source.pitch[1]);
        ahead(&mut second.destination, first.slices * region.destination.pitch[1]);
    } else if region.rows > 1 {
        first.rows = region.rows / 2;
        second.rows = region.rows - first.rows;
        ahead(&mut second.source, first.rows * region.source.pitch[0]);
        ahead(&mut second.destination, first.rows * region.destination.pitch[0]);
    } else {
        first.bytes = inside as usize;
        second.bytes = region.bytes - first.bytes;
        ahead(&mut second.source, first.bytes);
        ahead(&mut second.destination, first.bytes);
    }
    split_at_boundaries(&first, boundaries, copy)?;
    split_at_boundaries(&second, boundaries, copy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_core::Space;
    use std::{collections::BTreeSet, convert::Infallible};

    #[test]
    fn parts_cross_no_cut_and_cover_the_region() {
        let end = |address, pitch| Endpoint { address, space: Space::Host, pitch };
        let region = CopyRegion {
            source: end(1000, [20, 200]),
            destination: end(50_000, [10, 90]),
            bytes: 10,
            rows: 9,
            slices: 7,
        };
        let bytes = |region: &CopyRegion| {
            let mut bytes = BTreeSet::new();
            for (slice, row) in
                (0..region.slices).flat_map(|slice| (0..region.rows).map(move |row| (slice, row)))
            {
                let at = |end: &Endpoint| end.address + (slice * end.pitch[1] + row * end.pitch[0]) as u64;
                bytes.extend(
                    (0..region.bytes as u64).map(|b| (at(&region.source) + b, at(&region.destination) + b)),
                );
            }
            bytes
        };
        for boundaries in [vec![], vec![1003], vec![1000, 1200, 1405, 1999], vec![50_001, 50_300, 1600]] {
            let (mut all, mut calls) = (BTreeSet::new(), 0);
            split_at_boundaries(&region, &boundaries, &mut |part| {
                calls += 1;
                for cut in &boundaries {
                    let sides = [&part.source, &part.destination];
                    assert!(sides.iter().all(|side| *cut <= side.address
                        || *cut >= side.address + part.extent(side).unwrap() as u64));
                }
                all.extend(bytes(part));
                Ok::<_, Infallible>(())
            })
            .unwrap();
            assert_eq!(all, bytes(&region));
            assert!(calls <= 1 + 12 * boundaries.len());
        }
    }
}
