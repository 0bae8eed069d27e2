//! An operation as plain data, for the engines.

use crate::{
    reduction::{Number, Reduce, Reduction, reduce},
    step::Step,
};
use gpumem_core::{Backend, CollectiveCall, Element, ErrorKind, MemoryUse, Result};
use gpumem_runtime::{
    ArrayBase, Storage, Stream, UninitArray,
    internal::{Access, AllocationRef, ArrayRef, Work},
};
use ndarray::Dimension;
use smallvec::SmallVec;
use std::{any::TypeId, borrow::Cow, ops::Range, slice, sync::Arc};

/// Which operation, with what its ranks have to agree on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    AllReduce,
    Reduce {
        root: usize,
    },
    Broadcast {
        root: usize,
    },
    AllGather,
    ReduceScatter,
    AllToAll,
    /// Bytes for each rank, and from each rank.
    AllToAllV {
        send: Vec<usize>,
        receive: Vec<usize>,
    },
    Gather {
        root: usize,
    },
    Scatter {
        root: usize,
    },
    Send {
        to: usize,
    },
    Receive {
        from: usize,
    },
    Barrier,
    /// What the ranks tell each other for a split, where operations carry it.
    Split,
}

impl Kind {
    /// The names, by the numbers below, and that of several operations at once.
    pub(crate) const NAMES: [&str; 14] = [
        "all_reduce",
        "reduce",
        "broadcast",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
        "all_to_all_v",
        "gather",
        "scatter",
        "send",
        "receive",
        "barrier",
        "group",
        "split",
    ];

    /// The name of the operation.
    pub(crate) fn name(&self) -> &'static str {
        Self::NAMES[match self {
            Kind::AllReduce => 0,
            Kind::Reduce { .. } => 1,
            Kind::Broadcast { .. } => 2,
            Kind::AllGather => 3,
            Kind::ReduceScatter => 4,
            Kind::AllToAll => 5,
            Kind::AllToAllV { .. } => 6,
            Kind::Gather { .. } => 7,
            Kind::Scatter { .. } => 8,
            Kind::Send { .. } => 9,
            Kind::Receive { .. } => 10,
            Kind::Barrier => 11,
            Kind::Split => 13,
        }]
    }

    /// Whether it concerns two ranks only.
    pub(crate) fn is_of_pair(&self) -> bool {
        matches!(self, Kind::Send { .. } | Kind::Receive { .. })
    }

    fn root(&self) -> Option<usize> {
        match self {
            Kind::Reduce { root }
            | Kind::Broadcast { root }
            | Kind::Gather { root }
            | Kind::Scatter { root } => Some(*root),
            _ => None,
        }
    }
}

/// What is computed, for an element type that is known no more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Computation {
    pub(crate) name: &'static str,
    pub(crate) function: Reduce,
    /// Makes the function for MPI.
    pub(crate) step: fn() -> Step,
}

impl Computation {
    pub(crate) fn of<T: Element, R: Reduction<T>>(_reduction: R) -> Self {
        Self { name: R::NAME, function: reduce::<T, R>, step: Step::of::<T, R> }
    }
}

/// A type of elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ElementType {
    pub(crate) name: &'static str,
    pub(crate) bytes: usize,
    pub(crate) id: TypeId,
    /// The number that an element is, if it is one that can be reduced.
    pub(crate) number: Option<Number>,
}

impl ElementType {
    fn of<T: Element>() -> Self {
        let (number, name) = Number::of::<T>().unzip();
        let name = name.unwrap_or_else(std::any::type_name::<T>);
        Self { name, bytes: size_of::<T>(), id: TypeId::of::<T>(), number }
    }
}

/// An operation of one rank.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    pub(crate) element: ElementType,
    /// What stands for the name of the type.
    pub(crate) element_name: Option<Arc<str>>,
    /// Elements that each rank gives or gets: those of one block where there are several.
    pub(crate) count: usize,
    pub(crate) computation: Option<Computation>,
}

impl Call {
    pub(crate) fn new<T: Element>(kind: Kind, count: usize) -> Self {
        Self { kind, element: ElementType::of::<T>(), element_name: None, count, computation: None }
    }

    /// The same, with what is computed.
    pub(crate) fn computing<T: Element, R: Reduction<T>>(self, reduction: R) -> Self {
        Self { computation: Some(Computation::of::<T, R>(reduction)), ..self }
    }

    /// Bytes that each rank gives or gets.
    pub(crate) fn bytes(&self) -> usize {
        self.count * self.element.bytes
    }

    /// The operation as errors and records tell it.
    pub(crate) fn describe(&self) -> CollectiveCall {
        let name = match &self.element_name {
            Some(name) => Cow::Owned(name.to_string()),
            None => Cow::Borrowed(self.element.name),
        };
        let mut call = CollectiveCall::new(self.kind.name(), name, self.count);
        call.reduction = self.computation.map(|computation| computation.name);
        call.root = self.kind.root();
        call
    }
}

