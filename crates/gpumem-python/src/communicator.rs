//! Operations of several ranks.

mod given;
use crate::dtype::each;
use crate::{
    device, dtype,
    error::raise,
    stream::{self, GivenStream, Stream},
    wait::wait,
};
use given::{RankArray, computed, reduce};
use gpumem::{
    AnyBackend,
    collectives::{self, CommunicatorId, Options, ProcessRank},
};
use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError, PyValueError},
    prelude::*,
    types::PyBytes,
};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

type Own = collectives::Communicator<AnyBackend>;

/// One rank of a group of ranks that exchange arrays. Every rank calls the same operations in the same order.
///
/// Operations take arrays of gpumem, objects with the CUDA Array Interface or DLPack, and arrays of NumPy. They return at
/// once, unless an array is one of the host: then they wait, and the result is in it. Without a stream they run on a stream
/// of the communicator.
#[pyclass(frozen, module = "gpumem")]
pub(crate) struct Communicator {
    /// `None` once it was destroyed.
    own: Mutex<Option<Own>>,
    rank: usize,
    size: usize,
    stream: gpumem::Stream,
}

fn options(timeout: Option<f64>, check: Option<bool>) -> PyResult<Options> {
    let mut options = Options::default();
    if let Some(seconds) = timeout {
        let wrong = |_| PyValueError::new_err("the timeout is no number of seconds");
        options = options.timeout(Duration::try_from_secs_f64(seconds).map_err(wrong)?);
    }
    Ok(check.map_or(options.clone(), |check| options.check(check)))
}

fn made(own: Own) -> PyResult<Communicator> {
    let (rank, size) = (own.rank(), own.size());
    let stream = own.device().stream().map_err(raise)?;
    Ok(Communicator { own: Mutex::new(Some(own)), rank, size, stream })
}

