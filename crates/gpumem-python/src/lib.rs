//! gpumem for Python: the words of Numba's `cuda` module, on every backend.

mod array;
mod attach;
mod body;
mod chunks;
mod cleanup;
mod communicator;
mod device;
mod device_array;
mod direction;
mod dtype;
mod element;
mod error;
mod event;
mod file_view;
mod files;
mod gpus;
mod graph;
mod host;
mod in_use;
mod interchange;
mod ipc;
mod kernel;
mod kept;
mod key;
mod list;
mod locked;
mod make;
mod make_host;
mod number;
mod page_locked;
mod pinned;
mod progress;
mod recording;
mod serve;
mod signature;
mod spill;
mod spilled;
mod stream;
mod submissions;
mod tensor;
mod trace;
mod varying;
mod wait;

// All that Python sees. A doc comment would be the text of the module there.
// Not without the interpreter's lock: that is tested nowhere.
#[pyo3::pymodule(name = "_native", gil_used = true)]
mod module {
    use crate::{array, attach, device, gpus, varying};
    use pyo3::prelude::*;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name in Python")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::{
        array::convert::conversion_kernel,
        chunks::{chunks, map::map_chunks},
        cleanup::{MemoryReport, defer_cleanup, memory_report},
        communicator::{Communicator, Group, Groups},
        device::{Device, get_current_device, list_devices, select_device, synchronize, unavailable},
        device_array::DeviceNDArray,
        direction::{input, input_output, output},
        error::GpuMemError,
        event::{Event, event, event_elapsed_time},
        file_view::FileView,
        files::{ArrayFile, load, open, save},
        gpus::{current_context, is_available},
        graph::{Graph, record},
        interchange::{as_cuda_array, from_dlpack, is_cuda_array},
        ipc::{IpcArrayHandle, ipc_array, open_ipc_array},
        kernel::{Kernel, compile},
        locked::{deregister, mapped, pinned, register},
        make::{device_array, device_array_like, to_device},
        make_host::{
            managed_array, managed_array_like, mapped_array, mapped_array_like, pinned_array,
            pinned_array_like,
        },
        pinned::HostNDArray,
        serve::{ServedMemory, serve_memory},
        spill::{SpillManager, Spillable},
        stream::{
            Stream, default_stream, external_stream, legacy_default_stream, per_thread_default_stream, stream,
        },
        trace::{MemoryVerdict, record_memory, simulate_memory},
        varying::Varying,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        attach::check_interpreter()?;
        module.add("gpus", Bound::new(module.py(), gpus::Gpus)?)?;
        attach::watch(module.py())?;
        device::look_for_compilers(module.py())?;
        array::add_operators(&module.py().get_type::<DeviceNDArray>(), array::absent)?;
        array::add_operators(&module.py().get_type::<Varying>(), varying::opaque)
    }
}
