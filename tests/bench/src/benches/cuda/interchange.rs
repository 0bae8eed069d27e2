//! Imports and loans, with streams that the driver has made for another library.

use super::{
    device,
    ordering::{as_found, named},
    raw::Context,
};
use crate::{
    Bench, Routine,
    benches::interchange::{Parts, of},
};
use anyhow::Result;
use gpumem_core::RawStream;
use gpumem_cuda::Cuda;
use gpumem_runtime::InterchangeStream;
use std::rc::Rc;

pub(super) fn all() -> Vec<Bench> {
    [false, true].into_iter().flat_map(rows).collect()
}

fn rows(current: bool) -> Vec<Bench> {
    let reference = "cuEventRecord, cuStreamWaitEvent";
    of::<Cuda>("cuda/interchange", &named("", current), reference, Rc::new(move || parts(current)))
}

fn parts(current: bool) -> Result<Parts<Cuda>> {
    let device = device()?;
    let context = Context::of(&device);
    let (foreign, one, other) = (context.stream()?, context.stream()?, context.stream()?);
    let (event, of_edge) = (context.event()?, context.clone());
    let handle = InterchangeStream::Handle(RawStream(foreign.raw.expose_provenance() as u64));
    let edge = Routine::clocked(move |calls| {
        of_edge.within(|| {
            let enqueue = || {
                one.record(&event)?;
                other.wait(&event)
            };
            super::ordering::batches(calls, enqueue, || other.synchronize())
        })
    });
    let around = Box::new(move |body: &mut dyn FnMut() -> _| as_found(&context, current, body));
    Ok(Parts { device, foreign: (handle, foreign), edge, around })
}
