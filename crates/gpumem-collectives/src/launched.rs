//! Communicators of the processes that a launcher has started.

use crate::{Communicator, CommunicatorId, Options, ProcessRank, choose, mpi, rendezvous::Rendezvous};
use gpumem_core::{Backend, Error, ErrorKind, NotRecorded, Result};
use gpumem_runtime::{Device, internal::may_block};
use std::env;

const OPERATION: &str = "from_environment";

impl<B: Backend> Communicator<B> {
    /// Joins the processes that a launcher has started, as the rank that it gave this one ([`ProcessRank`]). Waits for them.
    ///
    /// On the host the processes are those of MPI's launcher (`mpiexec`). On GPUs the identity comes from the first of these:
    /// `GPUMEM_UNIQUE_ID` (its bytes in hexadecimal), `NCCL_COMM_ID`, MPI, `GPUMEM_RENDEZVOUS=file:PATH` (a new file that all
    /// processes see), or rank 0 at `MASTER_ADDR` and the port after `MASTER_PORT`.
    ///
    /// # Examples
    /// ```
    /// use gpumem_collectives::{Communicator, InPlace, Sum};
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// let device = Device::open("host")?;
    /// # if std::env::var_os("PMI_RANK").is_none() { return Ok(()) }
    /// let rank = Communicator::from_environment(&device)?; // under `mpiexec -n 4`
    /// let stream = device.stream()?;
    /// let mut sum = stream.to_device(&[1.0])?;
    /// rank.on(&stream).all_reduce(InPlace, &mut sum, Sum)?;
    /// assert_eq!(sum.get(0)?, rank.size() as f64);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](ErrorKind::InvalidArgument), with what was looked for, for variables that are missing,
    /// malformed or contradict each other, and for `NCCL_COMM_ID` with NCCL 2.14 to 2.21, which make another identity of it in
    /// each process; [`Load`](ErrorKind::Load) if MPI is needed and cannot be used; [`Unsupported`](ErrorKind::Unsupported) for
    /// several processes of another launcher on devices of the host; otherwise as [`join`](Self::join).
    pub fn from_environment(device: &Device<B>) -> Result<Self> {
        Self::from_environment_with(device, &Options::default())
    }

    /// As [`from_environment`](Self::from_environment), with options.
    ///
    /// # Errors
    /// As there.
    pub fn from_environment_with(device: &Device<B>, options: &Options) -> Result<Self> {
        may_block(OPERATION)?;
        choose::refuse_recording(OPERATION, device, NotRecorded::Communicator)?;
        let process = ProcessRank::from_environment()?;
        let id =
            identity(device, &process, options).map_err(|error| device.core_by(crate::KEY).place(error))?;
        let joined = Self::join(device, &id, process.rank, process.size, options)?;
        // A rank that does not come is an error here, and not of the first operation.
        joined.engine(OPERATION)?.ready()?;
        Ok(joined)
    }
}

fn identity<B: Backend>(
    device: &Device<B>,
    process: &ProcessRank,
    options: &Options,
) -> Result<CommunicatorId> {
    let is_host = device.capabilities().collective_library.is_none() && device.capabilities().futures;
    match (is_host, process.is_mpi) {
        (true, true) => return Ok(CommunicatorId::mpi()),
        (true, false) if process.size == 1 => return Ok(CommunicatorId::new()),
        (true, false) => {
            let what = "ranks in several processes on the host, without MPI's launcher";
            let error = Error::new("", OPERATION, ErrorKind::Unsupported { what });
            return Err(error.with_hint("start the program with `mpiexec` (`pip install mpich`)"));
        }
        (false, _) => {}
    }
    // Looked for only under MPI's launcher: the library is not to be loaded for nothing.
    let has_mpi = process.is_mpi && mpi::is_there();
    let variable = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let place = Rendezvous::from_variables(process, has_mpi, &variable)?;
    let by_mpi = |bytes: &mut [u8]| mpi::broadcast(bytes, options);
    place.identity(process, options.timeout, || CommunicatorId::for_device(device), by_mpi)
}
