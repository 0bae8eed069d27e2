//! Bytes that failed work was to write cannot be read or used until they are written anew.

use super::tools::{fail, load};
use crate::{Lab, Level, Stop, Verdict, refused, skip};
use gpumem_core::{Attach, Backend, Error, ErrorKind, MappedOptions, Result};
use gpumem_kernel::{In, InOut, Kernel, KernelDef, Out, Slice, SliceMut, WorkItemIds, config_for_items};
use gpumem_runtime::{Device, DeviceArray, RawAccess, Stream};
use ndarray::{Array1, Ix1, s};

cases! { Level::Failures;
    no_way_of_reading_shows_it,
    it_is_known_before_the_failure_is,
    nothing_is_launched_on_it,
    no_other_array_is_given_it,
    what_is_built_on_it_fails_too,
    bytes_that_are_written_anew_are_read,
    memory_that_is_lent_again_is_clean,
    memory_of_the_host_is_not_shown,
    memory_of_the_caller_goes_back_with_an_error,
    a_dropped_array_does_not_take_it_along,
    another_device_does_not_get_it,
    other_work_of_its_stream_goes_on,
    work_beside_it_goes_on,
}

const LEN: usize = 8;

type Scale = (Slice<f32>, SliceMut<f32>);

/// Kernels and streams of a case.
struct Bench<'a, B: Backend> {
    lab: &'a Lab<B>,
    device: &'a Device<B>,
    /// Writes some elements of its argument, and fails.
    bad: Kernel<(SliceMut<f32>,), B>,
    /// Writes every element.
    good: Kernel<(SliceMut<f32>,), B>,
    /// `y = 2 * x`.
    scale: Kernel<Scale, B>,
    one: Stream<B>,
    two: Stream<B>,
}

impl<'a, B: Backend> Bench<'a, B> {
    fn new(lab: &'a Lab<B>) -> Verdict<Self> {
        let device = lab.device();
        if !device.capabilities().survives_faults {
            return skip("a fault of a kernel loses the device");
        }
        type One = (SliceMut<f32>,);
        // SAFETY: there is no source.
        let (bad, good, scale) = unsafe {
            (
                KernelDef::<One>::new("bad").host_loop(|ids: &WorkItemIds<'_>, (y,): &One| {
                    if ids.global_id(0) == 5 {
                        y.get(1_000_000);
                    }
                    y.set(ids.global_id(0), 1.0);
                }),
                KernelDef::<One>::new("good")
                    .host_loop(|ids: &WorkItemIds<'_>, (y,): &One| y.set(ids.global_id(0), 7.0)),
                KernelDef::<Scale>::new("scale").host_loop(|ids: &WorkItemIds<'_>, (x, y): &Scale| {
                    y.set(ids.global_id(0), 2.0 * x.get(ids.global_id(0)));
                }),
            )
        };
        let (bad, good, scale) = (load(lab, &bad)?, load(lab, &good)?, load(lab, &scale)?);
        let (one, two) = (device.stream()?, device.stream()?);
        Ok(Self { lab, device, bad, good, scale, one, two })
    }

    /// An array whose writer fails on the first stream, a little later.
    fn broken(&self) -> Result<DeviceArray<f32, Ix1, B>> {
        let mut y = self.device.device_array::<f32, _>(LEN)?;
        self.break_it(&mut y)?;
        Ok(y)
    }

    fn break_it(&self, y: &mut DeviceArray<f32, Ix1, B>) -> Result<()> {
        self.lab.delay(&self.one)?;
        self.bad.launch(&self.one, &config_for_items([LEN, 1, 1], [8, 1, 1]), (y,))
    }

    /// As [`broken`](Self::broken), and everybody has been told.
    fn known(&self) -> Verdict<DeviceArray<f32, Ix1, B>> {
        let y = self.broken()?;
        told(self.one.synchronize())?;
        self.one.synchronize()?;
        Ok(y)
    }

    /// Hears of the failures of this case, so that no other case receives them.
    fn quiet(&self) {
        let _ = self.one.synchronize();
        let _ = self.two.synchronize();
        let _ = self.device.synchronize();
        let _ = self.device.take_errors();
    }
}

