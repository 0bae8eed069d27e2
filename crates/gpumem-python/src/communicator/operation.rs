//! An operation of a rank: its arrays as Python gives them, and how it is called.

use super::given::{Computed, RankArray, reduce};
use crate::{
    dtype::{self, each},
    kept::Traverse,
};
use gpumem::{
    AnyBackend, DeviceViewMut, Element, Error, ErrorKind,
    collectives::{self, InPlace, Reduction},
    ndarray::IxDyn,
};
use pyo3::{PyTraverseError, PyVisit, exceptions::PyTypeError, prelude::*};
use std::sync::Arc;

/// What an operation does.
#[derive(Clone)]
pub(super) enum Kind {
    AllReduce(Computed),
    Reduce(Computed, usize),
    Broadcast(usize),
    AllGather,
    AllToAll,
    /// With the rows for each rank, and those from each.
    AllToAllV(Vec<usize>, Vec<usize>),
    ReduceScatter(Computed),
    Gather(usize),
    Scatter(usize),
    Send(usize),
    Receive(usize),
    Barrier,
}

/// An array that a call gives, if it gives one.
pub(super) type GivenArray<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// An operation that can be called.
pub(super) struct Operation {
    call: Box<dyn Call>,
    source: Option<RankArray>,
    destination: Option<RankArray>,
    element_name: Option<Arc<str>>,
}

impl Operation {
    /// An operation of this rank, whose arrays are uploaded on the stream if they are arrays of the host.
    pub(super) fn new(
        kind: Kind,
        (source, destination): (GivenArray<'_, '_>, GivenArray<'_, '_>),
        (rank, stream): (usize, &gpumem::Stream),
    ) -> PyResult<Self> {
        // Other ranks may give the array of the root, and it is left alone.
        let is_root = |root: &usize| *root == rank;
        let (has_source, has_destination) = match &kind {
            Kind::Reduce(_, root) | Kind::Gather(root) => (true, is_root(root)),
            Kind::Scatter(root) => (is_root(root), true),
            _ => (true, true),
        };
        let array = |given: GivenArray<'_, '_>, has: bool, write: bool| {
            let given = given.filter(|given| has && !given.is_none());
            given.map(|given| RankArray::of(given, stream, write)).transpose()
        };
        let source = array(source, has_source, false)?;
        let destination = array(destination, has_destination, true)?;
        if let (Some(source), Some(destination)) = (&source, &destination) {
            source.check_apart(destination)?;
            destination.check_type(source)?;
        }
        let call = call(&kind, source.as_ref(), destination.as_ref())?;
        let named = source.as_ref().or(destination.as_ref()).map(RankArray::element_name).transpose()?;
        Ok(Self { call, source, destination, element_name: named.flatten() })
    }

    /// Refuses arrays that another operation of the group writes, or that this one writes and the other uses.
    pub(super) fn check_apart(&self, other: &Self) -> PyResult<()> {
        let pairs = [
            (&self.destination, &other.destination),
            (&self.destination, &other.source),
            (&self.source, &other.destination),
        ];
        pairs.into_iter().try_for_each(|(own, others)| match (own, others) {
            (Some(own), Some(others)) => own.check_apart(others),
            _ => Ok(()),
        })
    }

    /// Adds it to those that are enqueued together.
    pub(super) fn add<'g>(&'g mut self, group: &mut Group<'g, '_>) -> gpumem::Result<()> {
        group.name_elements(self.element_name.clone());
        self.call.add(group)
    }

    /// Whether the caller waits, because the readers of an array have no streams.
    pub(super) fn is_of_host(&self) -> bool {
        self.source.iter().chain(&self.destination).any(RankArray::is_of_host)
    }

    /// Copies the result to the array of the host.
    pub(super) fn copy_back(&self, py: Python<'_>) -> PyResult<()> {
        self.destination.as_ref().map_or(Ok(()), |destination| destination.copy_back(py))
    }
}

impl Traverse for Operation {
    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // What is called has views of the same arrays, and no objects.
        self.source.visit(visit)?;
        self.destination.visit(visit)
    }
}

