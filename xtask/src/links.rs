//! Links of Markdown text.

use pulldown_cmark::{BrokenLink, CowStr, Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;

/// Where the parser sends a link that only rustdoc can resolve.
const ITEM: &str = "item::";

/// Replaces links to Rust items, which only rustdoc resolves, by their text.
pub(crate) fn flatten(text: &str) -> String {
    let resolve = |link: BrokenLink<'_>| {
        let of_rust = link.reference.starts_with('`') || link.reference.contains("::");
        of_rust.then_some((CowStr::Borrowed(ITEM), CowStr::Borrowed("")))
    };
    let parser = Parser::new_with_broken_link_callback(text, Options::ENABLE_TABLES, Some(resolve));
    let definitions: Vec<_> = parser
        .reference_definitions()
        .iter()
        .filter(|(_, definition)| is_item(&definition.dest))
        .map(|(_, definition)| (definition.span.clone(), 0..0))
        .collect();
    let mut edits = item_links(parser);
    edits.extend(definitions);
    edits.sort_by_key(|(whole, _)| whole.start);
    let mut flat = String::with_capacity(text.len());
    let mut done = 0;
    for (whole, label) in edits {
        flat.push_str(&text[done..whole.start]);
        flat.push_str(&text[label]);
        done = whole.end;
    }
    flat.push_str(&text[done..]);
    flat
}

/// The extents of the links to items, each with that of its label.
fn item_links<'a, F>(parser: Parser<'a, F>) -> Vec<(Range<usize>, Range<usize>)>
where
    F: pulldown_cmark::BrokenLinkCallback<'a>,
{
    let mut edits = Vec::new();
    let mut open: Option<(Range<usize>, Range<usize>)> = None;
    for (event, range) in parser.into_offset_iter() {
        match (event, &mut open) {
            (Event::Start(Tag::Link { dest_url, .. }), _) if is_item(&dest_url) => {
                open = Some((range.clone(), range.end..range.start));
            }
            (Event::End(TagEnd::Link), Some(_)) => edits.extend(open.take()),
            (_, Some((_, label))) => {
                label.start = label.start.min(range.start);
                label.end = label.end.max(range.end);
            }
            _ => {}
        }
    }
    // A link without a label leaves no text.
    edits.iter_mut().filter(|(_, label)| label.start > label.end).for_each(|(_, label)| *label = 0..0);
    edits
}

/// Whether the destination is a path of Rust (`crate::Device`, `Device::open()`, `struct@Device`).
fn is_item(destination: &str) -> bool {
    let of_a_path = |c: char| c.is_alphanumeric() || "_:@!()<>,`'".contains(c);
    !destination.is_empty() && !destination.contains(":/") && destination.chars().all(of_a_path)
}

/// The destinations of all links and images.
pub(crate) fn destinations(text: &str) -> Vec<String> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
        .filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                Some(dest_url.into_string())
            }
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_items_become_their_text() {
        for (before, after) in [
            ("a [`Device`] b", "a `Device` b"),
            ("a [`open`](Device::open) b", "a `open` b"),
            ("a [`open`](Device::open()) b", "a `open` b"),
            ("see [the *trait*](crate::Backend), [`B`][crate::B]", "see the *trait*, `B`"),
            ("[x][y]\n\n[y]: crate::Y\n", "x\n\n\n"),
            ("| [`A`] | b |\n|---|---|\n| [`C`](C) | d |", "| `A` | b |\n|---|---|\n| `C` | d |"),
        ] {
            assert_eq!(flatten(before), after);
        }
    }

    #[test]
    fn other_text_is_unchanged() {
        for text in [
            "[book](https://example.org/a) and <https://example.org>",
            "[page](docs/src/safety.md#one) and [part](#two)",
            "an index `a[1]`, a range [0, 1), a note [1]",
            "```rust\nlet x = [`no`];\n// [`Device`]\n```",
        ] {
            assert_eq!(flatten(text), text);
        }
    }

    #[test]
    fn destinations_are_found_in_tables_too() {
        let text = "| [a](one.md) |\n|---|\n| ![b](two.png) |\n\n[c]\n\n[c]: three.md#d";
        assert_eq!(destinations(text), ["one.md", "two.png", "three.md#d"]);
    }
}
