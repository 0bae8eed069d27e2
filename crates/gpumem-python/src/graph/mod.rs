//! Graphs: work that is recorded once and launched often.
//!
//! The library knows the arrays of a graph as bytes with one more axis, and its numbers by their bytes. What they are to
//! Python is compared here.

mod members;
mod parameters;
mod results;

use crate::{
    attach::{Code, attach},
    device::{self, enter},
    error::raise,
    kernel::check_apart,
    kept::{Kept, Traverse},
    list::named,
    stream::{self, GivenStream, Stream},
};
use gpumem::{Error, ErrorKind, ReadForm, WriteForm, ndarray::IxDyn};
use gpumem_runtime::internal::UntypedValue;
use members::{Visited, Visit};
use parameters::{Taken, Inside, GraphParameter};
use pyo3::{
    PyTraverseError, PyVisit,
    exceptions::{PyRuntimeError, PyTypeError},
    prelude::*,
    sync::PyOnceLock,
    types::PyTuple,
};
use results::{Results, Returned};

/// The arrays that are written, those that are read, and the numbers.
type Form = (Vec<WriteForm<u8, IxDyn>>, Vec<ReadForm<u8, IxDyn>>, Vec<UntypedValue>);

/// Work that was recorded once by `record`, and is launched often: `graph(*arguments)`, or `graph[stream](*arguments)`.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct Graph {
    graph: gpumem::Graph<Form, Results>,
    device: gpumem::Device,
    parameters: Vec<GraphParameter>,
    returned: Returned,
}

/// A graph with the stream of its launches, if it names one.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct GraphLaunch {
    graph: Kept<Graph>,
    stream: Option<Stream>,
}

/// Runs `body(stream, *like)` once and records what it enqueues on its stream; nothing of that is done before a launch. In the
/// body, device arrays are placeholders for those of each launch, and types of numbers are `Varying` numbers of each launch;
/// lists and tuples hold both. A launch returns what the body does, made anew: device arrays, page-locked arrays, `None`, and
/// tuples and lists of them.
#[pyfunction]
#[pyo3(signature = (body, *like, device=None))]
pub(crate) fn record(
    py: Python<'_>,
    body: Py<PyAny>,
    like: &Bound<'_, PyTuple>,
    device: Option<device::GivenDevice>,
) -> PyResult<Graph> {
    let mut given = Taken::default();
    let visited = Visited::default();
    let parameter = |one| GraphParameter::of(&one, Visit::new(&visited), &mut given);
    let parameters = like.iter().map(parameter).collect::<PyResult<Vec<_>>>()?;
    let device = match (device, &given.device) {
        (None, Some(device)) => device.clone(),
        (device, _) => device::given(device)?,
    };
    let (mut raised, mut returned) = (None, None);
    let recorded = py.detach(|| {
        device.record(given.arguments(), |stream, inside| {
            let inside = Inside::new(inside);
            let done = attach(Code::GraphBody, |py| run(py, &body, stream, &parameters, inside));
            let done = done.unwrap_or_else(|| Err(PyRuntimeError::new_err("Python has ended")));
            let (names, results) = done.map_err(|error| {
                raised = Some(error);
                Error::new("", "record", ErrorKind::Cancelled)
            })?;
            returned = Some(names);
            Ok(results)
        })
    });
    match (raised, recorded, returned) {
        (Some(error), ..) => Err(error),
        (_, Ok(graph), Some(returned)) => Ok(Graph { graph, device, parameters, returned }),
        (_, Err(error), _) => Err(raise(error)),
        _ => Err(PyRuntimeError::new_err("the body has not run")),
    }
}

