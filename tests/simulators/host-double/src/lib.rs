//! Two backends that pass their work on to the host backend and behave as something else.
//!
//! * [`Double`] behaves as the driver of a GPU: it refuses ordinary memory of the caller, and each of its calls can be
//!   made to fail.
//! * [`ThirdParty`] is a backend of another author, written against gpumem-core alone. It can ignore waits between
//!   streams, and it can play a GPU whose kernels are known functions.

/// Functions that the host's value inside has as well. With `, after "a name"` the script says first whether the call fails.
macro_rules! forward {
    ($(fn $name:ident($($argument:ident: $of:ty),*) -> $result:ty $(, after $call:literal)?;)*) => { $(
        fn $name(&self, $($argument: $of),*) -> $result {
            $(self.call($call)?;)?
            self.host().$name($($argument),*)
        }
    )* };
    ($(unsafe fn $name:ident($($argument:ident: $of:ty),*) -> $result:ty $(, after $call:literal)?;)*) => { $(
        unsafe fn $name(&self, $($argument: $of),*) -> $result {
            $(self.call($call)?;)?
            // SAFETY: the conditions of the function are those of the host's.
            unsafe { self.host().$name($($argument),*) }
        }
    )* };
}

mod double;
mod graph;
mod script;
mod third_party;

pub use double::{Double, DoubleDevice, DoubleEvent, DoubleOptions, DoubleStream};
pub use script::{Script, Trouble};
pub use third_party::{Programs, ThirdParty, ThirdPartyBarrier, ThirdPartyDevice, ThirdPartyStream};
