//! How an expansion knows that the path by which it names gpumem leads here.
//!
//! The path is `::gpumem` or that of `crate = path`. Both are the user's to define: a module can re-export this one and
//! replace single names of it. What a kernel without `unsafe` promises rests on these names, so an expansion claims in its scope
//! that they are the ones of this crate, and does not compile if one is another.
//!
//! * The claim is an `unsafe impl`. So the trait is an `unsafe trait` with this function in it: only an author who writes `unsafe`
//!   has another.
//! * The function has the signature that the trait gives it. So each type in it is the very one named here. A `dyn` type says
//!   the same of its trait.
//! * All that an expansion calls belongs to these types and traits, by a path: the functions of a type come before those of
//!   traits that are in the user's scope. A module's functions could not be told from others of the same signature.

use super::{
    Calls, Change, DeviceType, E, Fault, Grid, KernelDef, Load, Methods, Ordered, Phases, PrintedConstant,
    PrintedParameter, PrintedProgram, Private, Row, S, Store, StoreLocal, Witness, WorkItem, WorkItemIds,
};

/// The functions of the kernels' language that belong to no other type.
#[derive(Debug)]
pub enum Language {}

/// A scope whose names are those of this crate.
///
/// # Safety
/// There is nothing to promise: it is `unsafe` so that no safe code can stand in its place.
pub unsafe trait Origin {
    #[doc(hidden)]
    #[allow(clippy::type_complexity)]
    fn __gpumem_names<T>(
        traits: (
            &dyn DeviceType,
            &dyn Load<(), Elem = ()>,
            &dyn Store<(), Elem = ()>,
            &dyn StoreLocal<(), Elem = ()>,
            &dyn Change<(), u32>,
            &dyn Row,
            &dyn Grid,
            &dyn Methods<Bits = (), Magnitude = (), Part = ()>,
            &dyn Ordered,
        ),
        types: (
            Calls<'_>,
            PrintedConstant,
            E,
            Fault,
            KernelDef<T>,
            Language,
            PrintedParameter,
            Phases<'_>,
            PrintedProgram,
            Private<T>,
            S,
            Witness<T>,
            WorkItem<'_>,
            WorkItemIds<'_>,
        ),
    );
}