/// The error names the kernel that failed, and why.
#[track_caller]
fn told<T>(result: Result<T>) -> Verdict {
    let at = std::panic::Location::caller();
    match result {
        Ok(_) => fail(format!("memory that failed work was to write was used at line {}", at.line())),
        Err(error) => {
            let text = error.to_string();
            match text.contains("kernel \"bad\"") && text.contains("1000000") {
                true => Ok(()),
                false => fail(format!("{text:?} does not name the failure, at line {}", at.line())),
            }
        }
    }
}

/// As [`told`], and the error is that of the data.
#[track_caller]
fn poisoned<T>(result: Result<T>) -> Verdict {
    let is_poisoned = result.as_ref().err().is_some_and(Error::is_poisoned);
    told(result)?;
    if is_poisoned { Ok(()) } else { fail("the error is not that of the data") }
}

fn no_way_of_reading_shows_it<B: Backend>(lab: &Lab<B>) -> Verdict {
    let bench = Bench::new(lab)?;
    let Bench { device, two, .. } = &bench;
    let mut y = bench.known()?;
    let mut h = Array1::from_elem(LEN, -1.0f32);
    for _ in 0..3 {
        poisoned(y.copy_to_host())?;
        poisoned(y.copy_to_host_into(&mut h).map(drop))?;
        poisoned(y.get(0).map(drop))?;
        poisoned(y.slice(s![6..])?.copy_to_host())?;
        poisoned(y.slice(s![..;-3])?.copy_to_host())?;
        told(two.copy_to_host(&y).and_then(|pinned| pinned.view().map(drop)))?;
        told(two.scope(|scope| scope.copy_to_host(&y, &mut h)).and_then(|inner| inner))?;
        poisoned(device.to_device(&y).map(drop))?;
        two.synchronize()?;
    }
    assert_eq!(h.to_vec(), [-1.0; LEN], "nothing has landed");
    y.fill(3.0)?;
    assert_eq!(y.copy_to_host()?.to_vec(), [3.0; LEN]);
    bench.quiet();
    Ok(())
}

fn it_is_known_before_the_failure_is<B: Backend>(lab: &Lab<B>) -> Verdict {
    let bench = Bench::new(lab)?;
    let two = &bench.two;
    let mut h = Array1::from_elem(LEN, -1.0f32);
    let y = bench.broken()?;
    told(two.copy_to_host(&y).and_then(|pinned| pinned.view().map(drop)))?;
    bench.quiet();
    let y = bench.broken()?;
    told(two.scope(|scope| scope.copy_to_host(&y, &mut h)).and_then(|inner| inner))?;
    bench.quiet();
    let mut y = bench.broken()?;
    let launched = bench.good.launch(two, &config_for_items([LEN, 1, 1], [8, 1, 1]), (&mut y,));
    told(launched.and_then(|()| two.synchronize()))?;
    told(y.copy_to_host())?;
    bench.quiet();
    let y = bench.broken()?;
    told(y.copy_to_host())?;
    poisoned(y.copy_to_host())?;
    bench.quiet();
    let y = bench.broken()?;
    told(y.copy_to_host_into(&mut h).map(drop))?;
    told(y.get(0).map(drop))?;
    bench.quiet();
    let y = bench.broken()?;
    told(bench.device.to_device(&y).map(drop))?;
    bench.quiet();
    assert_eq!(h.to_vec(), [-1.0; LEN], "nothing has landed");
    Ok(())
}

