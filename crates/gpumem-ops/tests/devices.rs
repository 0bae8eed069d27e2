//! Operations on a stream of another device.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use gpumem_core::{ErrorKind, Result};
use gpumem_host::{Host, HostOptions};
use gpumem_ops::ArrayOps;
use gpumem_runtime::{Device, DeviceView};
use ndarray::{Ix1, s};

/// What the macro asks of `gpumem`.
mod facade {
    pub(crate) use gpumem_kernel as kernel;
}

#[gpumem_macros::device(crate = self::facade)]
fn half_of(x: f32) -> f32 {
    x * 0.5
}

#[gpumem_macros::device(crate = self::facade)]
fn product(x: f32, y: f32) -> f32 {
    x * y
}

/// Packed arrays, those with gaps, which an operation copies first, and empty ones.
#[test]
fn arrays_of_another_device_are_refused_whatever_their_layout() {
    let device = Device::<Host>::open("host").unwrap();
    let other = Device::<Host>::from_raw(Host::open_with(&HostOptions::new()).unwrap());
    let (near, stream) = (device.to_device(&[0.5_f32; 8]).unwrap(), device.stream().unwrap());
    let far = other.to_device(&[0.5_f32; 8]).unwrap();
    for part in [s![..], s![..;2], s![..;-1], s![..0]] {
        let (near, far) = (near.slice(part).unwrap(), far.slice(part).unwrap());
        let check = |name: &str, result: Result<()>| {
            let error = result.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::WrongDevice { .. }), "{name} of {part:?}: {error}");
        };
        let x: &DeviceView<'_, f32, Ix1, Host> = &far;
        check("sum", x.on(&stream).sum().map(drop));
        check("sum_axis", x.on(&stream).sum_axis(0).map(drop));
        check("scan", x.on(&stream).inclusive_scan(0).map(drop));
        check("sort", x.on(&stream).sort(0).map(drop));
        check("argsort", x.on(&stream).argsort(0).map(drop));
        check("cast", x.on(&stream).cast::<f64>().map(drop));
        check("map", x.on(&stream).map::<half_of>().map(drop));
        check("map_sum", x.on(&stream).map_sum::<half_of>().map(drop));
        check("zip_map", near.on(&stream).zip_map::<product, _>(x).map(drop));
        check("zip_map_sum", near.on(&stream).zip_map_sum::<product, _>(x).map(drop));
        if !near.is_empty() {
            check("max", x.on(&stream).max().map(drop));
            check("argmax", x.on(&stream).argmax().map(drop));
            check("mean", x.on(&stream).mean().map(drop));
        }
    }
}
