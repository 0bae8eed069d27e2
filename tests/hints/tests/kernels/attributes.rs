//! rustc never sees attributes inside of a kernel, so one that decides what there is would decide nothing.

use gpumem::kernel::prelude::*;

#[gpumem::kernel]
fn conditional(y: Own<u32>, #[cfg(any())] n: u32) {
    #[allow(unused_variables)]
    let a = 1;
    #[cfg(any())]
    let a = 2;
    #[cfg(any())]
    {
        y[own()] = 3;
    }
    y[own()] = match a {
        #[cfg(any())]
        1 => 7,
        _ => 0,
    };
    assert!(match a {
        #[cfg(any())]
        1 => false,
        _ => true,
    });
}

#[gpumem::device]
fn function(x: u32) -> u32 {
    #[cfg_attr(all(), cfg(any()))]
    return 1;
    x
}

/// Another macro below would change what the host runs.
#[gpumem::device]
#[cfg_attr(all(), inline, test)]
#[test]
fn changed(x: u32) -> u32 {
    x
}

/// What changes nothing may stand there.
#[gpumem::device]
#[inline]
#[must_use]
#[cfg(all())]
#[allow(clippy::identity_op)]
#[cfg_attr(all(), doc = "Adds nothing.", cold)]
fn plain(x: u32) -> u32 {
    x + 0
}

fn main() {}