fn nothing_is_launched_on_it<B: Backend>(lab: &Lab<B>) -> Verdict {
    let bench = Bench::new(lab)?;
    let Bench { device, two, good, scale, .. } = &bench;
    let dims = config_for_items([LEN, 1, 1], [8, 1, 1]);
    let mut y = bench.known()?;
    let mut out = device.device_array::<f32, _>(LEN)?;
    let mut host = Array1::from_elem(LEN, -1.0f32);
    poisoned(scale.launch(two, &dims, (&y, &mut out)))?;
    poisoned(scale.launch(two, &dims, (In(&y), &mut out)))?;
    poisoned(scale.launch(two, &dims, (&y, Out(&mut host))))?;
    poisoned(
        two.scope(|scope| scale.launch_in(scope, &dims, (In(&y), Out(&mut host)))).and_then(|inner| inner),
    )?;
    poisoned(good.launch(two, &dims, (&mut y,)))?;
    poisoned(good.launch(two, &dims, (InOut(&mut y),)))?;
    two.synchronize()?;
    assert_eq!(host.to_vec(), [-1.0; LEN]);
    assert_eq!(out.copy_to_host()?.to_vec(), [0.0; LEN], "nothing was launched");
    // A failed launch copies no results to its host array, and the next one does.
    told(bench.bad.launch(two, &dims, (InOut(&mut host),)))?;
    assert_eq!(host.to_vec(), [-1.0; LEN]);
    good.launch(two, &dims, (Out(&mut host),))?;
    assert_eq!(host.to_vec(), [7.0; LEN]);
    bench.quiet();
    Ok(())
}

fn no_other_array_is_given_it<B: Backend>(lab: &Lab<B>) -> Verdict {
    let bench = Bench::new(lab)?;
    let two = &bench.two;
    for is_known in [true, false] {
        let make = || if is_known { bench.known() } else { Ok(bench.broken()?) };
        told(make()?.lend(two).map(drop))?;
        told(make()?.lend_mut(two).map(drop))?;
        let y = make()?;
        match y.lend_to_host() {
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. }) => {}
            lent => told(lent.map(drop))?,
        }
        bench.quiet();
    }
    let mut y = bench.known()?;
    // SAFETY: nothing is enqueued.
    poisoned(unsafe { two.raw_scope(&[RawAccess::read(&y)], |_| ()) })?;
    // SAFETY: as above.
    poisoned(unsafe { two.raw_scope(&[RawAccess::write(&mut y)], |_| ()) })?;
    let mut shared = bench.device.ipc_array::<f32, _>(LEN)?;
    bench.break_it(&mut shared)?;
    // SAFETY: refused.
    told(unsafe { shared.ipc_handle() }.map(drop))?;
    // SAFETY: as above.
    poisoned(unsafe { shared.ipc_handle() }.map(drop))?;
    bench.quiet();
    Ok(())
}

fn what_is_built_on_it_fails_too<B: Backend>(lab: &Lab<B>) -> Verdict {
    let bench = Bench::new(lab)?;
    let Bench { device, two, scale, .. } = &bench;
    let dims = config_for_items([LEN, 1, 1], [8, 1, 1]);
    for is_known in [false, true] {
        let (mut copied, mut scaled) =
            (device.device_array::<f32, _>(LEN)?, device.device_array::<f32, _>(LEN)?);
        let three = device.stream()?;
        if is_known {
            let y = bench.known()?;
            poisoned(two.copy_to_device(&mut copied, &y).map(drop))?;
            assert_eq!(copied.copy_to_host()?.to_vec(), [0.0; LEN], "nothing was enqueued");
        } else {
            let y = bench.broken()?;
            let enqueued = two
                .copy_to_device(&mut copied, &y)
                .and_then(|()| scale.launch(&three, &dims, (&copied, &mut scaled)))
                .and_then(|()| two.copy_to_host(&scaled));
            // An eager schedule knows of the failure before the last of them is enqueued.
            let pinned = match enqueued {
                Err(error) => {
                    told::<()>(Err(error))?;
                    None
                }
                Ok(pinned) => Some(pinned),
            };
            if let Some(pinned) = pinned {
                told(pinned.view().map(drop))?;
                told(scaled.copy_to_host())?;
                told(copied.copy_to_host())?;
                drop(y);
                // Everybody has been told, and the array that failed is gone.
                bench.quiet();
                let _ = three.synchronize();
                poisoned(pinned.view().map(drop))?;
                poisoned(scaled.copy_to_host())?;
                poisoned(copied.copy_to_host())?;
            }
        }
        bench.quiet();
        let _ = three.synchronize();
    }
    Ok(())
}

