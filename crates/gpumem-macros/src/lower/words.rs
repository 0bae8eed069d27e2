//! The list of words and methods that users read has those that kernels know.

use super::{
    calls::{IDS, WAVE_IDS},
    methods::ATOMICS,
};
use crate::{number_methods::NUMBERS, wave::WAVE};
use std::collections::BTreeSet;

const LIST: &str = include_str!("../words.md");

/// The names in a text that are marked as code.
fn names(text: &str) -> BTreeSet<&str> {
    let code = text.split('`').skip(1).step_by(2);
    code.flat_map(|code| code.split(|c: char| !(c.is_alphanumeric() || c == '_'))).collect()
}

#[test]
fn the_list_has_every_word_and_method() {
    let listed = names(LIST);
    let waves = WAVE.iter().map(|(name, _)| *name);
    let atomics = ATOMICS.iter().map(|(name, _)| *name);
    let others =
        ["own", "barrier", "wavebarrier", "memory_fence", "shared", "dynamic_shared", "local", "wave_reduce"];
    let known = IDS.into_iter().chain(WAVE_IDS).chain(waves).chain(atomics).chain(others);
    let missing: Vec<_> =
        known.chain(NUMBERS.split_whitespace()).filter(|name| !listed.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_list_has_no_other_methods() {
    let (_, methods) = LIST.split_once("| methods |").unwrap();
    let rows = methods.lines().filter(|line| line.starts_with("| of "));
    let known: BTreeSet<&str> =
        ATOMICS.iter().map(|(name, _)| *name).chain(NUMBERS.split_whitespace()).collect();
    let of_arrays = ["len", "is_empty", "extent"];
    // After the methods of a kind, functions of its type.
    let listed =
        rows.flat_map(|row| row.trim_start_matches("| of ").split("::").next().into_iter().flat_map(names));
    let unknown: Vec<_> = listed
        .filter(|name| !known.contains(name) && !of_arrays.contains(name))
        .filter(|name| !["f16", "bf16", "Complex"].contains(name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn the_book_has_the_list() {
    // Packages do not have the book.
    let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/kernels.md");
    if let Ok(book) = std::fs::read_to_string(book) {
        assert!(book.contains(LIST.trim()), "copy src/words.md to the section of words and methods");
    }
}