impl Communicator {
    fn lock(&self) -> MutexGuard<'_, Option<Own>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stream(&self, stream: Option<GivenStream>) -> gpumem::Stream {
        stream::given(stream).map_or_else(|| self.stream.clone(), |stream| stream.0)
    }

    /// Calls an operation, without Python's lock.
    fn call(&self, py: Python<'_>, call: impl FnOnce(&Own) -> gpumem::Result<()> + Send) -> PyResult<()> {
        let called = py.detach(|| self.lock().as_ref().map(call));
        match called {
            Some(called) => called.map_err(raise),
            None => Err(PyRuntimeError::new_err("the communicator was destroyed")),
        }
    }

    /// Waits where an array is one of the host, and copies the results there.
    fn finish(
        &self,
        py: Python<'_>,
        stream: &gpumem::Stream,
        written: &[&RankArray<'_>],
        read: &[&RankArray<'_>],
    ) -> PyResult<()> {
        if written.iter().chain(read).any(|given| given.is_of_host) {
            wait(py, stream)?;
        }
        for given in written {
            if let Some(back) = &given.back {
                given.array.get().copy_to_host(py, Some(back), None)?;
            }
        }
        Ok(())
    }
}

#[pymethods]
impl Communicator {
    /// Joins the processes that `mpiexec`, `torchrun` or `srun` has started, and waits for them.
    #[staticmethod]
    #[pyo3(signature = (device=None, *, timeout=None, check=None))]
    fn from_environment(
        py: Python<'_>,
        device: Option<&Bound<'_, device::Device>>,
        timeout: Option<f64>,
        check: Option<bool>,
    ) -> PyResult<Self> {
        let (device, options) = (device::given(device)?, options(timeout, check)?);
        made(py.detach(|| Own::from_environment_with(&device, &options)).map_err(raise)?)
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
        devices: Vec<Bound<'_, device::Device>>,
        timeout: Option<f64>,
    ) -> PyResult<Vec<Self>> {
        let devices: Vec<gpumem::Device> = devices.iter().map(|device| device.get().0.clone()).collect();
        let options = options(timeout, None)?;
        let all = py.detach(|| Own::all_with(&devices, &options)).map_err(raise)?;
        all.into_iter().map(made).collect()
    }

    /// The bytes of an identity for `join`. One rank makes it, and passes it to the others.
    #[staticmethod]
    #[pyo3(signature = (device=None))]
    fn unique_id<'py>(
        py: Python<'py>,
        device: Option<&Bound<'py, device::Device>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let device = device::given(device)?;
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
        device: Option<&Bound<'_, device::Device>>,
        timeout: Option<f64>,
        check: Option<bool>,
    ) -> PyResult<Self> {
        let (device, options) = (device::given(device)?, options(timeout, check)?);
        let id = CommunicatorId::from_bytes(id).map_err(raise)?;
        made(py.detach(|| Own::join(&device, &id, rank, size, &options)).map_err(raise)?)
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
    fn all_reduce<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        destination: Option<&Bound<'py, PyAny>>,
        op: &str,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        let (stream, op) = (self.stream(stream), computed(op)?);
        let from = RankArray::of(source, &stream)?;
        let Some(destination) = destination.filter(|destination| !destination.is_none()) else {
            reduce!(op, from.elements(), _array, reduction => {
                let mut to = from.to_write::<T>()?;
                self.call(py, |own| own.all_reduce_in_place(&stream, &mut to, reduction))
            })?;
            return self.finish(py, &stream, &[&from], &[]);
        };
        let to = RankArray::of(destination, &stream)?;
        from.check_apart(&to)?;
        reduce!(op, from.elements(), array, reduction => {
            let mut to = to.to_write::<T>()?;
            self.call(py, |own| own.all_reduce(&stream, array, &mut to, reduction))
        })?;
        self.finish(py, &stream, &[&to], &[&from])
    }

    /// Reduces over all ranks, to `destination` of the root, which only the root gives.
    #[pyo3(signature = (source, destination=None, op="sum", root=0, stream=None))]
    fn reduce<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        destination: Option<&Bound<'py, PyAny>>,
        op: &str,
        root: usize,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        let (stream, op) = (self.stream(stream), computed(op)?);
        let from = RankArray::of(source, &stream)?;
        let to = self.at_root(destination, root, &stream, &from)?;
        reduce!(op, from.elements(), array, reduction => {
            let mut to = to.as_ref().map(RankArray::to_write::<T>).transpose()?;
            self.call(py, |own| own.reduce(&stream, array, to.as_mut().map(|to| to.view_mut()), reduction, root))
        })?;
        self.finish(py, &stream, &Vec::from_iter(&to), &[&from])
    }

    /// Copies the array of the root to those of all ranks.
    #[pyo3(signature = (array, root=0, stream=None))]
    fn broadcast<'py>(
        &self,
        py: Python<'py>,
        array: &Bound<'py, PyAny>,
        root: usize,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        let stream = self.stream(stream);
        let given = RankArray::of(array, &stream)?;
        each!(given.elements(), _array => {
            let mut to = given.to_write::<T>()?;
            self.call(py, |own| own.broadcast(&stream, &mut to, root))
        })?;
        self.finish(py, &stream, &[&given], &[])
    }

    /// Puts the arrays of all ranks one after the other, or one above the other, into `destination` of every rank.
    #[pyo3(signature = (source, destination, stream=None))]
    fn all_gather<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        destination: &Bound<'py, PyAny>,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        self.between(py, source, destination, stream, Moved::AllGather)
    }

    /// Sends block `i` of `source` to rank `i`, whose block `j` of `destination` comes from rank `j`.
    #[pyo3(signature = (source, destination, stream=None))]
    fn all_to_all<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        destination: &Bound<'py, PyAny>,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        self.between(py, source, destination, stream, Moved::AllToAll)
    }

    /// Reduces over all ranks, and gives each rank its block.
    #[pyo3(signature = (source, destination, op="sum", stream=None))]
    fn reduce_scatter<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        destination: &Bound<'py, PyAny>,
        op: &str,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        let (stream, op) = (self.stream(stream), computed(op)?);
        let (from, to) = (RankArray::of(source, &stream)?, RankArray::of(destination, &stream)?);
        from.check_apart(&to)?;
        reduce!(op, from.elements(), array, reduction => {
            let mut to = to.to_write::<T>()?;
            self.call(py, |own| own.reduce_scatter(&stream, array, &mut to, reduction))
        })?;
        self.finish(py, &stream, &[&to], &[&from])
    }

    /// Puts the arrays of all ranks into `destination` of the root, which only the root gives.
    #[pyo3(signature = (source, destination=None, root=0, stream=None))]
    fn gather<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        destination: Option<&Bound<'py, PyAny>>,
        root: usize,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        let stream = self.stream(stream);
        let from = RankArray::of(source, &stream)?;
        let to = self.at_root(destination, root, &stream, &from)?;
        each!(from.elements(), array => {
            let mut to = to.as_ref().map(RankArray::to_write::<T>).transpose()?;
            self.call(py, |own| own.gather(&stream, array, to.as_mut().map(|to| to.view_mut()), root))
        })?;
        self.finish(py, &stream, &Vec::from_iter(&to), &[&from])
    }

    /// Gives each rank its block of `source` of the root, which only the root gives.
    #[pyo3(signature = (source, destination, root=0, stream=None))]
    fn scatter<'py>(
        &self,
        py: Python<'py>,
        source: Option<&Bound<'py, PyAny>>,
        destination: &Bound<'py, PyAny>,
        root: usize,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        let stream = self.stream(stream);
        let to = RankArray::of(destination, &stream)?;
        let from = self.at_root(source, root, &stream, &to)?;
        each!(to.elements(), _array => {
            let mut to = to.to_write::<T>()?;
            let same = |from: &RankArray<'_>| dtype::elements_of::<T>(from.elements());
            let of_root = from.as_ref().map(|from| {
                same(from).ok_or_else(|| PyTypeError::new_err("the elements of the two arrays have different types"))
            });
            let of_root = of_root.transpose()?;
            self.call(py, |own| own.scatter(&stream, of_root.as_ref().map(|from| from.view()), &mut to, root))
        })?;
        self.finish(py, &stream, &[&to], &Vec::from_iter(&from))
    }

    /// Sends an array to another rank, which receives it.
    #[pyo3(signature = (array, to, stream=None))]
    fn send<'py>(
        &self,
        py: Python<'py>,
        array: &Bound<'py, PyAny>,
        to: usize,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        let stream = self.stream(stream);
        let given = RankArray::of(array, &stream)?;
        each!(given.elements(), array => self.call(py, |own| own.send(&stream, array, to)))?;
        self.finish(py, &stream, &[], &[&given])
    }

    /// Receives what another rank sends.
    #[pyo3(signature = (array, source, stream=None))]
    fn receive<'py>(
        &self,
        py: Python<'py>,
        array: &Bound<'py, PyAny>,
        source: usize,
        stream: Option<GivenStream>,
    ) -> PyResult<()> {
        let stream = self.stream(stream);
        let given = RankArray::of(array, &stream)?;
        each!(given.elements(), _array => {
            let mut to = given.to_write::<T>()?;
            self.call(py, |own| own.receive(&stream, &mut to, source))
        })?;
        self.finish(py, &stream, &[&given], &[])
    }

    /// Waits, in the order of the stream, until the streams of all ranks have come so far.
    #[pyo3(signature = (stream=None))]
    fn barrier(&self, py: Python<'_>, stream: Option<GivenStream>) -> PyResult<()> {
        let stream = self.stream(stream);
        self.call(py, |own| own.barrier(&stream))
    }

    /// Waits until the operations of the stream are done.
    #[pyo3(signature = (stream=None))]
    fn synchronize(&self, py: Python<'_>, stream: Option<GivenStream>) -> PyResult<()> {
        wait(py, &self.stream(stream))
    }

    /// Forms communicators of the ranks that say the same colour. Waits for all ranks. A rank without a colour gets `None`.
    #[pyo3(signature = (colour, key=0))]
    fn split(&self, py: Python<'_>, colour: Option<u64>, key: i64) -> PyResult<Option<Self>> {
        let part = py.detach(|| self.lock().as_ref().map(|own| own.split(colour, key)));
        let part = part.ok_or_else(|| PyRuntimeError::new_err("the communicator was destroyed"))?;
        part.map_err(raise)?.map(made).transpose()
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
        let own = self.lock().take();
        match own {
            Some(own) => py.detach(|| own.destroy()).map_err(raise),
            None => Ok(()),
        }
    }

    fn __repr__(&self) -> String {
        format!(
            "<gpumem.Communicator rank {} of {} on {}>",
            self.rank,
            self.size,
            self.stream.device().name()
        )
    }
}