fn bytes_that_are_written_anew_are_read<B: Backend>(lab: &Lab<B>) -> Verdict {
    let bench = Bench::new(lab)?;
    let Bench { device, two, .. } = &bench;
    let mut y = bench.known()?;
    two.fill(&mut y.slice_mut(s![2..4])?, 3.0)?;
    assert_eq!(y.slice(s![2..4])?.copy_to_host()?.to_vec(), [3.0; 2]);
    for rest in [0..2, 1..3, 3..5, 4..8, 0..8] {
        poisoned(y.slice(s![rest])?.copy_to_host())?;
    }
    // Every second element, and then the others.
    y.slice_mut(s![..;2])?.copy_to_device(&Array1::from_elem(4, 4.0f32))?;
    assert_eq!(y.get(0)?, 4.0);
    assert_eq!(y.get(6)?, 4.0);
    poisoned(y.get(1))?;
    poisoned(y.get(7))?;
    y.slice_mut(s![1..;2])?.fill(5.0)?;
    assert_eq!(y.copy_to_host()?.to_vec(), [4.0, 5.0, 4.0, 5.0, 4.0, 5.0, 4.0, 5.0]);
    // Single elements, from another array of the device, and by a kernel on the part that is whole.
    let mut y = bench.known()?;
    let source = device.to_device(&[1.0f32, 2.0, 3.0, 4.0])?;
    y.slice_mut(s![4..])?.copy_to_device(&source)?;
    y.set(0, 9.0)?;
    bench.good.launch(two, &config_for_items([4, 1, 1], [4, 1, 1]), (&mut y.slice_mut(s![4..])?,))?;
    assert_eq!(y.slice(s![4..])?.copy_to_host()?.to_vec(), [7.0; 4]);
    assert_eq!(y.get(0)?, 9.0);
    poisoned(y.get(3))?;
    // In stream order: work enqueued after the new elements sees them.
    let mut y = bench.broken()?;
    two.fill(&mut y, 6.0)?;
    assert_eq!(two.copy_to_host(&y)?.view()?.to_vec(), [6.0; LEN]);
    bench.quiet();
    Ok(())
}

fn memory_that_is_lent_again_is_clean<B: Backend>(lab: &Lab<B>) -> Verdict {
    let bench = Bench::new(lab)?;
    let dims = config_for_items([LEN, 1, 1], [8, 1, 1]);
    for is_known in [true, false] {
        for _ in 0..4 {
            // Dropped while the kernel is under way, or after everybody was told.
            drop(if is_known { bench.known()? } else { bench.broken()? });
            // SAFETY: the kernel writes every element before anything reads it.
            let mut again = unsafe { bench.device.uninit_array::<f32, _>(LEN)?.assume_init() };
            bench.good.launch(&bench.two, &dims, (&mut again,))?;
            assert_eq!(again.copy_to_host()?.to_vec(), [7.0; LEN]);
            bench.quiet();
        }
    }
    let y = bench.known()?;
    let address = y.address();
    std::mem::forget(y);
    lab.leaks(1);
    assert_ne!(bench.device.device_array::<f32, _>(LEN)?.address(), address);
    Ok(())
}

