//! Cases for a real device.
fn main() {}
