//! Every answer that NumPy gave to `data/numpy_layouts.py`, asked again here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use gpumem_core::LayoutError;
use gpumem_layout::layout::{Layout, Order};
use serde::Deserialize;

/// Shape and strides of a view, or nothing where NumPy refuses.
type View = Option<(Vec<usize>, Vec<isize>)>;

#[derive(Deserialize)]
struct Case {
    shape: Vec<usize>,
    strides: Vec<isize>,
    item: usize,
    c: bool,
    f: bool,
    like: Vec<isize>,
    extent: [isize; 2],
    reshape: Vec<(Vec<isize>, char, Option<Vec<isize>>)>,
    view: Vec<(usize, View)>,
}

fn cases() -> Vec<Case> {
    let cases: Vec<Case> = serde_json::from_str(include_str!("data/numpy_layouts.json")).unwrap();
    assert!(cases.len() > 250, "the table has only {} cases", cases.len());
    cases
}

fn layout(case: &Case) -> Layout {
    Layout::strided(&case.shape, &case.strides, case.item).unwrap()
}

/// The strides that mean something: those of axes longer than 1 in an array with elements.
fn meaningful(shape: &[usize], strides: &[isize]) -> Vec<(usize, isize)> {
    let empty = shape.contains(&0);
    let keep = |&(axis, _): &(usize, isize)| shape[axis] > 1 && !empty;
    strides.iter().copied().enumerate().filter(keep).collect()
}

#[test]
fn contiguity_is_numpys() {
    for case in cases() {
        let layout = layout(&case);
        let found = (layout.is_c_contiguous(), layout.is_f_contiguous());
        assert_eq!(found, (case.c, case.f), "{layout:?}");
    }
}

#[test]
fn like_is_numpys_empty_like() {
    for case in cases() {
        let layout = layout(&case);
        let like = layout.like();
        assert_eq!(like.shape(), layout.shape());
        // NumPy gives arrays without elements strides of 0; elsewhere even unit axes agree.
        if !layout.is_empty() {
            assert_eq!(like.strides(), case.like, "{layout:?}");
        }
        assert_eq!((like.offset(), like.extent()), (0, 0..like.packed_bytes()), "{layout:?}");
    }
}

#[test]
fn extents_are_numpys() {
    for case in cases() {
        let layout = layout(&case);
        let extent = layout.extent();
        let relative = [extent.start, extent.end].map(|byte| byte as isize - layout.offset() as isize);
        assert_eq!(relative, case.extent, "{layout:?}");
        assert_eq!(extent.start, 0);
    }
}

#[test]
fn a_reshape_is_a_view_exactly_where_numpys_is() {
    let (mut views, mut copies) = (0, 0);
    for case in cases() {
        let layout = layout(&case);
        for (shape, order, expected) in &case.reshape {
            let order = if *order == 'C' { Order::C } else { Order::F };
            let found = layout.reshape(shape, order);
            match (&found, expected) {
                (Ok(view), Some(strides)) => {
                    let shape: Vec<_> = shape.iter().map(|&length| length as usize).collect();
                    assert_eq!(view.shape(), shape);
                    assert_eq!(
                        meaningful(&shape, view.strides()),
                        meaningful(&shape, strides),
                        "{layout:?} to {shape:?} in {order:?}"
                    );
                    assert_eq!(view.offset(), layout.offset());
                    views += 1;
                }
                (Err(LayoutError::NeedsCopy { .. }), None) => copies += 1,
                _ => panic!("{layout:?} to {shape:?} in {order:?}: {found:?}, NumPy has {expected:?}"),
            }
        }
    }
    assert!(views > 500 && copies > 500, "{views} views and {copies} copies are no test");
}

#[test]
fn reinterpreting_follows_numpys_view() {
    for case in cases() {
        let layout = layout(&case);
        for (item, expected) in &case.view {
            let found = layout.reinterpret(*item);
            match (&found, expected) {
                (Ok(view), Some((shape, strides))) => {
                    assert_eq!((view.shape(), view.item()), (&shape[..], *item), "{layout:?}");
                    assert_eq!(meaningful(shape, view.strides()), meaningful(shape, strides), "{layout:?}");
                    assert_eq!(view.extent(), layout.extent());
                }
                (Err(_), None) => {}
                _ => panic!("{layout:?} as {item} bytes: {found:?}, NumPy has {expected:?}"),
            }
        }
    }
}
