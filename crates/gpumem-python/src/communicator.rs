//! Operations of several ranks.

mod given;
mod group;
mod groups;
mod join;
mod operation;
mod run;
use crate::{
    device,
    error::raise,
    list::Listed,
    stream::{self, GivenStream, Stream},
    wait::may_wait,
};
use given::computed;
use gpumem::{
    AnyBackend,
    collectives::{self, CommunicatorId, ProcessRank},
};
pub(crate) use group::Group;
pub(crate) use groups::Groups;
use join::{library, look_in_packages, options};
use operation::{GivenArray, Kind, Operation};
use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
    types::PyBytes,
};
use run::{Part, run};
use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

type Own = collectives::Communicator<AnyBackend>;

/// One rank of a group of ranks that exchange arrays. Every rank calls the same operations in the same order.
///
/// Operations take arrays of gpumem, objects with the CUDA Array Interface or DLPack, and arrays of NumPy. They return at
/// once, unless an array is one of the host: then they wait, and the result is in it. Without a stream they run on a stream
/// of the communicator.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct Communicator {
    /// `None` once it was destroyed. Calls do not hold the lock: another thread can abort what waits.
    own: Mutex<Option<Arc<Own>>>,
    /// Whether an operation was called.
    has_joined: Arc<AtomicBool>,
    rank: usize,
    size: usize,
    stream: gpumem::Stream,
}

fn made(py: Python<'_>, own: Own) -> PyResult<Communicator> {
    let (rank, size) = (own.rank(), own.size());
    let stream = stream::made(py, || own.device().stream())?;
    Ok(Communicator { own: Mutex::new(Some(Arc::new(own))), has_joined: Arc::default(), rank, size, stream })
}

impl Communicator {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<Own>>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stream(&self, stream: Option<GivenStream>) -> PyResult<gpumem::Stream> {
        let given = stream::given(stream, self.stream.device())?;
        Ok(given.map_or_else(|| self.stream.clone(), |stream| stream.0))
    }

    /// The communicator, unless it was destroyed.
    fn alive(&self) -> PyResult<Arc<Own>> {
        self.lock().clone().ok_or_else(|| PyRuntimeError::new_err("the communicator was destroyed"))
    }

    /// Calls an operation, without Python's lock.
    fn call(&self, py: Python<'_>, call: impl FnOnce(&Own) -> gpumem::Result<()> + Send) -> PyResult<()> {
        let own = self.alive()?;
        py.detach(|| call(&own)).map_err(raise)
    }

    /// Operations of this rank, to be enqueued together.
    fn part(&self, stream: gpumem::Stream, operations: Vec<Operation>) -> PyResult<Part> {
        let (own, has_joined) = (self.alive()?, self.has_joined.clone());
        // On a GPU the first call may wait until all ranks have joined.
        let waits = !has_joined.load(Ordering::Relaxed) || operations.iter().any(Operation::is_of_host);
        let wait = waits.then(|| may_wait("collective")).transpose()?;
        Ok(Part { own, stream, operations, has_joined, wait })
    }

    /// Refuses a rank that sends to itself or receives from itself alone, which would wait for itself.
    fn check_peer(&self, peer: usize) -> PyResult<()> {
        match peer == self.rank {
            true => Err(PyValueError::new_err("a rank receives what it sends itself only in the same group")),
            false => Ok(()),
        }
    }

    /// Runs one operation.
    fn operate(
        &self,
        py: Python<'_>,
        kind: Kind,
        arrays: (GivenArray<'_, '_>, GivenArray<'_, '_>),
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        let stream = self.stream(stream)?;
        let operation = Operation::new(kind, arrays, (self.rank, &stream))?;
        run(py, vec![self.part(stream, vec![operation])?])
    }
}

#[pymethods]
impl Communicator {
    /// Joins the processes that `mpiexec`, `torchrun` or `srun` has started, and waits for them.
    #[staticmethod]
    #[pyo3(signature = (device=None, *, timeout=None, check=None))]
    fn from_environment(
        py: Python<'_>,
        device: Option<device::GivenDevice>,
        timeout: Option<f64>,
        check: Option<bool>,
    ) -> PyResult<Self> {
        let (device, options) = (device::given(device)?, options(timeout, check)?);
        let wait = may_wait("from_environment")?;
        look_in_packages(py)?;
        let joined = wait.while_interruptible(py, move || Own::from_environment_with(&device, &options))?;
        made(py, joined.map_err(raise)?)
    }

    /// Where the library of collectives for GPUs ('nccl' or 'rccl') was found: its file and the version of NCCL's interface.
    /// A copy that PyTorch or CuPy has loaded is used, and otherwise also that of the package `nvidia-nccl`.
    #[staticmethod]
    #[pyo3(signature = (name="nccl"))]
    fn library(py: Python<'_>, name: &str) -> PyResult<(PathBuf, String)> {
        library(py, name)
    }