/// Packed elements in memory of the rank's device.
#[derive(Debug, Clone)]
pub struct Place<'a, B: Backend> {
    /// Borrowed from an array, or that of a packed copy.
    pub(crate) memory: Cow<'a, AllocationRef<B>>,
    /// Bytes of the allocation.
    pub(crate) extent: Range<usize>,
}

impl<'a, B: Backend> Place<'a, B> {
    /// The bytes of an array: its elements, if it is contiguous in row-major order.
    #[inline]
    pub(crate) fn of<S: Storage<Backend = B>, D: Dimension>(array: &'a ArrayBase<S, D>) -> Self {
        let ArrayRef { memory, layout } = array.place_by(crate::KEY);
        Self { memory: Cow::Borrowed(memory), extent: layout.extent() }
    }

    /// The bytes of an array that has yet to be written.
    pub(crate) fn of_room<T: Element, D: Dimension>(array: &UninitArray<T, D, B>) -> Place<'static, B> {
        let ArrayRef { memory, layout } = array.place_by(crate::KEY);
        Place { memory: Cow::Owned(memory.clone()), extent: layout.extent() }
    }

    /// So many bytes from that one on.
    pub(crate) fn part(&self, from: usize, bytes: usize) -> Self {
        let start = self.extent.start + from;
        Self { memory: self.memory.clone(), extent: start..start + bytes }
    }

    /// The same bytes, with a reference to the memory of its own.
    pub(crate) fn into_owned(self) -> Place<'static, B> {
        Place { memory: Cow::Owned(self.memory.into_owned()), extent: self.extent }
    }

    /// The bytes as something that is written.
    pub(crate) fn used(&self) -> MemoryUse {
        self.memory.used(&self.extent, true)
    }

    /// The address of the first element.
    pub(crate) fn address(&self) -> u64 {
        self.memory.address() + self.extent.start as u64
    }
}

/// An operation of one rank with its arrays.
#[derive(Debug)]
pub(crate) struct Prepared<'a, B: Backend> {
    pub(crate) call: Call,
    pub(crate) source: Option<Place<'a, B>>,
    pub(crate) destination: Option<Place<'a, B>>,
    /// Whether the source is in the destination, or the other way round, and that is right.
    pub(crate) in_place: bool,
    /// Where a copy after the operation puts the elements of the destination.
    pub(crate) target: Option<Place<'static, B>>,
}

impl<B: Backend> Prepared<'_, B> {
    /// Checks that the arrays belong to the device of the stream, and can be used.
    #[inline]
    pub(crate) fn check(&self, stream: &Stream<B>) -> Result<()> {
        let (timeline, operation) = (stream.timeline_by(crate::KEY), self.call.kind.name());
        // Also where no array is used: a barrier needs a device that works.
        timeline.context.check(operation)?;
        if timeline.is_recording() {
            return timeline.admit(Work::Transfer, operation, &accesses(slice::from_ref(self))).map(drop);
        }
        for place in self.source.iter().chain(&self.destination) {
            timeline.check_owns(operation, &place.memory)?;
            place.memory.check_beside(&timeline.context, operation)?;
        }
        Ok(())
    }
}

/// The uses of memory by operations. When a stream admits them, none of them overlaps what another one writes, but the two of
/// an operation in place.
pub(crate) fn accesses<'a, B: Backend>(calls: &'a [Prepared<'_, B>]) -> Accesses<'a, B> {
    let mut accesses = Accesses::new();
    // An empty extent would conflict with nothing, and takes a place in the list.
    let used = |place: &'a Option<Place<'_, B>>| place.as_ref().filter(|place| !place.extent.is_empty());
    for Prepared { source, destination, in_place, .. } in calls {
        match (used(source), used(destination)) {
            // The only two uses of one operation that may share bytes.
            (Some(from), Some(to)) if *in_place => {
                accesses.extend(Access::in_place(&to.memory, from.extent.clone(), to.extent.clone()));
            }
            (from, to) => {
                accesses.extend(from.map(|Place { memory, extent }| Access::read(memory, extent.clone())));
                accesses.extend(to.map(|Place { memory, extent }| Access::write(memory, extent.clone())));
            }
        }
    }
    accesses
}

/// Those of one operation take no allocation.
pub(crate) type Accesses<'a, B> = SmallVec<[Access<'a, B>; 2]>;

/// An error of an argument.
pub(crate) fn invalid<B: Backend>(
    stream: &Stream<B>,
    operation: &'static str,
    why: &'static str,
) -> gpumem_core::Error {
    stream.timeline_by(crate::KEY).context.error(operation, ErrorKind::InvalidArgument { why })
}
