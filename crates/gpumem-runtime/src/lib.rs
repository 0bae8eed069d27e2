//! The typed half of gpumem, written once over the backend traits of `gpumem-core`.

pub mod layout;
