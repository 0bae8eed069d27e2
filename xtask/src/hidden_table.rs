//! Compares the list of functions that are public but not for users with the code: each has a reason why safe code cannot break
//! a law with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};
use syn::{Attribute, ImplItem, Item, TraitItem, Type, Visibility};

/// Crates of which users see some items under other names, and call none of the rest. All their public functions are listed.
const BELOW: [&str; 1] = ["gpumem-memory"];
/// Crates that users see. What is hidden in them is listed, and what a module `internal` re-exports.
const SEEN: [&str; 12] = [
    "gpumem",
    "gpumem-core",
    "gpumem-layout",
    "gpumem-runtime",
    "gpumem-kernel",
    "gpumem-ops",
    "gpumem-files",
    "gpumem-macros",
    "gpumem-collectives",
    "gpumem-host",
    "gpumem-cuda",
    "gpumem-roc",
];
/// Where the reasons are.
const LIST: &str = "xtask/hidden.txt";
/// What the bodies of `internal` hold; a new one is a door more.
const MODULES: [&str; 2] = ["internal", "codegen"];

struct Walk<'a> {
    crate_name: &'a str,
    all: bool,
    exported: &'a BTreeSet<String>,
    found: BTreeMap<String, bool>,
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn says(attributes: &[Attribute], path: &str, word: &str) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident(path)
            && attribute.meta.require_list().is_ok_and(|list| {
                list.tokens.to_string().split(|c: char| !c.is_alphanumeric()).any(|found| found == word)
            })
    })
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    says(attributes, "doc", "hidden")
}

/// Not in a build for users.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    says(attributes, "cfg", "test") || says(attributes, "cfg", "loom")
}

impl Walk<'_> {
    fn add(&mut self, name: &str, is_unsafe: bool) {
        let entry = self.found.entry(format!("{} {name}", self.crate_name)).or_insert(true);
        *entry &= is_unsafe;
    }

    fn items(&mut self, items: &[Item], hidden: bool) {
        for item in items {
            match item {
                Item::Mod(module) if !is_for_tests(&module.attrs) => {
                    let items = module.content.as_ref().map_or(&[][..], |(_, items)| items);
                    self.items(items, hidden || is_hidden(&module.attrs));
                }
                Item::Fn(function) if is_public(&function.vis) => {
                    let name = function.sig.ident.to_string();
                    if hidden || self.exported.contains(&name) || is_hidden(&function.attrs) {
                        self.add(&name, function.sig.unsafety.is_some());
                    }
                }
                Item::Trait(of) if is_public(&of.vis) => {
                    let whole =
                        hidden || is_hidden(&of.attrs) || self.exported.contains(&of.ident.to_string());
                    for item in &of.items {
                        if let TraitItem::Fn(function) = item
                            && (whole || is_hidden(&function.attrs))
                        {
                            let name = format!("{}::{}", of.ident, function.sig.ident);
                            self.add(&name, of.unsafety.is_some() || function.sig.unsafety.is_some());
                        }
                    }
                }
                Item::Impl(of) if of.trait_.is_none() && !is_for_tests(&of.attrs) => {
                    let Type::Path(path) = &*of.self_ty else { continue };
                    let Some(last) = path.path.segments.last() else { continue };
                    let whole =
                        hidden || is_hidden(&of.attrs) || self.exported.contains(&last.ident.to_string());
                    for item in &of.items {
                        if let ImplItem::Fn(function) = item
                            && is_public(&function.vis)
                            && (whole || is_hidden(&function.attrs))
                            && !is_for_tests(&function.attrs)
                        {
                            let name = format!("{}::{}", last.ident, function.sig.ident);
                            self.add(&name, function.sig.unsafety.is_some());
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// The last names of what the hidden modules of a crate re-export.
fn re_exported(items: &[Item], inside: bool, found: &mut BTreeSet<String>) {
    fn names(tree: &syn::UseTree, found: &mut BTreeSet<String>) {
        match tree {
            syn::UseTree::Path(path) => names(&path.tree, found),
            syn::UseTree::Name(name) => drop(found.insert(name.ident.to_string())),
            syn::UseTree::Rename(name) => drop(found.insert(name.ident.to_string())),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| names(tree, found)),
            syn::UseTree::Glob(_) => {}
        }
    }
    for item in items {
        match item {
            Item::Mod(module) if !is_for_tests(&module.attrs) => {
                let inside = inside || MODULES.contains(&&*module.ident.to_string());
                re_exported(module.content.as_ref().map_or(&[], |(_, items)| items), inside, found);
            }
            Item::Use(of) if is_public(&of.vis) && (inside || is_hidden(&of.attrs)) => names(&of.tree, found),
            _ => {}
        }
    }
}

/// The source files of a folder, each with whether a hidden module file or folder holds it.
fn sources(directory: &Path, hidden: bool, found: &mut Vec<(syn::File, bool)>) {
    let mut entries: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        let hidden = hidden || entry.file_stem().is_some_and(|stem| stem == "codegen");
        if entry.is_dir() {
            sources(&entry, hidden, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") && !entry.ends_with("tests.rs")
        {
            found.push((syn::parse_file(&fs::read_to_string(&entry).unwrap()).unwrap(), hidden));
        }
    }
}

/// All functions that are public and not documented for users, each with whether it is unsafe.
fn hidden_functions(root: &Path) -> BTreeMap<String, bool> {
    let mut found = BTreeMap::new();
    for (name, all) in BELOW.iter().map(|name| (*name, true)).chain(SEEN.iter().map(|name| (*name, false))) {
        let mut files = Vec::new();
        sources(&root.join("crates").join(name).join("src"), false, &mut files);
        let mut exported = BTreeSet::new();
        files.iter().for_each(|(file, _)| re_exported(&file.items, false, &mut exported));
        let mut walk = Walk { crate_name: name, all, exported: &exported, found: BTreeMap::new() };
        for (file, hidden) in &files {
            walk.items(&file.items, walk.all || *hidden);
        }
        found.extend(walk.found);
    }
    found
}

#[test]
fn each_hidden_function_has_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let found = hidden_functions(&root);
    let text = fs::read_to_string(root.join(LIST)).unwrap();
    let mut listed = BTreeMap::new();
    let mut reason = "";
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with("//")) {
        if let Some(found) = line.strip_prefix("# ") {
            reason = found;
            continue;
        }
        assert!(!reason.is_empty(), "no reason above {line}");
        let (name, functions) = line.trim().split_once(' ').unwrap_or_else(|| panic!("{line}"));
        for function in functions.split(' ') {
            assert!(
                listed.insert(format!("{name} {function}"), reason).is_none(),
                "{function} is there twice"
            );
        }
    }
    assert!(found.len() > 100, "{found:?}");
    let missing: Vec<_> = found.keys().filter(|name| !listed.contains_key(*name)).collect();
    let stale: Vec<_> = listed.keys().filter(|name| !found.contains_key(*name)).collect();
    assert!(missing.is_empty(), "write to {LIST} why safe code breaks no law with:\n{missing:#?}");
    assert!(stale.is_empty(), "take out of {LIST}:\n{stale:#?}");
    let unlike: Vec<_> = listed
        .iter()
        .filter(|(name, reason)| reason.starts_with("unsafe") != found[*name])
        .map(|(name, _)| name)
        .collect();
    assert!(unlike.is_empty(), "unsafe, and listed as safe, or the other way round:\n{unlike:#?}");
}
