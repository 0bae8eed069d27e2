//! The book: its pages and links, and mdBook itself where it is installed.

use super::Outcome;
use crate::{links, shell::Shell, workspace::Workspace};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::Path;

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let troubles = check(&workspace.root().join("docs/src"))?;
    if !troubles.is_empty() {
        return Ok(Outcome::Failed(troubles.join("; ")));
    }
    let shell = Shell::new(workspace.root());
    if !shell.quiet("mdbook", &["--version"]).is_ok_and(|done| done.success) {
        return Ok(Outcome::Skipped("pages and links are good; mdbook is not installed".to_owned()));
    }
    let destination = workspace.target("book");
    let destination = destination.to_str().context("the target directory is not UTF-8")?;
    Ok(Outcome::of(&shell.run("mdbook", &["build", "docs", "--dest-dir", destination])?, "mdbook"))
}

/// Returns what is wrong with the pages. mdBook itself makes missing pages and lets dead links pass.
fn check(folder: &Path) -> Result<Vec<String>> {
    let mut troubles = Vec::new();
    let mut pages = BTreeSet::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            pages.insert(name);
        }
    }
    let mut listed = BTreeSet::from(["SUMMARY.md".to_owned()]);
    for page in &pages {
        let text = std::fs::read_to_string(folder.join(page))?;
        for link in links::destinations(&text).into_iter().filter(|link| !link.contains(":/")) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.as_str() } else { file };
            if page == "SUMMARY.md" {
                listed.insert(target.to_owned());
            }
            match std::fs::read_to_string(folder.join(target)) {
                Err(_) => troubles.push(format!("{page}: there is no {target}")),
                Ok(text) if !anchor.is_empty() && !anchors(&text).contains(anchor) => {
                    troubles.push(format!("{page}: {target} has no section #{anchor}"));
                }
                Ok(_) => {}
            }
        }
    }
    troubles.extend(pages.difference(&listed).map(|page| format!("SUMMARY.md does not list {page}")));
    Ok(troubles)
}

/// The anchors that mdBook gives to headings: lower case, blanks as hyphens, no other punctuation.
fn anchors(text: &str) -> BTreeSet<String> {
    let heading =
        |line: &str| line.starts_with('#').then(|| line.trim_start_matches('#').trim().to_lowercase());
    let keep = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then_some(c),
    };
    text.lines().filter_map(heading).map(|title| title.chars().filter_map(keep).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_and_forgotten_pages_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("SUMMARY.md", "- [One](one.md)\n");
        write("one.md", "# One thing\n[here](#one-thing) [away](https://example.org/none.md)\n");
        assert_eq!(check(folder.path()).unwrap(), Vec::<String>::new());
        write("two.md", "[a](none.md) [b](one.md#nothing) [c](one.md#one-thing)\n");
        let troubles = check(folder.path()).unwrap();
        assert_eq!(troubles.len(), 3, "{troubles:?}");
    }
}
