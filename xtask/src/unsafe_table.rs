//! Compares the table of public `unsafe` items in the page on safety with the code.

use std::{collections::BTreeSet, fs, path::Path};
use syn::{ImplItem, Item, TraitItem, Type, Visibility};

/// The crates that users reach.
const CRATES: [&str; 12] = [
    "gpumem",
    "gpumem-core",
    "gpumem-layout",
    "gpumem-memory",
    "gpumem-runtime",
    "gpumem-kernel",
    "gpumem-collectives",
    "gpumem-cuda",
    "gpumem-roc",
    "gpumem-host",
    "gpumem-ops",
    "gpumem-files",
];
/// Items that only the other crates of gpumem call.
const HIDDEN: [&str; 6] = [
    "Destination::copy_from",
    "Key::new",
    "MemoryBlock::hand_over_uses",
    "PinnedPages::lock",
    "PinnedPages::unlock",
    "Tracked::new",
];
/// Traits whose functions the runtime calls; the table names the traits.
const BACKEND: [&str; 7] =
    ["Backend", "DriverDevice", "DeviceBuffer", "Stream", "Event", "DriverModule", "Barrier"];

fn sources(directory: &Path, found: &mut Vec<syn::File>) {
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.ends_with("gpumem-kernel/src/simt") {
            continue; // one row of the table names its functions as a whole
        }
        if entry.is_dir() {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(syn::parse_file(&fs::read_to_string(&entry).unwrap()).unwrap());
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The names of the public `unsafe` items.
fn names(items: &[Item], found: &mut BTreeSet<String>) {
    for item in items {
        match item {
            Item::Mod(module) => names(module.content.as_ref().map_or(&[], |(_, items)| items), found),
            Item::Fn(function) if is_public(&function.vis) && function.sig.unsafety.is_some() => {
                found.insert(function.sig.ident.to_string());
            }
            Item::Trait(of) if is_public(&of.vis) => {
                if of.unsafety.is_some() {
                    found.insert(of.ident.to_string());
                }
                let functions = of.items.iter().filter_map(|item| match item {
                    TraitItem::Fn(function) if function.sig.unsafety.is_some() => Some(&function.sig.ident),
                    _ => None,
                });
                if !BACKEND.contains(&&*of.ident.to_string()) && of.unsafety.is_none() {
                    found.extend(functions.map(|function| format!("{}::{function}", of.ident)));
                }
            }
            Item::Impl(of) if of.trait_.is_none() => {
                let Type::Path(path) = &*of.self_ty else { continue };
                let Some(name) = path.path.segments.last().map(|segment| &segment.ident) else { continue };
                for item in &of.items {
                    if let ImplItem::Fn(function) = item
                        && is_public(&function.vis)
                        && function.sig.unsafety.is_some()
                    {
                        found.insert(format!("{name}::{}", function.sig.ident));
                    }
                }
            }
            _ => {}
        }
    }
}

#[test]
fn the_page_names_all_that_is_unsafe() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeSet::new();
    for name in CRATES {
        let mut files = Vec::new();
        sources(&root.join("crates").join(name).join("src"), &mut files);
        files.iter().for_each(|file| names(&file.items, &mut found));
    }
    found.insert("Parameter".to_owned());
    HIDDEN.iter().for_each(|name| assert!(found.remove(*name), "{name} is gone"));
    let page = fs::read_to_string(root.join("docs/src/safety.md")).unwrap();
    let (_, table) = page.split_once("## What `unsafe` is left").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    let first = rows.filter_map(|line| line.split('|').nth(1));
    let named: BTreeSet<String> =
        first.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect();
    let named: BTreeSet<String> = named.into_iter().filter(|name| name != "simt").collect();
    assert!(found.len() > 20, "{found:?}");
    let missing: Vec<_> = found.difference(&named).collect();
    let stale: Vec<_> = named.difference(&found).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "not in the table: {missing:?}; not in the code: {stale:?}"
    );
}
