//! The pages of the facade's types show their methods, built alone, as docs.rs builds them.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Methods that the pages must show, beside those of other types of the same kind.
const PAGES: &[(&str, &[&str])] = &[
    ("Device", &["open", "stream", "to_device", "device_array", "pinned_array"]),
    ("Stream", &["to_device", "copy_to_host", "scope", "synchronize"]),
    ("Event", &["query", "synchronize"]),
    ("DeviceArray", &["copy_to_host", "slice", "fill", "reshape", "split_at_mut", "try_clone"]),
    ("DeviceView", &["copy_to_host", "slice"]),
    ("DeviceViewMut", &["fill", "slice_mut", "copy_to_device"]),
    ("DeviceRecord", &["read", "write", "field"]),
    ("ImportedArray", &["copy_to_host", "try_into_array"]),
    ("UninitArray", &["fill", "copy_from"]),
    ("PinnedArray", &["view", "view_mut", "copy_from"]),
    ("MappedArray", &["view", "device_view"]),
    ("ManagedArray", &["view", "prefetch", "advise"]),
    ("PinnedHost", &["view"]),
    ("MappedHost", &["view", "device_view"]),
    ("RegisteredArray", &["view", "deregister"]),
    ("MappedRegisteredArray", &["device_view", "deregister"]),
    ("Kernel", &["launch", "launch_in"]),
    ("IpcArray", &["copy_to_host"]),
];

#[test]
fn the_page_of_every_array_type_shows_its_methods() {
    let Some(docs) = build() else { return };
    let missing: Vec<String> = PAGES
        .iter()
        .flat_map(|(name, methods)| {
            let page = Page::read(&docs, name);
            let absent = methods.iter().filter(|method| !page.shows(method)).copied().collect::<Vec<_>>();
            (!absent.is_empty()).then(|| format!("{name}: {}", absent.join(", ")))
        })
        .collect();
    assert!(missing.is_empty(), "pages of {} lack methods:\n{}", docs.display(), missing.join("\n"));
}

#[test]
fn a_page_shows_only_methods_that_its_files_list_for_it() {
    let listed =
        r#"Object.fromEntries([["gpumem",[["<section id=\"method.fill\">",0,"gpumem::types::A"]]]])"#;
    let page = |name: &str| Page {
        path: format!("gpumem::types::{name}"),
        html: String::new(),
        lists: vec![listed.to_owned()],
    };
    assert!(page("A").shows("fill"));
    assert!(!page("A").shows("fi") && !page("B").shows("fill"));
}

/// The page of a type alias, and the lists of methods that it loads.
struct Page {
    /// The alias as the lists name it.
    path: String,
    html: String,
    lists: Vec<String>,
}

impl Page {
    fn read(docs: &Path, name: &str) -> Self {
        let html = std::fs::read_to_string(docs.join(format!("type.{name}.html"))).unwrap();
        // `<script src="../type.impl/.." data-self-path=".." async>`
        let scripts = html.split("<script ").filter(|script| script.contains("type.impl/"));
        let (mut path, mut lists) = (String::new(), Vec::new());
        for script in scripts {
            path = attribute(script, "data-self-path").to_owned();
            lists.push(std::fs::read_to_string(docs.join(attribute(script, "src"))).unwrap());
        }
        Self { path, html, lists }
    }

    fn shows(&self, method: &str) -> bool {
        let written = |text: &str, quote: &str| text.contains(&format!("id={quote}method.{method}{quote}"));
        written(&self.html, "\"")
            || self.lists.iter().any(|list| {
                // Each block ends with the aliases that it is for: `",0,"gpumem::types::DeviceArray",..]`.
                list.split("<details class=\\\"toggle implementors-toggle")
                    .any(|block| block.contains(&format!("\"{}\"", self.path)) && written(block, "\\\""))
            })
    }
}

fn attribute<'a>(tag: &'a str, name: &str) -> &'a str {
    tag.split_once(&format!("{name}=\"")).and_then(|(_, rest)| rest.split_once('"')).unwrap().0
}

/// Documents the facade without its dependencies, in a folder that has no pages of other crates. Nothing without rustdoc.
fn build() -> Option<PathBuf> {
    let rustdoc = std::env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into());
    if !Command::new(&rustdoc).arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: there is no rustdoc");
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("facade");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["doc", "--no-deps", "-p", "gpumem", "--target-dir"]).arg(&target).current_dir(root);
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTDOCFLAGS", "CARGO_BUILD_TARGET"] {
        cargo.env_remove(name);
    }
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "cargo doc:\n{}", String::from_utf8_lossy(&output.stderr));
    Some(target.join("doc/gpumem"))
}
