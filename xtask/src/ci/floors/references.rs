//! Reads the sources of one crate and collects which of its top-level modules names which.

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    str::FromStr,
};

/// The items declared at the root of the crate, apart from `mod` and `use`.
pub(super) const ROOT: &str = "(root)";

/// Where one module names another: `file:line`, for each pair.
pub(super) type References = BTreeMap<(String, String), BTreeSet<String>>;

/// Reads the crate whose `lib.rs` is in this folder.
pub(super) fn read(sources: &Path) -> Result<References> {
    let root = sources.join("lib.rs");
    let tokens = parse(&root)?;
    let names = Names::of(&tokens);
    let mut reader = Reader { names, file: root, found: References::new() };
    reader.walk(&trees(tokens), &mut vec![])?;
    Ok(reader.found)
}

fn parse(file: &Path) -> Result<TokenStream> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    TokenStream::from_str(&text).map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))
}

/// Tokens that are compiled into the library: an item under `cfg(test)`, `cfg(doctest)` or `cfg(loom)` is left out.
fn trees(tokens: TokenStream) -> Vec<TokenTree> {
    let all: Vec<TokenTree> = tokens.into_iter().collect();
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < all.len() {
        if is_test_only(&all[at..]) {
            at += 2;
            at += item(&all[at..]);
        } else {
            kept.push(all[at].clone());
            at += 1;
        }
    }
    kept
}

fn is_test_only(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(hash), TokenTree::Group(attribute), ..] = tokens else { return false };
    let text = attribute.stream().to_string();
    let is_cfg = text.starts_with("cfg") && !text.starts_with("cfg_attr");
    let names: Vec<_> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    hash.as_char() == '#'
        && is_cfg
        && !names.contains(&"not")
        && ["test", "doctest", "loom"].iter().any(|test| names.contains(test))
}

/// How many tokens the item, statement or field takes that starts here.
fn item(tokens: &[TokenTree]) -> usize {
    const ITEMS: [&str; 14] = [
        "pub", "fn", "impl", "struct", "mod", "unsafe", "const", "static", "enum", "trait", "type", "use",
        "extern", "async",
    ];
    let word =
        |token: &TokenTree| matches!(token, TokenTree::Ident(name) if ITEMS.iter().any(|item| name == item));
    let is_field = !tokens.iter().take(4).any(word)
        || matches!(tokens, [_, TokenTree::Punct(colon), ..] if colon.as_char() == ':');
    let is_use = tokens.iter().take(3).any(|token| matches!(token, TokenTree::Ident(name) if name == "use"));
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Punct(end) if end.as_char() == ';' => return at + 1,
            TokenTree::Punct(end) if end.as_char() == ',' && is_field => return at + 1,
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace && !is_use => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// The top-level module of each name that the root declares or re-exports.
struct Names {
    modules: BTreeSet<String>,
    exported: BTreeMap<String, String>,
}

impl Names {
    fn of(root: &TokenStream) -> Self {
        let tokens = trees(root.clone());
        let mut names = Self { modules: BTreeSet::new(), exported: BTreeMap::new() };
        for pair in tokens.windows(2) {
            if let [TokenTree::Ident(keyword), TokenTree::Ident(name)] = pair
                && keyword == "mod"
            {
                names.modules.insert(name.to_string());
            }
        }
        for (at, token) in tokens.iter().enumerate() {
            if matches!(token, TokenTree::Ident(word) if word == "use") {
                names.export(&tokens[at + 1..]);
            }
        }
        names
    }

    /// Notes the names that `use module::{A, B as C}` at the root introduces.
    fn export(&mut self, tokens: &[TokenTree]) {
        let mut path = tokens.iter().take_while(|token| !is_punct(token, ';'));
        let mut first = path.next();
        if matches!(first, Some(TokenTree::Ident(word)) if word == "crate" || word == "self") {
            first = path.nth(2);
        }
        let mut rest = Vec::new();
        let groups: Vec<(String, Vec<TokenTree>)> = match first {
            Some(TokenTree::Group(group)) => split(group.stream()).into_iter().filter_map(named).collect(),
            Some(TokenTree::Ident(module)) => {
                rest.extend(path.cloned());
                vec![(module.to_string(), rest)]
            }
            _ => return,
        };
        for (module, rest) in groups {
            if self.modules.contains(&module) {
                let mut names = Vec::new();
                last_names(&rest, &mut names);
                self.exported.extend(names.into_iter().map(|name| (name, module.clone())));
            }
        }
    }

    /// The module that a name at the root belongs to.
    fn module(&self, name: &str) -> String {
        if self.modules.contains(name) {
            return name.to_owned();
        }
        self.exported.get(name).cloned().unwrap_or_else(|| ROOT.to_owned())
    }
}

/// The first name of a path, and the tokens after it.
fn named(tokens: Vec<TokenTree>) -> Option<(String, Vec<TokenTree>)> {
    match tokens.split_first() {
        Some((TokenTree::Ident(name), rest)) => Some((name.to_string(), rest.to_vec())),
        _ => None,
    }
}

/// The parts of a list between its commas.
fn split(list: TokenStream) -> Vec<Vec<TokenTree>> {
    let tokens: Vec<_> = list.into_iter().collect();
    tokens.split(|token| is_punct(token, ',')).map(<[_]>::to_vec).filter(|part| !part.is_empty()).collect()
}

/// The names that the rest of a `use` path brings in.
fn last_names(tokens: &[TokenTree], names: &mut Vec<String>) {
    match tokens.last() {
        Some(TokenTree::Group(group)) => {
            split(group.stream()).iter().for_each(|part| last_names(part, names));
        }
        Some(TokenTree::Ident(name)) => names.push(name.to_string()),
        _ => {}
    }
}

fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

/// Whether `::` stands here.
fn is_path(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [TokenTree::Punct(first), second, ..]
        if first.as_char() == ':' && first.spacing() == Spacing::Joint && is_punct(second, ':'))
}

