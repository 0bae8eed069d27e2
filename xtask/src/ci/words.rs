//! Words that the project does not use, and names that two types of one crate share.

use super::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The list: one `word: instead` or `name word: instead` a line.
const LIST: &str = "xtask/words.txt";
/// Where text is searched.
const FOLDERS: [&str; 5] = ["crates", "docs", "examples", "tests", "xtask"];
const ENDINGS: [&str; 11] = ["rs", "md", "py", "pyi", "toml", "tpl", "js", "css", "html", "cu", "hpp"];

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let root = workspace.root();
    let list = std::fs::read_to_string(root.join(LIST)).with_context(|| LIST.to_owned())?;
    let rules = rules(&list);
    let mut files = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in FOLDERS {
        collect(&root.join(folder), &mut files)?;
    }
    let (mut troubles, mut types) = (Vec::new(), Types::new());
    for file in &files {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let path = file.strip_prefix(root).unwrap_or(file).to_string_lossy().into_owned();
        troubles.extend(search(&rules, &path, &text));
        note_types(&mut types, &path, &text);
    }
    troubles.extend(shared_names(&types));
    for trouble in &troubles {
        println!("{trouble}");
    }
    Ok(match troubles.len() {
        0 => Outcome::Passed,
        count => Outcome::Failed(format!("{count} words or names, listed above; {LIST} says what to write")),
    })
}

/// One line of the list.
struct Rule<'a> {
    word: &'a str,
    instead: &'a str,
    /// Whether only names of modules and types are searched.
    is_name: bool,
}

fn rules(list: &str) -> Vec<Rule<'_>> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let rule = |line| {
        let (word, instead) = str::split_once(line, ": ")?;
        let name = word.strip_prefix("name ");
        Some(Rule { word: name.unwrap_or(word), instead, is_name: name.is_some() })
    };
    lines.filter_map(rule).collect()
}

/// Collects the text files below a folder, without build outputs.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known)) {
            files.push(path);
        }
    }
    Ok(())
}

/// Every place where a file breaks a rule, as `file:line`.
fn search(rules: &[Rule<'_>], path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let is_library = path.starts_with("crates/") && path.contains("/src/");
    for (number, line) in text.lines().enumerate() {
        let name = declared(line).map(|(_, name)| name.to_lowercase());
        let lower = line.to_lowercase();
        for Rule { word, instead, is_name } in rules {
            let breaks = match is_name {
                true => is_library && name.as_deref() == Some(*word),
                false => has_word(&lower, word),
            };
            if breaks {
                found.push(format!("{path}:{}: \"{word}\": write {instead}", number + 1));
            }
        }
    }
    found
}

/// Whether a line has the word as one of its own: letters around it make another word, underscores do not.
fn has_word(line: &str, word: &str) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    line.match_indices(word).any(|(start, _)| {
        let bytes = line.as_bytes();
        !is_letter(start.checked_sub(1).and_then(|before| bytes.get(before)))
            && !is_letter(bytes.get(start + word.len()))
    })
}

/// The keyword and the name of the module or type that a line of Rust declares.
fn declared(line: &str) -> Option<(&str, &str)> {
    let start = line.trim_start();
    let rest = ["pub(crate) ", "pub(super) ", "pub "].iter().find_map(|prefix| start.strip_prefix(prefix));
    let rest = rest.unwrap_or(start);
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let (keyword, rest) = rest.split_once(' ')?;
    ["mod", "struct", "enum", "trait", "union", "type"].contains(&keyword).then_some(())?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    rest.get(..end).filter(|name| !name.is_empty()).map(|name| (keyword, name))
}

/// Where each crate declares a type of a name that other modules can see.
type Types = BTreeMap<(String, String), Vec<String>>;

fn note_types(types: &mut Types, path: &str, text: &str) {
    let Some((folder, _)) =
        path.split_once("/src/").filter(|_| path.starts_with("crates/") && path.ends_with(".rs"))
    else {
        return;
    };
    // The names in generated bindings are those of C.
    if folder.ends_with("-sys") {
        return;
    }
    for (number, line) in text.lines().enumerate() {
        if let Some((keyword, name)) = declared(line)
            && keyword != "mod"
            && line.trim_start().starts_with("pub")
        {
            let place = format!("{path}:{}", number + 1);
            types.entry((folder.to_owned(), name.to_owned())).or_default().push(place);
        }
    }
}

fn shared_names(types: &Types) -> impl Iterator<Item = String> + '_ {
    let shared = types.iter().filter(|(_, places)| places.len() > 1);
    shared
        .map(|((_, name), places)| format!("{}: \"{name}\" is the name of several types", places.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_alone_and_in_names() {
        let rules = rules("# a comment\nforbidden: allowed\nname bell: EventCount\n");
        assert_eq!(rules.len(), 2);
        let found = |path, text| search(&rules, path, text).len();
        assert_eq!(found("docs/src/a.md", "Forbidden here,\nunforbidden there"), 1);
        assert_eq!(found("tests/a.rs", "fn forbidden_is_refused() {}"), 1);
        assert_eq!(found("crates/a/src/b.rs", "pub(crate) struct Bell {\nlet bell = 1;"), 1);
        assert_eq!(found("crates/a/src/b.rs", "mod bell;"), 1);
        assert_eq!(found("tests/a.rs", "mod bell;"), 0);
        let phrase = super::rules("of stone: of rock\n");
        assert_eq!(search(&phrase, "tests/a.rs", "/// A wall of stone.").len(), 1);
        assert_eq!(search(&phrase, "tests/a.rs", "/// A wall of stones, of course.").len(), 0);
        let place = search(&rules, "docs/src/a.md", "\nforbidden");
        assert_eq!(place, ["docs/src/a.md:2: \"forbidden\": write allowed"]);
    }

    #[test]
    fn two_visible_types_of_one_crate_may_not_share_a_name() {
        let mut types = Types::new();
        note_types(&mut types, "crates/a/src/b.rs", "pub struct Same<T>(T);\nstruct Hidden;");
        note_types(&mut types, "crates/a/src/c.rs", "pub(crate) enum Same {}\nstruct Hidden;");
        note_types(&mut types, "crates/b/src/c.rs", "pub(crate) enum Same {}");
        assert_eq!(shared_names(&types).count(), 1);
    }
}
