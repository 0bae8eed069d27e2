//! Constant arrays in a module's constant memory.

use super::tools::{load, same};
use crate::{Lab, Level, Verdict, refused, refused_layout};
use gpumem_core::{Backend, Error, ErrorKind, LayoutError, NotRecorded};
use gpumem_kernel::{ConstantArray, In, Kernel, KernelDef, Out, ViewMut, WorkItemIds, config_for_items};
use ndarray::{Array1, Array2, Array3, ArrayView2, s};

cases! { Level::Kernel;
    constant_arrays_of_any_layout,
    empty_constant_arrays_are_allowed,
    constants_are_written_in_stream_order,
    more_than_there_is_is_refused,
    several_constants_lie_side_by_side,
    constants_are_not_recorded,
}

type Look = (ConstantArray<u32, 2>, ViewMut<u32, 2>);

/// `y = constants`, element by element.
fn look<B: Backend>(lab: &Lab<B>) -> Verdict<Kernel<Look, B>> {
    // SAFETY: each work-item writes its own element.
    let declaration = unsafe { KernelDef::<Look>::new("look") }
        .source(
            "using namespace gpumem;
            GPUMEM_KERNEL look(constant_array<u32, 2> constants, view<u32, 2> y) {
                u64 row = global_id(1), column = global_id(0);
                if (row < constants.extent(0) && column < constants.extent(1))
                    y(row, column) = constants(row, column);
            }",
        )
        .host_loop(|ids: &WorkItemIds<'_>, (constants, y): &Look| {
            let at = [ids.global_id(1), ids.global_id(0)];
            if at[0] < constants.extent(0) && at[1] < constants.extent(1) {
                y.set(at, constants.get(at));
            }
        });
    load(lab, &declaration)
}

fn seen<B: Backend>(
    lab: &Lab<B>,
    kernel: &Kernel<Look, B>,
    constants: ArrayView2<'_, u32>,
) -> Verdict<Array2<u32>> {
    let (rows, columns) = constants.dim();
    let mut y = Array2::from_elem((rows, columns), 9);
    let dims = config_for_items([columns, rows, 1], [16, 16, 1]);
    kernel.launch(&lab.device().stream()?, &dims, (In(constants), Out(&mut y)))?;
    Ok(y)
}

fn table(rows: usize, columns: usize, first: u32) -> Array2<u32> {
    Array2::from_shape_fn((rows, columns), |(y, x)| first + (y * 1000 + x) as u32)
}

fn constant_arrays_of_any_layout<B: Backend>(lab: &Lab<B>) -> Verdict {
    let kernel = look(lab)?;
    let c = table(40, 60, 1);
    let f = table(60, 40, 2).reversed_axes();
    for view in [
        c.view(),
        f.view(),
        c.slice(s![..;-3, 1..;2]),
        f.slice(s![2..;5, ..;-1]),
        c.slice(s![7..8, 9..10]),
        c.slice(s![..1, ..]),
    ] {
        same(seen(lab, &kernel, view)?.view(), view);
    }
    // Of the library's own memory, and of the device's.
    let on_device = lab.device().to_device(&c)?;
    let mut y = Array2::zeros((40, 60));
    let (stream, dims) = (lab.device().stream()?, config_for_items([60, 40, 1], [16, 16, 1]));
    kernel.launch(&stream, &dims, (In(&on_device), Out(&mut y)))?;
    same(y.view(), c.view());
    Ok(())
}

fn empty_constant_arrays_are_allowed<B: Backend>(lab: &Lab<B>) -> Verdict {
    let kernel = look(lab)?;
    let mut y = table(3, 3, 50);
    for empty in [Array2::<u32>::zeros((0, 3)), Array2::zeros((3, 0))] {
        let dims = config_for_items([3, 3, 1], [16, 16, 1]);
        let mut on_device = lab.device().to_device(&y)?;
        kernel.launch(&lab.device().stream()?, &dims, (In(&empty), &mut on_device))?;
        y = on_device.copy_to_host()?;
        same(y.view(), table(3, 3, 50).view());
    }
    Ok(())
}