struct Reader {
    names: Names,
    file: PathBuf,
    found: References,
}

impl Reader {
    /// Looks through the tokens of a module; `path` is its path from the root.
    fn walk(&mut self, tokens: &[TokenTree], path: &mut Vec<String>) -> Result<()> {
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at..] {
                [TokenTree::Ident(keyword), TokenTree::Ident(name), TokenTree::Group(body), ..]
                    if keyword == "mod" =>
                {
                    path.push(name.to_string());
                    self.walk(&trees(body.stream()), path)?;
                    path.pop();
                    at += 3;
                }
                [TokenTree::Ident(keyword), TokenTree::Ident(name), end, ..]
                    if keyword == "mod" && is_punct(end, ';') =>
                {
                    self.file_of(&name.to_string(), path)?;
                    at += 3;
                }
                // A re-export of the root is no reference.
                [TokenTree::Ident(keyword), ..] if keyword == "use" && path.is_empty() => {
                    at += item(&tokens[at..]);
                }
                [TokenTree::Ident(word), rest @ ..] if word == "crate" && is_path(rest) => {
                    self.note(&rest[2..], path);
                    at += 3;
                }
                [TokenTree::Ident(word), ..] if word == "super" => {
                    let mut up = 0;
                    while matches!(&tokens[at..], [TokenTree::Ident(word), rest @ ..] if word == "super" && is_path(rest))
                    {
                        up += 1;
                        at += 3;
                    }
                    match up {
                        0 => at += 1,
                        _ if up == path.len() => self.note(&tokens[at..], path),
                        _ => {}
                    }
                }
                [TokenTree::Ident(word), rest @ ..]
                    if path.is_empty() && is_path(rest) && self.names.modules.contains(&word.to_string()) =>
                {
                    self.note(&tokens[at..], path);
                    at += 3;
                }
                [TokenTree::Group(group), ..] => {
                    self.walk(&trees(group.stream()), path)?;
                    at += 1;
                }
                _ => at += 1,
            }
        }
        Ok(())
    }

    /// Reads the file of `mod name;`.
    fn file_of(&mut self, name: &str, path: &mut Vec<String>) -> Result<()> {
        let stem = self.file.file_stem().unwrap_or_default();
        let parent = self.file.parent().unwrap_or(Path::new(""));
        let folder = match path.is_empty() || stem == "mod" {
            true => parent.to_owned(),
            false => parent.join(stem),
        };
        let one = folder.join(format!("{name}.rs"));
        let file = if one.exists() { one } else { folder.join(name).join("mod.rs") };
        let tokens = trees(parse(&file)?);
        let outer = std::mem::replace(&mut self.file, file);
        path.push(name.to_owned());
        self.walk(&tokens, path)?;
        path.pop();
        self.file = outer;
        Ok(())
    }

    /// Notes the names that the module uses from the root on: one name, or a list.
    fn note(&mut self, tokens: &[TokenTree], path: &[String]) {
        match tokens.first() {
            Some(TokenTree::Ident(name)) => {
                let from = path.first().map_or(ROOT, String::as_str).to_owned();
                let to = self.names.module(&name.to_string());
                if from != to {
                    let place = format!("{}:{}", self.file.display(), name.span().start().line);
                    self.found.entry((from, to)).or_default().insert(place);
                }
            }
            Some(TokenTree::Group(group)) => {
                split(group.stream()).iter().for_each(|part| self.note(part, path));
            }
            _ => {}
        }
    }
}
