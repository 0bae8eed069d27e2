//! Small kernels that use every function that device code of the project can call: executed on every architecture, with
//! its wave size, and compared with the host's results.

mod memory;
mod numbers;
mod places;
mod source;
mod waves;

use super::{
    object::{Object, compile},
    rig::{Arguments, NODE, Shape, architectures, launch},
};
use crate::isa::{Failure, stop::Stop};
use gpumem_kernel_suite::kernel::PRELUDE;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, LazyLock},
};

/// The group that most probes run in: its last wave is not full, whatever the size of waves is.
const GROUP: [u32; 3] = [5, 3, 7];
/// Work-items of that group.
const ITEMS: usize = 105;
/// Bytes of constant memory.
const CONSTANT_BYTES: u32 = 256;

/// The text for a compiler: the prelude for waves of that size, and the probes.
fn text(prelude: &str, wave: u32, bounds: bool) -> String {
    format!(
        "#define GPUMEM_WAVE {wave}\n#define GPUMEM_BOUNDS {}\n#define GPUMEM_CONSTANT_BYTES {CONSTANT_BYTES}\n\
         {prelude}\n{}",
        u8::from(bounds),
        source::SOURCE
    )
}

/// The machine code of the probes. `None`, with the reason said, where AMD's compiler is missing.
pub(super) fn code(isa: &'static str, wave: u32, bounds: bool) -> Option<Arc<Vec<u8>>> {
    type Codes = HashMap<(&'static str, bool), Option<Arc<Vec<u8>>>>;
    static CODES: LazyLock<Mutex<Codes>> = LazyLock::new(Mutex::default);
    let mut codes = CODES.lock();
    let code = codes.entry((isa, bounds)).or_insert_with(|| compiled(&text(PRELUDE, wave, bounds), isa));
    code.clone()
}

/// Compiles as the library does.
fn compiled(text: &str, isa: &str) -> Option<Arc<Vec<u8>>> {
    compile(text, isa, &["-ffp-contract=off"]).map(Arc::new)
}

/// The probes for one architecture, in memory of the simulated GPU.
struct Probes {
    isa: &'static str,
    version: (u32, u32, u32),
    /// Work-items of a wave.
    wave: usize,
    object: Object,
}

/// Makes a check on every architecture.
fn each(bounds: bool, check: impl Fn(&Probes) -> Result<(), String>) {
    for (isa, version, wave) in architectures() {
        let Some(code) = code(isa, wave, bounds) else { return };
        let probes = Probes { isa, version, wave: wave as usize, object: Object::load(NODE, &code) };
        if let Err(wrong) = check(&probes) {
            panic!("{isa}, {wrong}");
        }
    }
}

impl Probes {
    /// Runs a probe in one group of [`GROUP`].
    fn group(&self, name: &str, arguments: Arguments) -> Result<(), String> {
        self.run(name, &Shape { group: GROUP, ..Shape::line(1, 1) }, arguments)
    }

    fn run(&self, name: &str, shape: &Shape, arguments: Arguments) -> Result<(), String> {
        match self.launch(name, shape, arguments) {
            Ok(()) => Ok(()),
            Err(stop) => Err(format!("{name}: {stop}")),
        }
    }

    /// Runs a probe to its end, or to where it stops.
    fn launch(&self, name: &str, shape: &Shape, arguments: Arguments) -> Result<(), Box<Stop>> {
        match launch(&self.object, self.version, name, shape, arguments) {
            Ok(_) => Ok(()),
            Err(Failure::Stop(stop)) => Err(stop),
            Err(failure) => panic!("{}, {name}: {failure:?}", self.isa),
        }
    }

    /// The waves of [`GROUP`]: the first work-item and how many there are.
    fn waves(&self) -> impl Iterator<Item = (usize, usize)> {
        let size = self.wave;
        (0..ITEMS).step_by(size).map(move |first| (first, size.min(ITEMS - first)))
    }
}

/// Compares a probe's output with the expected one, bit by bit.
fn compare<T: bytemuck::Pod + fmt::Debug>(name: &str, found: &[T], expected: &[T]) -> Result<(), String> {
    assert_eq!(found.len(), expected.len(), "{name}");
    let mut pairs = found.iter().zip(expected).enumerate();
    match pairs.find(|(_, (found, expected))| bytemuck::bytes_of(*found) != bytemuck::bytes_of(*expected)) {
        None => Ok(()),
        Some((index, (found, expected))) => {
            Err(format!("{name}: element {index} is {found:?} instead of {expected:?}"))
        }
    }
}