fn memory_of_the_host_is_not_shown<B: Backend>(lab: &Lab<B>) -> Verdict {
    let bench = Bench::new(lab)?;
    let Bench { device, two, bad, .. } = &bench;
    let dims = config_for_items([LEN, 1, 1], [8, 1, 1]);
    let y = bench.broken()?;
    match two.copy_to_host(&y) {
        Err(error) => told::<()>(Err(error))?,
        Ok(mut pinned) => {
            told(pinned.view().map(drop))?;
            poisoned(pinned.view().map(drop))?;
            poisoned(pinned.view_mut().map(drop))?;
            poisoned(device.to_device(&pinned).map(drop))?;
            pinned.copy_from(&Array1::from_elem(LEN, 2.0f32))?;
            assert_eq!(pinned.view()?.to_vec(), [2.0; LEN]);
        }
    }
    bench.quiet();
    let mut mapped = device.mapped_array::<f32, _>(LEN, MappedOptions::default())?;
    bad.launch(two, &dims, (&mut mapped.device_view_mut(),))?;
    told(mapped.view().map(drop))?;
    poisoned(mapped.view().map(drop))?;
    poisoned(mapped.view_mut().map(drop))?;
    poisoned(mapped.copy_to_host())?;
    poisoned(mapped.lend_to_host().map(drop))?;
    poisoned(device.to_device(&mapped).map(drop))?;
    mapped.copy_from(&Array1::from_elem(LEN, 2.0f32))?;
    assert_eq!(mapped.view()?.to_vec(), [2.0; LEN]);
    if device.capabilities().managed {
        let mut managed = device.managed_array::<f32, _>(LEN, Attach::Global)?;
        bad.launch(two, &dims, (&mut managed.device_view_mut(),))?;
        told(managed.view_mut().map(drop))?;
        poisoned(managed.view().map(drop))?;
    }
    bench.quiet();
    Ok(())
}

fn memory_of_the_caller_goes_back_with_an_error<B: Backend>(lab: &Lab<B>) -> Verdict {
    let bench = Bench::new(lab)?;
    let Bench { device, two, bad, .. } = &bench;
    let dims = config_for_items([LEN, 1, 1], [8, 1, 1]);
    let mut elements = Array1::from_elem(LEN, 0.0f32);
    let result = device.mapped([elements.view_mut()], |arrays| {
        bad.launch(two, &dims, (&mut arrays[0].device_view_mut(),))?;
        // An error that is ignored here is reported at the end.
        let _ = two.synchronize();
        Ok(())
    });
    poisoned(result.and_then(|inner| inner))?;
    let mut registered = device.register_mapped(elements)?;
    bad.launch(two, &dims, (&mut registered.device_view_mut(),))?;
    let _ = two.synchronize();
    for _ in 0..2 {
        registered = match registered.deregister() {
            Ok(_) => return fail("memory that failed work was to write was freed"),
            Err(refused) => {
                poisoned::<()>(Err(refused.error))?;
                refused.given
            }
        };
    }
    registered.copy_from(&Array1::from_elem(LEN, 2.0f32))?;
    assert_eq!(registered.deregister()?.to_vec(), [2.0; LEN]);
    bench.quiet();
    Ok(())
}

fn a_dropped_array_does_not_take_it_along<B: Backend>(lab: &Lab<B>) -> Verdict {
    let bench = Bench::new(lab)?;
    let Bench { device, one, two, .. } = &bench;
    for _ in 0..4 {
        let (y, mut copied) = (bench.broken()?, device.device_array::<f32, _>(LEN)?);
        two.copy_to_device(&mut copied, &y).or_else(|error| told::<()>(Err(error)).and(Ok::<_, Stop>(())))?;
        // The kernel may be over, and the copy not.
        let _ = one.query();
        drop(y);
        let _again = device.to_device(&[1.0f32; LEN])?;
        let read = copied.copy_to_host();
        if read.as_ref().map_or(true, |read| read.to_vec() != [0.0; LEN]) {
            told(read)?;
        }
        bench.quiet();
    }
    Ok(())
}

