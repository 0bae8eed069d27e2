//! Texts as C has them, for backends.

use std::ffi::{CStr, CString, c_char};

/// Returns the text that a driver has written into a buffer and ended with a zero.
pub fn read(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer.iter().map(|byte| *byte as u8).collect();
    CStr::from_bytes_until_nul(&bytes).map_or_else(
        |_| String::from_utf8_lossy(&bytes).into_owned(),
        |text| text.to_string_lossy().into_owned(),
    )
}

/// Returns a name for a driver, unless nothing can have it: drivers call an empty one an invalid value.
pub fn name(name: &str) -> Option<CString> {
    CString::new(name).ok().filter(|name| !name.is_empty())
}
