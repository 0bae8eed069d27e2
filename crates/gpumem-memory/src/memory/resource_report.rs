//! What one resource holds.

use super::MemoryStatistics;
use serde::Serialize;

/// One resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ResourceReport {
    /// The word for the resource.
    pub resource: &'static str,
    /// The bytes that it holds.
    pub statistics: MemoryStatistics,
}
