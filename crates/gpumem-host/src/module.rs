//! Modules and kernels: functions of the host, by name.

use crate::engine::{Engine, Function, Launch, Work};
use crate::error::{error, invalid, unsupported};
use crate::{Device, Host};
use gpumem_core::{
    Capabilities, DriverModule, ErrorKind, KernelArguments, KernelSource, LaunchConfig, Result,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A set of host functions, by name.
#[derive(Debug, Clone)]
pub struct Module(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    functions: BTreeMap<String, Arc<Function>>,
    ordinal: usize,
    generation: u64,
}

/// A host function that a stream can run.
#[derive(Debug, Clone)]
pub struct Kernel {
    module: Module,
    function: Arc<Function>,
}

impl Module {
    pub(crate) fn new(device: &Device, source: &KernelSource) -> Result<Self> {
        let KernelSource::Host(list) = source else {
            return Err(unsupported("compile", "kernel sources other than functions of the host"));
        };
        let mut functions = BTreeMap::new();
        for (name, function) in list {
            let function = Arc::new(Function { name: name.clone(), body: function.clone() });
            if functions.insert(name.clone(), function).is_some() {
                let log = format!("two functions are called {name:?}");
                return Err(error("compile", ErrorKind::Build { log }));
            }
        }
        let engine = device.engine();
        engine.counters().modules.up();
        let (ordinal, generation) = (engine.ordinal(), engine.generation());
        Ok(Self(Arc::new(Inner { functions, ordinal, generation })))
    }
}

// SAFETY: there are no variables.
unsafe impl DriverModule<Host> for Module {
    fn kernel(&self, name: &str) -> Result<Kernel> {
        match self.0.functions.get(name) {
            Some(function) => Ok(Kernel { module: self.clone(), function: function.clone() }),
            None => Err(error("kernel", ErrorKind::NoSuchKernel { name: name.to_owned() })),
        }
    }
}

impl Kernel {
    /// A launch on a device.
    pub(crate) fn work(
        &self,
        engine: &Engine,
        capabilities: &Capabilities,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<Work> {
        let module = &self.module.0;
        if module.ordinal != engine.ordinal() {
            let (has, wants) = (format!("host:{}", module.ordinal), format!("host:{}", engine.ordinal()));
            return Err(error("launch", ErrorKind::WrongDevice { what: "kernel", has, wants }));
        }
        if module.generation != engine.generation() {
            return Err(error("launch", ErrorKind::Stale { what: "kernel" }));
        }
        dims.check(capabilities, u32::MAX, 0).map_err(|why| invalid("launch", why))?;
        let (function, arguments) = (self.function.clone(), arguments.clone());
        Ok(Work::Launch(Box::new(Launch { function, dims: *dims, arguments })))
    }
}
