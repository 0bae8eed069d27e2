//! The index of a work-item's own element cannot be kept for another, whatever code of the user's a kernel runs.
#![deny(unsafe_code)]

use gpumem::kernel::prelude::*;
use std::{cell::Cell, sync::OnceLock};

static KEPT: OnceLock<OwnId<'static, 1>> = OnceLock::new();

thread_local! {
    static OF_THREAD: Cell<Option<OwnId<'static, 1>>> = const { Cell::new(None) };
}

trait Keep {
    fn recip(self) -> Self;
}

impl Keep for OwnId<'_, 1> {
    fn recip(self) -> Self {
        OF_THREAD.replace(Some(self)).unwrap_or(self)
    }
}

#[gpumem::kernel]
fn by_method(y: Own<u32>) {
    let other = own().recip();
    y[other] += 1;
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
struct Record {
    v: u32,
}

impl<'g> std::ops::Add<Record> for OwnId<'g, 1> {
    type Output = OwnId<'g, 1>;
    fn add(self, _: Record) -> OwnId<'g, 1> {
        OF_THREAD.replace(Some(self)).unwrap_or(self)
    }
}

#[gpumem::kernel]
fn by_operator(y: Own<u32>) {
    let at = own() + Record { v: 1u32 };
    y[at] += 1u32;
}

struct Path;

impl Path {
    fn from(at: OwnId<'_, 1>) -> OwnId<'_, 1> {
        OF_THREAD.replace(Some(at)).unwrap_or(at)
    }
}

#[gpumem::kernel]
fn by_path(y: Own<u32>) {
    let at = Path::from(own());
    y[at] += 1u32;
}

/// Code for an index of all time is not for that of a work-item.
trait Stash {
    fn trunc(self) -> Self;
}

impl Stash for OwnId<'static, 1> {
    fn trunc(self) -> Self {
        self
    }
}

#[gpumem::kernel]
fn of_all_time(y: Own<u32>) {
    let at = own().trunc();
    y[at] += 1;
}

/// A function of kernels that gives what device code takes for an index, by another's name.
#[gpumem::device]
fn shift(_at: [usize; 1]) -> [usize; 1] {
    [0]
}

#[derive(Clone, Copy)]
struct Named;

impl Named {
    fn __witness() -> fn(OwnId<'_, 1>) -> OwnId<'_, 1> {
        |at| at
    }
}

#[gpumem::kernel]
fn by_call(y: Own<u32>) {
    let at = Named(own());
    y[at] += 1;
}

fn main() {}