fn another_device_does_not_get_it<B: Backend>(lab: &Lab<B>) -> Verdict {
    let bench = Bench::new(lab)?;
    let second = lab.second()?;
    for is_known in [true, false] {
        let y = if is_known { bench.known()? } else { bench.broken()? };
        told(second.to_device(&y).map(drop))?;
        let (mut there, stream) = (second.device_array::<f32, _>(LEN)?, second.stream()?);
        let y = if is_known { y } else { bench.broken()? };
        let enqueued = stream.copy_to_device(&mut there, &y);
        if enqueued.is_err() || is_known {
            told(enqueued)?;
        } else {
            told(there.copy_to_host())?;
            let _ = stream.synchronize();
            let _ = second.synchronize();
            poisoned(there.copy_to_host())?;
            there.fill(1.0)?;
        }
        assert!(there.copy_to_host().is_ok());
        bench.quiet();
        let _ = second.synchronize();
        let _ = second.take_errors();
    }
    Ok(())
}

fn other_work_of_its_stream_goes_on<B: Backend>(lab: &Lab<B>) -> Verdict {
    let bench = Bench::new(lab)?;
    let Bench { device, scale, one, two, .. } = &bench;
    let dims = config_for_items([LEN, 1, 1], [8, 1, 1]);
    let mut other = device.to_device(&[1.0f32; LEN])?;
    let mut third = device.to_device(&[1.0f32; LEN])?;
    let before = one.record_event()?;
    let mut y = bench.broken()?;
    let behind = one.record_event()?;
    // These do not use the array, and are enqueued after the kernel. No read of them tells of it.
    one.fill(&mut other, 2.0)?;
    one.copy_to_device(&mut third, &[3.0f32; LEN])?;
    assert_eq!(other.copy_to_host()?.to_vec(), [2.0; LEN]);
    scale.launch(one, &dims, (&third, &mut other))?;
    assert_eq!(two.copy_to_host(&third)?.view()?.to_vec(), [3.0; LEN]);
    assert_eq!(one.copy_to_host(&other)?.view()?.to_vec(), [6.0; LEN]);
    let mut h = Array1::from_elem(LEN, -1.0f32);
    one.scope(|scope| scope.copy_to_host(&third, &mut h))??;
    assert_eq!(h.to_vec(), [3.0; LEN]);
    assert_eq!(one.device_array::<f32, _>(LEN)?.copy_to_host()?.to_vec(), [0.0; LEN]);
    // A fill on the same stream makes the array good, and a copy does.
    told(y.copy_to_host())?;
    one.fill(&mut y, 4.0)?;
    assert_eq!(y.copy_to_host()?.to_vec(), [4.0; LEN]);
    bench.break_it(&mut y)?;
    one.copy_to_device(&mut y, &[5.0f32; LEN])?;
    assert_eq!(y.copy_to_host()?.to_vec(), [5.0; LEN]);
    // The stream tells once, and an event behind the failure each time.
    for _ in 0..2 {
        told(behind.synchronize())?;
    }
    before.synchronize()?;
    told(one.synchronize())?;
    one.synchronize()?;
    told(behind.synchronize())?;
    one.record_event()?.synchronize()?;
    bench.quiet();
    Ok(())
}

fn work_beside_it_goes_on<B: Backend>(lab: &Lab<B>) -> Verdict {
    let bench = Bench::new(lab)?;
    let Bench { device, two, scale, .. } = &bench;
    let dims = config_for_items([LEN, 1, 1], [8, 1, 1]);
    let x = device.to_device(&[2.0f32; LEN])?;
    let mut z = device.device_array::<f32, _>(LEN)?;
    let y = bench.broken()?;
    for _ in 0..10 {
        scale.launch(two, &dims, (&x, &mut z))?;
        assert_eq!(z.copy_to_host()?.to_vec(), [4.0; LEN]);
        two.fill(&mut z, 0.0)?;
    }
    two.synchronize()?;
    refused(y.copy_to_host(), |kind| {
        matches!(kind, ErrorKind::AsynchronousFault { .. } | ErrorKind::Poisoned { .. })
    })?;
    told(one_or_data(&bench, &y))?;
    bench.quiet();
    Ok(())
}

/// The error of the stream, or of the data, even after an earlier report.
fn one_or_data<B: Backend>(bench: &Bench<'_, B>, y: &DeviceArray<f32, Ix1, B>) -> Result<()> {
    bench.one.synchronize()?;
    y.copy_to_host().map(drop)
}
