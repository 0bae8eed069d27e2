//! Numbers of bytes for people.

use std::fmt;

/// Bytes for people.
#[derive(Debug, Clone, Copy)]
pub struct Bytes(pub usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit < 4 {
            value /= 1024.0;
            unit += 1;
        }
        let text = match unit {
            0 => format!("{} B", self.0),
            _ => format!("{value:.1} {}iB", ["", "K", "M", "G", "T"][unit]),
        };
        f.pad(&text)
    }
}