type Group<'g, 'c> = collectives::Operations<'g, 'c, AnyBackend>;
type View<T> = DeviceViewMut<'static, T, IxDyn>;
/// A source and a destination.
type Views<T> = (Option<View<T>>, Option<View<T>>);

/// The call of an operation, for one type of elements.
trait Call: Send {
    fn add<'g>(&'g mut self, group: &mut Group<'g, '_>) -> gpumem::Result<()>;
}

/// An operation that computes nothing.
struct Moves<T: Element> {
    kind: Kind,
    source: Option<View<T>>,
    destination: Option<View<T>>,
}

/// An operation that combines elements.
struct Computes<T: Element, R> {
    kind: Kind,
    source: Option<View<T>>,
    destination: Option<View<T>>,
    reduction: R,
}

fn call(kind: &Kind, source: Option<&RankArray>, destination: Option<&RankArray>) -> PyResult<Box<dyn Call>> {
    let Some(typed) = source.or(destination) else {
        return Ok(Box::new(Moves::<u8> { kind: kind.clone(), source: None, destination: None }));
    };
    match kind {
        Kind::AllReduce(computed) | Kind::Reduce(computed, _) | Kind::ReduceScatter(computed) => {
            reduce!(*computed, typed.numbers(), _array, reduction => {
                let (source, destination) = views::<T>(source, destination)?;
                Ok(Box::new(Computes { kind: kind.clone(), source, destination, reduction }))
            })
        }
        _ => each!(typed.elements(), _array => {
            let (source, destination) = views::<T>(source, destination)?;
            Ok(Box::new(Moves { kind: kind.clone(), source, destination }))
        }),
    }
}

/// The arrays as ones of `T`.
fn views<T: Element>(source: Option<&RankArray>, destination: Option<&RankArray>) -> PyResult<Views<T>> {
    let typed = |array: &RankArray| {
        let view = dtype::elements_of::<T>(array.elements());
        view.ok_or_else(|| PyTypeError::new_err("the elements of the two arrays have different types"))
    };
    Ok((source.map(typed).transpose()?, destination.map(typed).transpose()?))
}

impl<T: Element> Call for Moves<T> {
    fn add<'g>(&'g mut self, group: &mut Group<'g, '_>) -> gpumem::Result<()> {
        let Self { kind, source, destination } = self;
        match (&*kind, source, destination) {
            (Kind::Broadcast(root), _, Some(array)) => group.broadcast(array, *root),
            (Kind::AllGather, Some(from), Some(to)) => group.all_gather(&*from, to),
            (Kind::AllToAll, Some(from), Some(to)) => group.all_to_all(from, to),
            (Kind::AllToAllV(sent, received), Some(from), Some(to)) => {
                group.all_to_all_v((from, sent), (to, received))
            }
            (Kind::Gather(root), Some(from), to) => {
                group.gather(from, to.as_mut().map(|to| to.view_mut()), *root)
            }
            (Kind::Scatter(root), from, Some(to)) => {
                group.scatter(from.as_ref().map(|from| from.view()), to, *root)
            }
            (Kind::Send(to), Some(from), _) => group.send(from, *to),
            (Kind::Receive(from), _, Some(to)) => group.receive(to, *from),
            (Kind::Barrier, ..) => group.barrier(),
            _ => Err(missing()),
        }
    }
}

impl<T: Element, R: Reduction<T> + Send> Call for Computes<T, R> {
    fn add<'g>(&'g mut self, group: &mut Group<'g, '_>) -> gpumem::Result<()> {
        let Self { kind, source, destination, reduction } = self;
        match (&*kind, source, destination) {
            (Kind::AllReduce(_), Some(from), Some(to)) => group.all_reduce(&*from, to, *reduction),
            (Kind::AllReduce(_), None, Some(array)) => group.all_reduce(InPlace, array, *reduction),
            (Kind::Reduce(_, root), Some(from), to) => {
                group.reduce(&*from, to.as_mut().map(|to| to.view_mut()), *reduction, *root)
            }
            (Kind::ReduceScatter(_), Some(from), Some(to)) => group.reduce_scatter(&*from, to, *reduction),
            _ => Err(missing()),
        }
    }
}

fn missing() -> Error {
    Error::new("", "collective", ErrorKind::InvalidArgument { why: "an array is missing" })
}