fn run(
    py: Python<'_>,
    body: &Py<PyAny>,
    stream: &gpumem::Stream,
    parameters: &[GraphParameter],
    mut inside: Inside<'_>,
) -> PyResult<(Returned, Results)> {
    let mut arguments = vec![Bound::new(py, Stream(stream.clone()))?.into_any()];
    for parameter in parameters {
        arguments.push(parameter.inside(py, &mut inside)?);
    }
    // Calls that name no device make what belongs to the recording.
    let entered = enter(stream.device());
    let made = body.bind(py).call1(PyTuple::new(py, arguments)?)?;
    drop(entered);
    Returned::of(&made)
}

/// The exception for an error of a launch. The library counts the arguments in another way.
fn unplaced(error: Error) -> PyErr {
    match error.argument() {
        Some(_) => raise(Error::new("", "graph", error.kind().clone())),
        None => raise(error),
    }
}

impl Graph {
    fn launch<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Stream>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (wanted, found) = (self.parameters.len(), arguments.len());
        if wanted != found {
            return Err(PyTypeError::new_err(format!("the graph takes {wanted} arguments, not {found}")));
        }
        let stream = match stream {
            Some(stream) => stream.0.clone(),
            None => self.default_stream(arguments)?,
        };
        let (visited, mut given) = (Visited::default(), Taken::default());
        for (at, (parameter, argument)) in self.parameters.iter().zip(arguments.iter()).enumerate() {
            parameter.take(&argument, Visit::new(&visited), at + 1, stream.device(), &mut given)?;
        }
        check_apart(std::mem::take(&mut given.places))?;
        let results = py.detach(|| self.graph.launch(&stream, given.arguments())).map_err(unplaced)?;
        self.returned.over(py, results)
    }

    /// The stream of a launch that names none: that of the first array's device, as for kernels.
    fn default_stream(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<gpumem::Stream> {
        let device = match parameters::first_device(arguments)? {
            Some(device) => device,
            // In the body of another graph the current device is that of the recording.
            None => Some(device::current()?).filter(|own| *own == self.device).unwrap_or(self.device.clone()),
        };
        device.default_stream().map_err(raise)
    }
}

#[pymethods]
impl Graph {
    /// The graph with a stream of its launches: `graph[stream](*arguments)`.
    fn __getitem__(slf: &Bound<'_, Self>, stream: GivenStream) -> PyResult<GraphLaunch> {
        let stream = stream::given(Some(stream), &slf.get().device)?;
        Ok(GraphLaunch { graph: slf.clone().unbind().into(), stream })
    }

    /// Enqueues everything on the default stream, as one piece of work, after all work that conflicts with the arrays.
    #[pyo3(signature = (*arguments))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.launch(py, None, arguments)
    }

    /// The device whose arrays and streams it takes.
    #[getter]
    fn device(&self) -> device::Device {
        device::Device(self.device.clone())
    }

    /// What the graph consists of, now: a tuple with these names.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static NAMED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        const NAMES: [&str; 10] = [
            "launches",
            "copies",
            "fills",
            "nodes",
            "edges",
            "arena_bytes",
            "temporary_bytes",
            "constant_bytes",
            "driver_graphs",
            "replayed",
        ];
        let own = self.graph.report();
        named(py, &NAMED, "GraphReport", &NAMES)?.call1((
            own.launches,
            own.copies,
            own.fills,
            own.nodes,
            own.edges,
            own.arena_bytes,
            own.temporary_bytes,
            own.constant_bytes,
            own.driver_graphs,
            own.replayed,
        ))
    }

    /// A picture of the graph in the language of Graphviz.
    fn dot(&self) -> String {
        self.graph.dot()
    }

    fn __repr__(&self) -> String {
        let own = self.graph.report();
        let (calls, name) = (own.launches + own.copies + own.fills, self.device.name());
        format!("<pygpumem.Graph of {calls} calls on {name}>")
    }
}

#[pymethods]
impl GraphLaunch {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.graph.visit(&visit)
    }

    /// Enqueues everything, as one piece of work, after all work on any stream that conflicts with the arrays.
    #[pyo3(signature = (*arguments))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.graph.get().launch(py, self.stream.as_ref(), arguments)
    }
}
