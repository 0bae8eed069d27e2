//! Modules and kernels: functions of the host, by name.

use crate::engine::{Command, Engine, Function, Launch};
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
    /// The command for a launch on a device.
    pub(crate) fn command(
        &self,
        engine: &Engine,
        capabilities: &Capabilities,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<Command> {
        let module = &self.module.0;
        if module.ordinal != engine.ordinal() {
            let (has, wants) = (format!("host:{}", module.ordinal), format!("host:{}", engine.ordinal()));
            return Err(error("launch", ErrorKind::WrongDevice { what: "kernel", has, wants }));
        }
        if module.generation != engine.generation() {
            return Err(error("launch", ErrorKind::Stale { what: "kernel" }));
        }
        check(capabilities, dims).map_err(|why| invalid("launch", why))?;
        let (function, arguments) = (self.function.clone(), arguments.clone());
        Ok(Command::Launch(Box::new(Launch { function, dims: *dims, arguments })))
    }
}

fn check(capabilities: &Capabilities, dims: &LaunchConfig) -> Result<(), &'static str> {
    if dims.groups.contains(&0) || dims.group_size.contains(&0) {
        return Err("a launch has at least one group and one work-item along every axis");
    }
    let within =
        |sizes: [u32; 3], limits: [u32; 3]| sizes.iter().zip(limits).all(|(size, most)| *size <= most);
    if !within(dims.groups, capabilities.max_grid_dims) {
        return Err("the launch has more groups along an axis than the device can have");
    }
    let items: u128 = dims.group_size.iter().map(|size| u128::from(*size)).product();
    if !within(dims.group_size, capabilities.max_group_dims)
        || items > u128::from(capabilities.max_group_size)
    {
        return Err("the group has more work-items than the device can have");
    }
    if dims.shared_bytes as usize > capabilities.shared_memory {
        return Err("the group asks for more shared memory than the device has");
    }
    Ok(())
}