    /// Rank, number of processes, and rank on this machine (or `None`), as the launcher tells them.
    #[staticmethod]
    fn process() -> PyResult<(usize, usize, Option<usize>)> {
        let process = ProcessRank::from_environment().map_err(raise)?;
        Ok((process.rank, process.size, process.local_rank))
    }

    /// A communicator for each device, in this process.
    #[staticmethod]
    #[pyo3(signature = (devices, *, timeout=None))]
    fn all(
        py: Python<'_>,
        devices: Listed<device::GivenDevice>,
        timeout: Option<f64>,
    ) -> PyResult<Vec<Self>> {
        let devices: Vec<gpumem::Device> = devices.0.into_iter().map(|device| device.0).collect();
        let options = options(timeout, None)?;
        let wait = may_wait("all")?;
        look_in_packages(py)?;
        let all = wait.while_interruptible(py, move || Own::all_with(&devices, &options))?;
        all.map_err(raise)?.into_iter().map(|own| made(py, own)).collect()
    }

    /// The bytes of an identity for `join`. One rank makes it, and passes it to the others.
    #[staticmethod]
    #[pyo3(signature = (device=None))]
    fn unique_id<'py>(py: Python<'py>, device: Option<device::GivenDevice>) -> PyResult<Bound<'py, PyBytes>> {
        let device = device::given(device)?;
        look_in_packages(py)?;
        let id = py.detach(|| CommunicatorId::for_device(&device)).map_err(raise)?;
        Ok(PyBytes::new(py, &id.to_bytes()))
    }

    /// Joins a communicator as one of `size` ranks.
    #[staticmethod]
    #[pyo3(signature = (id, rank, size, device=None, *, timeout=None, check=None))]
    fn join(
        py: Python<'_>,
        id: &[u8],
        rank: usize,
        size: usize,
        device: Option<device::GivenDevice>,
        timeout: Option<f64>,
        check: Option<bool>,
    ) -> PyResult<Self> {
        let (device, options) = (device::given(device)?, options(timeout, check)?);
        let wait = may_wait("join")?;
        look_in_packages(py)?;
        let id = CommunicatorId::from_bytes(id).map_err(raise)?;
        let joined = wait.while_interruptible(py, move || Own::join(&device, &id, rank, size, &options))?;
        made(py, joined.map_err(raise)?)
    }

    /// The number of this rank, from 0.
    #[getter]
    fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks.
    #[getter]
    fn size(&self) -> usize {
        self.size
    }

    /// The device of this rank.
    #[getter]
    fn device(&self) -> device::Device {
        device::Device(self.stream.device().clone())
    }

    /// The stream of operations that name none.
    #[getter]
    #[pyo3(name = "stream")]
    fn own_stream(&self) -> Stream {
        Stream(self.stream.clone())
    }

    /// Reduces over all ranks, into `destination` or in place. `op` is 'sum', 'prod', 'min', 'max' or 'avg'.
    #[pyo3(signature = (source, destination=None, op="sum", stream=None))]
    fn all_reduce(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        destination: Option<&Bound<'_, PyAny>>,
        op: &str,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        self.operate(py, Kind::AllReduce(computed(op)?), in_place_or(source, destination), stream)
    }

    /// Reduces over all ranks, to `destination` of the root, which only the root gives.
    #[pyo3(signature = (source, destination=None, op="sum", root=0, stream=None))]
    fn reduce(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        destination: Option<&Bound<'_, PyAny>>,
        op: &str,
        root: usize,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        self.operate(py, Kind::Reduce(computed(op)?, root), (Some(source), destination), stream)
    }

    /// Copies the array of the root to those of all ranks.
    #[pyo3(signature = (array, root=0, stream=None))]
    fn broadcast(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        root: usize,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        self.operate(py, Kind::Broadcast(root), (None, Some(array)), stream)
    }

    /// Puts the arrays of all ranks one after the other, or one above the other, into `destination` of every rank.
    #[pyo3(signature = (source, destination, stream=None))]
    fn all_gather(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        destination: &Bound<'_, PyAny>,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        self.operate(py, Kind::AllGather, (Some(source), Some(destination)), stream)
    }

    /// Sends block `i` of `source` to rank `i`, whose block `j` of `destination` comes from rank `j`.
    #[pyo3(signature = (source, destination, stream=None))]
    fn all_to_all(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        destination: &Bound<'_, PyAny>,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        self.operate(py, Kind::AllToAll, (Some(source), Some(destination)), stream)
    }

    /// As `all_to_all`, with blocks of `sent[i]` and `received[j]` rows.
    #[pyo3(signature = (source, sent, destination, received, stream=None))]
    fn all_to_all_v(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        sent: Listed<usize>,
        destination: &Bound<'_, PyAny>,
        received: Listed<usize>,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        self.operate(py, Kind::AllToAllV(sent.0, received.0), (Some(source), Some(destination)), stream)
    }

    /// Reduces over all ranks, and gives each rank its block.
    #[pyo3(signature = (source, destination, op="sum", stream=None))]
    fn reduce_scatter(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        destination: &Bound<'_, PyAny>,
        op: &str,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        self.operate(py, Kind::ReduceScatter(computed(op)?), (Some(source), Some(destination)), stream)
    }

    /// Puts the arrays of all ranks into `destination` of the root, which only the root gives.
    #[pyo3(signature = (source, destination=None, root=0, stream=None))]
    fn gather(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        destination: Option<&Bound<'_, PyAny>>,
        root: usize,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        self.operate(py, Kind::Gather(root), (Some(source), destination), stream)
    }

    /// Gives each rank its block of `source` of the root, which only the root gives.
    #[pyo3(signature = (source, destination, root=0, stream=None))]
    fn scatter(
        &self,
        py: Python<'_>,
        source: Option<&Bound<'_, PyAny>>,
        destination: &Bound<'_, PyAny>,
        root: usize,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        self.operate(py, Kind::Scatter(root), (source, Some(destination)), stream)
    }

    /// Sends an array to another rank, which receives it.
    #[pyo3(signature = (array, to, stream=None))]
    fn send(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        to: usize,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        self.check_peer(to)?;
        self.operate(py, Kind::Send(to), (Some(array), None), stream)
    }

    /// Receives what another rank sends.
    #[pyo3(signature = (array, source, stream=None))]
    fn receive(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        source: usize,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        self.check_peer(source)?;
        self.operate(py, Kind::Receive(source), (None, Some(array)), stream)
    }

    /// Waits, in the order of the stream, until the streams of all ranks have come so far.
    #[pyo3(signature = (stream=None))]
    fn barrier(&self, py: Python<'_>, stream: Option<GivenStream>) -> PyResult<()> {
        self.operate(py, Kind::Barrier, (None, None), stream)
    }

    /// A context manager that collects operations and enqueues them at its end, as one piece of work: none of them waits for
    /// another. After an exception none of them takes place.
    #[pyo3(signature = (stream=None))]
    fn group(slf: &Bound<'_, Self>, stream: Option<GivenStream>) -> PyResult<Group> {
        slf.get().stream(stream).map(|stream| Group::new(slf.clone().unbind(), stream))
    }

    /// As `group`, for several ranks that one thread drives: a context manager with a group for each, in their order. On GPUs
    /// such a thread has to call operations in this way, because the call for one rank may wait for that of another.
    #[staticmethod]
    #[pyo3(signature = (communicators))]
    fn group_all(py: Python<'_>, communicators: Listed<Bound<'_, Self>>) -> PyResult<Groups> {
        Groups::new(py, communicators.0)
    }

    /// Waits until the operations of the stream are done.
    #[pyo3(signature = (stream=None))]
    fn synchronize(&self, py: Python<'_>, stream: Option<GivenStream>) -> PyResult<()> {
        may_wait("synchronize")?.for_stream(py, &self.stream(stream)?)
    }

    /// Forms communicators of the ranks that say the same colour. Waits for all ranks. A rank without a colour gets `None`.
    #[pyo3(signature = (colour, key=0))]
    fn split(&self, py: Python<'_>, colour: Option<u64>, key: i64) -> PyResult<Option<Self>> {
        let own = self.alive()?;
        let split = own.clone();
        // Its exchanges would come between operations that the program calls from here on.
        let part = may_wait("split")?.while_interruptible(py, move || split.split(colour, key));
        let part = part.inspect_err(|_| py.detach(|| own.abort()))?;
        part.map_err(raise)?.map(|own| made(py, own)).transpose()
    }

    /// Fails all operations of all ranks that do not move bytes yet, and all later ones.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, |own| {
            own.abort();
            Ok(())
        })
    }

    /// Gives the communicator up. Raises its last failure.
    fn destroy(&self, py: Python<'_>) -> PyResult<()> {
        // Held until it is known whether another thread uses it: meanwhile it is neither destroyed nor there.
        let mut held = self.lock();
        match held.take().map(Arc::try_unwrap) {
            None => Ok(()),
            Some(Ok(own)) => {
                drop(held);
                py.detach(|| own.destroy()).map_err(raise)
            }
            Some(Err(used)) => {
                *held = Some(used);
                Err(PyRuntimeError::new_err("another thread calls an operation of the communicator"))
            }
        }
    }

    fn __repr__(&self) -> String {
        format!(
            "<pygpumem.Communicator rank {} of {} on {}>",
            self.rank,
            self.size,
            self.stream.device().name()
        )
    }
}

/// The arrays of an operation that is in place if there is one.
fn in_place_or<'a, 'py>(
    source: &'a Bound<'py, PyAny>,
    destination: GivenArray<'a, 'py>,
) -> (GivenArray<'a, 'py>, GivenArray<'a, 'py>) {
    match destination.filter(|destination| !destination.is_none()) {
        Some(destination) => (Some(source), Some(destination)),
        None => (None, Some(source)),
    }
}
