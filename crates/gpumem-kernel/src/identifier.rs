//! Names that are printed into a source.

use gpumem_core::{Error, ErrorKind, Result};

/// Whether a text is one identifier of C++.
pub(crate) const fn is_identifier(text: &str) -> bool {
    let mut bytes = text.as_bytes();
    let is_named = matches!(bytes, [b'a'..=b'z' | b'A'..=b'Z' | b'_', ..]);
    while let [b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_', rest @ ..] = bytes {
        bytes = rest;
    }
    is_named && bytes.is_empty()
}

/// Refuses a kernel's name that would be printed as more than one word of C++.
pub(crate) fn check_name(name: &str) -> Result<()> {
    match is_identifier(name) {
        true => Ok(()),
        false => {
            let why = "a kernel's name is an identifier of C++: letters, digits and `_`, and no digit first";
            Err(Error::new("", "load", ErrorKind::InvalidArgument { why }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_identifier;

    #[test]
    fn identifiers_are_letters_digits_and_underscores() {
        for text in ["k", "_k", "K9_z", "_Z3addPf"] {
            assert!(is_identifier(text), "{text}");
        }
        for text in ["", "9k", "k ", "k(", "a b", "gr\u{f6}\u{df}e", "a\n", "a::b", "a$"] {
            assert!(!is_identifier(text), "{text:?}");
        }
    }
}
