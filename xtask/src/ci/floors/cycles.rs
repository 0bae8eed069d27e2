//! Finds the cycles of a graph.

use super::references::References;
use std::collections::{BTreeMap, BTreeSet};

/// The groups of modules each of which reaches all others of its group.
pub(super) fn find(references: &References) -> Vec<Vec<String>> {
    let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in references.keys() {
        edges.entry(from).or_default().insert(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|start| (*start, reach(&edges, start))).collect();
    let mut groups: Vec<Vec<String>> = Vec::new();
    for (start, ends) in &reached {
        let is_mutual = |end: &&&str| reached.get(**end).is_some_and(|back| back.contains(start));
        let group: Vec<String> = ends.iter().filter(is_mutual).map(|end| (*end).to_owned()).collect();
        if !group.is_empty() && !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// The modules that a module can reach; itself only through a cycle.
fn reach<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>, start: &str) -> BTreeSet<&'a str> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![start]);
    while let Some(at) = next.pop() {
        for to in edges.get(at).into_iter().flatten() {
            if reached.insert(*to) {
                next.push(to);
            }
        }
    }
    reached
}