/// Operations from one array to another that compute nothing.
#[derive(Clone, Copy)]
enum Moved {
    AllGather,
    AllToAll,
}

impl Communicator {
    fn between<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        destination: &Bound<'py, PyAny>,
        stream: Option<GivenStream>,
        moved: Moved,
    ) -> PyResult<()> {
        let stream = self.stream(stream);
        let (from, to) = (RankArray::of(source, &stream)?, RankArray::of(destination, &stream)?);
        from.check_apart(&to)?;
        each!(from.elements(), array => {
            let mut to = to.to_write::<T>()?;
            self.call(py, |own| match moved {
                Moved::AllGather => own.all_gather(&stream, array, &mut to),
                Moved::AllToAll => own.all_to_all(&stream, array, &mut to),
            })
        })?;
        self.finish(py, &stream, &[&to], &[&from])
    }

    /// The array that only the root gives, apart from the one that all give.
    fn at_root<'py>(
        &self,
        array: Option<&Bound<'py, PyAny>>,
        root: usize,
        stream: &gpumem::Stream,
        own: &RankArray<'py>,
    ) -> PyResult<Option<RankArray<'py>>> {
        let array = array.filter(|array| self.rank == root && !array.is_none());
        let given = array.map(|array| RankArray::of(array, stream)).transpose()?;
        given.iter().try_for_each(|given| own.check_apart(given))?;
        Ok(given)
    }
}
