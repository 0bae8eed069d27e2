//! The names of C++. All that come from Rust are made here, and each ends in `_`: so none is a word of C++, a macro, or a name of the
//! prelude. Two of Rust never give one, because what was written can be read from it.

use std::fmt::Write;

/// The name of this Rust name, and of the next ones of the same letters.
pub(super) fn identifier(rust: &str, count: usize) -> String {
    let mut name = String::new();
    let mut letters = rust.chars().peekable();
    while let Some(c) = letters.next() {
        // The compilers keep names for themselves that begin with `_`, or have two of them.
        let is_inside = !name.is_empty() && !name.ends_with('_') && letters.peek().is_some();
        match c {
            'Z' => name.push_str("ZZ"),
            c if c.is_ascii_alphanumeric() || c == '_' && is_inside => name.push(c),
            c => {
                let _ = write!(name, "Z{:x}Z", u32::from(c));
            }
        }
    }
    let number = name.rsplit_once('_').map_or("", |(_, number)| number);
    let is_numbered = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    if count > 0 || is_numbered { format!("{name}_{count}_") } else { format!("{name}_") }
}

/// The name of a field. Those of tuples and of complex numbers are the prelude's.
pub(in crate::codegen) fn member(rust: &str) -> String {
    match rust {
        "re" | "im" => rust.to_owned(),
        rust if rust.starts_with(|c: char| c.is_ascii_digit()) => format!("f{rust}"),
        rust => identifier(rust, 0),
    }
}

/// The name of a variable in the tree, `total`, `total#1` for the next one of these letters, or of its part, `total#1.x`.
pub(super) fn variable(text: &str) -> String {
    let (whole, parts) = text.split_once('.').unwrap_or((text, ""));
    let (letters, count) = whole.split_once('#').unwrap_or((whole, ""));
    let mut name = identifier(letters, count.parse().unwrap_or_default());
    for part in parts.split('.').filter(|part| !part.is_empty()) {
        let _ = write!(name, ".{}", member(part));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_be_read_back() {
        let names = [
            ("total", 0, "total_"),
            ("total", 1, "total_1_"),
            ("total_1", 0, "total_1_0_"),
            ("total_1", 1, "total_1_1_"),
            ("total_", 0, "totalZ5fZ_"),
            ("total__1", 0, "total_Z5fZ1_"),
            ("total_Z5fZ1", 0, "total_ZZ5fZZ1_"),
            ("struct", 0, "struct_"),
            ("NULL", 0, "NULL_"),
            ("__x", 0, "Z5fZ_x_"),
            ("_X", 0, "Z5fZX_"),
            ("gr\u{f6}\u{df}e", 0, "grZf6ZZdfZe_"),
        ];
        for (rust, count, expected) in names {
            assert_eq!(identifier(rust, count), expected);
        }
        assert_eq!([variable("a#2.x.0.re"), member("im"), member("f0")], ["a_2_.x_.f0.re", "im", "f0_"]);
    }
}
