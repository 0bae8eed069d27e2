//! Moving elements between memories.
//!
//! * [`plan`]: any pair of layouts as the fewest driver calls.
//! * [`pieces`]: a pair cut into parts.
//! * [`memory`]: between memory of the library, in stream order.
//! * [`side`]: whether the driver or a kernel does that.
//! * [`borrowed`]: from and to the caller's own memory, which is never touched after the call or the scope is over.
//! * [`ring`]: the page-locked blocks that it goes through, and the threads ([`crew`], [`work`]) that fill and drain them.
//! * [`circular`]: the one block instead that an upload of one run goes through.
//! * [`bell`]: waiting for what another thread does any moment.
//! * [`elements`]: short runs, as those threads move them.
//! * [`scoped`]: downloads that land when their stream is waited for.
//! * [`fresh`]: pages that nobody has touched.
//! * [`across`]: between devices that no driver call connects.
//! * [`brief`]: short blocking copies that the calling thread does itself.
//! * [`short`]: short blocking copies that need no ring.
//! * [`fill`]: one value everywhere.
//! * [`torn`]: what is left behind of a transfer that failed half-way.

mod across;
mod bell;
mod borrowed;
mod brief;
mod caller;
mod circular;
mod copy_plan;
mod crew;
mod cuts;
mod elements;
mod fill;
mod fresh;
mod landing;
mod memory;
#[cfg(loom)]
pub(crate) mod models;
mod options;
mod pieces;
mod plan;
mod progress;
mod ring;
mod scoped;
mod short;
mod side;
mod staged;
mod stores;
mod torn;
mod work;

pub(crate) use borrowed::{Upload, abort, download, download_new, upload};
pub(crate) use brief::{copy_at_once, download_at_once, upload_at_once};
pub use copy_plan::{CopyPlan, CopyWay};
pub(crate) use crew::Crew;
pub(crate) use fill::fill;
pub(crate) use landing::Landings;
pub(crate) use memory::{Place, copy};
pub use options::{StreamingStores, TransferOptions};
pub use progress::Progress;
pub(crate) use progress::Watch;
pub(crate) use scoped::download_in_scope;