fn constants_are_written_in_stream_order<B: Backend>(lab: &Lab<B>) -> Verdict {
    let kernel = look(lab)?;
    let (first, second) = (lab.device().stream()?, lab.device().stream()?);
    let dims = config_for_items([60, 40, 1], [16, 16, 1]);
    let mut found = Vec::new();
    // Each launch sees its own, whatever the other stream is about, and without anybody waiting.
    lab.delay(&first)?;
    for (round, stream) in [&first, &second, &first, &first, &second].into_iter().enumerate() {
        let constants = table(40, 60, round as u32 / 2 * 10);
        let mut y = stream.device_array::<u32, _>((40, 60))?;
        kernel.launch(stream, &dims, (In(&constants), &mut y))?;
        found.push((constants, y));
    }
    for (constants, y) in found {
        same(y.copy_to_host()?.view(), constants.view());
    }
    // Nor does one thread see the constants of another.
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3u32)
            .map(|thread| {
                let (kernel, device, dims) = (&kernel, lab.device(), &dims);
                scope.spawn(move || -> gpumem_core::Result<()> {
                    let stream = device.stream()?;
                    for round in 0..10 {
                        let constants = table(40, 60, thread * 100 + round / 2);
                        let mut y = Array2::zeros((40, 60));
                        kernel.launch(&stream, dims, (In(&constants), Out(&mut y)))?;
                        assert_eq!(y, constants);
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => Ok(result?),
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

fn more_than_there_is_is_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let kernel = look(lab)?;
    // All that a module has everywhere: 64 KiB.
    let all = table(128, 128, 3);
    same(seen(lab, &kernel, all.view())?.view(), all.view());
    let more = table(129, 128, 3);
    let refusal = |kind: &ErrorKind| {
        matches!(kind, ErrorKind::OutOfMemory { requested: 66_048, kind: "constant", total: 65_536, .. })
    };
    let mut y = Array2::zeros((129, 128));
    let (stream, dims) = (lab.device().stream()?, config_for_items([128, 129, 1], [16, 16, 1]));
    refused(kernel.launch(&stream, &dims, (In(&more), Out(&mut y))), refusal)?;
    let flat = Array1::<u32>::zeros(4);
    refused_layout(kernel.launch(&stream, &dims, (In(&flat), Out(&mut y))), |error| {
        matches!(error, LayoutError::RankMismatch { found: 1, expected: 2 })
    })?;
    same(seen(lab, &kernel, all.view())?.view(), all.view());
    Ok(())
}

type Mixed = (ConstantArray<u8, 1>, ConstantArray<f64, 3>, ConstantArray<i16, 0>, ViewMut<f64, 1>);

fn several_constants_lie_side_by_side<B: Backend>(lab: &Lab<B>) -> Verdict {
    // SAFETY: each work-item writes its own element.
    let declaration = unsafe { KernelDef::<Mixed>::new("mixed") }
        .source(
            "using namespace gpumem;
            GPUMEM_KERNEL mixed(constant_array<u8, 1> a, constant_array<double, 3> b, constant_array<i16, 0> c,
                                view<double, 1> y) {
                u64 i = global_id(0);
                if (i < y.extent(0)) y(i) = a(i) * 1000.0 + b(i % 2, i % 3, i % 5) + c();
            }",
        )
        .host_loop(|ids: &WorkItemIds<'_>, (a, b, c, y): &Mixed| {
            let i = ids.global_id(0);
            if i < y.extent(0) {
                y.set(i, f64::from(a.get(i)) * 1000.0 + b.get([i % 2, i % 3, i % 5]) + f64::from(c.get([])));
            }
        })
        .constant_bytes(4096);
    let kernel = load(lab, &declaration)?;
    let a = Array1::from_iter((0..77u8).map(|i| i.wrapping_mul(5)));
    let b = Array3::from_shape_fn((2, 3, 5), |(i, j, k)| (i * 100 + j * 10 + k) as f64);
    let c = ndarray::arr0(-7i16);
    let mut y = Array1::zeros(77);
    let (stream, dims) = (lab.device().stream()?, config_for_items([77, 1, 1], [32, 1, 1]));
    for turned in [b.clone(), {
        let mut f = Array3::zeros(ndarray::ShapeBuilder::f((2, 3, 5)));
        f.assign(&b);
        f
    }] {
        kernel.launch(&stream, &dims, (In(&a), In(&turned), In(&c), Out(&mut y)))?;
        let expected =
            Array1::from_shape_fn(77, |i| f64::from(a[i]) * 1000.0 + b[[i % 2, i % 3, i % 5]] - 7.0);
        same(y.view(), expected.view());
    }
    let many = Array1::<u8>::zeros(4000);
    refused(kernel.launch(&stream, &dims, (In(&many), In(&b), In(&c), Out(&mut y))), |kind| {
        matches!(kind, ErrorKind::OutOfMemory { kind: "constant", total: 4096, free: 96, .. })
    })
}

fn constants_are_not_recorded<B: Backend>(lab: &Lab<B>) -> Verdict {
    let kernel = look(lab)?;
    let (stream, dims) = (lab.device().stream()?, config_for_items([3, 3, 1], [16, 16, 1]));
    let (constants, empty) = (table(3, 3, 1), Array2::<u32>::zeros((0, 3)));
    let mut y = lab.device().to_device(&table(3, 3, 50))?;
    let is_refused =
        |kind: &ErrorKind| *kind == ErrorKind::NotRecordable { what: NotRecorded::ConstantArray };
    let mut verdict = Ok(());
    let graph = lab.device().record((&mut y,), |inside, (mut y,)| {
        for constants in [&constants, &empty] {
            let launched = kernel.launch(inside, &dims, (In(constants), &mut y));
            assert_eq!(launched.as_ref().err().and_then(Error::argument), Some(1));
            verdict = std::mem::replace(&mut verdict, Ok(())).and(refused(launched, is_refused));
        }
        Ok(())
    })?;
    verdict?;
    // Nothing of it was recorded.
    assert_eq!(graph.report(), Default::default());
    graph.launch(&stream, (&mut y,))?;
    same(y.copy_to_host()?.view(), table(3, 3, 50).view());
    // Nor did it change what later launches find there.
    same(seen(lab, &kernel, constants.view())?.view(), constants.view());
    Ok(())
}
