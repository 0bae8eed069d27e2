//! Copies between any two layouts, by kernels.

use super::{
    fixture::{Lab, Skip, allocate, download, release, upload},
    simulator::counter,
};
use gpumem_core::{DeviceBuffer, DriverDevice, MemoryKind, Space, Stream, StridedCopy};
use gpumem_layout::pack::Lowered;

/// An address on each side, and each axis: its length and the strides in elements.
type Layouts<'a> = ((usize, usize), &'a [(usize, isize, isize)]);

/// Elements of `item` bytes of two blocks of `count` elements, the expected bytes beside those that arrive.
fn strided(lab: &Lab, item: usize, count: usize, ((from, to), axes): Layouts<'_>) {
    let own = Space::Device(0);
    let bytes = count * item;
    let (one, two) = (allocate(lab, bytes, MemoryKind::Device), allocate(lab, bytes, MemoryKind::Device));
    let source: Vec<u8> = (0..bytes).map(|at| (at * 7 + at / 256) as u8).collect();
    let mut expected = vec![0xEE_u8; bytes];
    upload(lab, one.address(), &source);
    upload(lab, two.address(), &expected);
    let mut places = vec![(from as isize, to as isize)];
    for &(len, src, dst) in axes {
        let steps = |(from, to): (isize, isize)| {
            (0..len as isize).map(move |step| (from + step * src, to + step * dst))
        };
        places = places.into_iter().flat_map(steps).collect();
    }
    for (from, to) in places {
        let (from, to) = (from as usize * item, to as usize * item);
        expected[to..to + item].copy_from_slice(&source[from..from + item]);
    }
    let scaled = |&(len, src, dst): &(usize, isize, isize)| (len, src * item as isize, dst * item as isize);
    let copy = StridedCopy {
        source: (one.address() + (from * item) as u64, own),
        destination: (two.address() + (to * item) as u64, own),
        item,
        axes: axes.iter().map(scaled).collect(),
    };
    let launches = counter(c"layout_dispatches");
    // SAFETY: both sides lie in their blocks, which are two and are waited for.
    unsafe { lab.stream.copy_strided(&copy) }.unwrap();
    lab.stream.synchronize().unwrap();
    if let (Some(before), Some(after)) = (launches, counter(c"layout_dispatches")) {
        let mut wanted = 0;
        let _ = Lowered::new(&copy).unwrap().each(|_| {
            wanted += 1;
            Ok::<_, ()>(())
        });
        assert_eq!(after - before, wanted, "by kernels: {copy:?}");
    }
    assert!(download(lab, two.address(), bytes) == expected, "{copy:?}");
    release(lab, one);
    release(lab, two);
}

/// Every kernel there is, but those for more than 2³¹ units.
pub(super) fn any_two_layouts_are_copied_by_kernels(lab: &Lab) -> Result<(), Skip> {
    if !lab.device.capabilities().strided_copy {
        return Err("there is no hipRTC for this device");
    }
    for item in [1, 2, 4, 8, 16, 3, 12] {
        // Every second element, backwards.
        strided(lab, item, 600, ((598, 1), &[(299, -2, 1)]));
        // A transpose with edges, and with an axis around it.
        strided(lab, item, 2 * 70 * 90, ((0, 0), &[(2, 6300, 6300), (70, 90, 1), (90, 1, 70)]));
        // A row everywhere.
        strided(lab, item, 400, ((5, 0), &[(10, 0, 40), (20, 1, 2)]));
    }
    // More axes than a kernel has: two of ten are loops around four launches.
    let many: Vec<_> = (0..10).map(|axis| (2, 2_isize << (9 - axis), 1_isize << axis)).collect();
    strided(lab, 4, 2048, ((0, 0), &many));
    Ok(())
}
