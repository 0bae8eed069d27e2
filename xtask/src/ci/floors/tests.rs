use super::*;
use std::fs;

/// The references in a crate of these files.
fn crate_of(files: &[(&str, &str)]) -> (tempfile::TempDir, References) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let references = references::read(folder.path()).unwrap();
    (folder, references)
}

const ROOT: (&str, &str) = (
    "lib.rs",
    "mod a;\nmod b;\nmod c;\npub use {b::Name, c::{Other as Same}};\npub mod d { pub use crate::a; }",
);

fn findings(files: &[(&str, &str)], name: &str) -> Vec<String> {
    let (_, references) = crate_of(&[&[ROOT], files].concat());
    cycle_troubles(name, &references)
}

#[test]
fn a_planted_cycle_is_found_with_its_lines() {
    let planted = [
        ("a.rs", "use std::fmt;\nuse crate::{\n    Name,\n};"),
        ("b/mod.rs", "mod deep;\npub struct Name;"),
        ("b/deep.rs", "fn f() {\n    println!(\"{}\", super::super::c::x());\n}"),
        ("c.rs", "mod inner { use super::super::a::{self}; }\npub fn x() {}"),
    ];
    let found = findings(&planted, "some-crate");
    assert_eq!(found[0], "some-crate: a cycle of a, b, c");
    assert!(found[1].starts_with("  a names b: ") && found[1].ends_with("a.rs:3"), "{found:?}");
    assert!(found[2].starts_with("  b names c: ") && found[2].ends_with("deep.rs:2"), "{found:?}");
    assert!(found[3].starts_with("  c names a: ") && found[3].ends_with("c.rs:1"), "{found:?}");
    assert_eq!(found.len(), 4);
}

#[test]
fn renamed_re_exports_and_two_levels_are_followed() {
    let planted =
        [("a.rs", "pub struct A(crate::Same);"), ("b.rs", ""), ("c.rs", "pub struct Other(crate::d::a::A);")];
    assert_eq!(findings(&planted, "some-crate")[0], "some-crate: a cycle of a, c, d");
}

#[test]
fn tests_and_examples_of_documentation_do_not_count() {
    let fine = [
        ("a.rs", "use crate::b::Name;"),
        (
            "b.rs",
            "/// [`x`](crate::c)\npub struct Name { #[cfg(test)] used: crate::a::A, pub(crate) kept: u8 }\n\
             #[cfg(test)]\nuse crate::{a, c};\n#[cfg(all(test, unix))]\nfn f<A, B>(a: crate::a::A) { crate::c::x() }\n\
             #[cfg(loom)]\nmod models;\n#[cfg(not(loom))]\nuse crate::c::Other;",
        ),
        ("c.rs", "pub struct Other;\n#[cfg(test)]\nmod tests { use crate::b; }"),
    ];
    let (_, references) = crate_of(&[&[ROOT], &fine[..]].concat());
    let found: Vec<_> = references.keys().map(|(from, to)| format!("{from} {to}")).collect();
    assert_eq!(found, ["a b", "b c", "d a"]);
}

#[test]
fn two_files_that_name_each_other_are_a_cycle() {
    let files = [("a.rs", "use crate::b;"), ("b.rs", "use crate::a;"), ("c.rs", "")];
    assert_eq!(findings(&files, "some-crate")[0], "some-crate: a cycle of a, b");
}

#[test]
fn the_root_itself_can_be_in_a_cycle() {
    let (_, references) =
        crate_of(&[("lib.rs", "mod a;\npub use a::A;\nfn f() -> a::A { a::A }"), ("a.rs", "use crate::f;")]);
    let found = cycle_troubles("some-crate", &references);
    assert_eq!(found[0], "some-crate: a cycle of (root), a");
}

#[test]
fn modules_that_name_one_another_in_one_direction_are_no_cycle() {
    let files = [("a.rs", ""), ("b.rs", "use crate::{a, c};"), ("c.rs", "use crate::a;")];
    assert!(findings(&files, "some-crate").is_empty());
}

/// Crates `a` to `d` of these lines.
fn of(lines: [usize; 4]) -> Lines {
    ["a", "b", "c", "d"].map(str::to_owned).into_iter().zip(lines).collect()
}

#[test]
fn a_crate_has_at_most_a_fifth_of_the_lines() {
    let mut sizes = of([20, 20, 20, 20]);
    sizes.insert("e".to_owned(), 20);
    assert!(size_troubles(&sizes, &sizes).is_empty());
    sizes.extend([("a".to_owned(), 21), ("b".to_owned(), 19)]);
    assert_eq!(size_troubles(&sizes, &sizes), ["a: 21.0 % of the lines of all crates"]);
}

#[test]
fn a_crate_has_at_most_the_lines_of_its_budget() {
    let mut sizes: Lines = (0..6).map(|number| (format!("crate-{number}"), 100)).collect();
    let mut budgets =
        budgets("crate-0 100\ncrate-1 100\ncrate-2 99\ncrate-3 200\ncrate-4 100\nother 1").unwrap();
    let expected = [
        "crate-2: 100 lines, and xtask/lines.txt allows 99",
        "crate-5: has no row in xtask/lines.txt",
        "other: is in xtask/lines.txt, and no crate",
    ];
    assert_eq!(size_troubles(&sizes, &budgets), expected);
    assert!(table(&sizes, &budgets).contains("crate-2               100 lines of     99  16.7 %"));
    sizes.remove("crate-5");
    budgets.remove("other");
    budgets.insert("crate-2".to_owned(), 100);
    assert!(size_troubles(&sizes, &budgets).is_empty());
}
