//! Sets under `(?i)` and outside of it, and the combinations of both that the package `regex`
//! misreads. Those are rejected.

use regex_syntax::hir::ClassUnicode;

use super::ast::{Node, single_of};
use super::parser::Flags;
use super::property::case_closure;

/// The sets of a pattern that depend on case.
#[derive(Default)]
pub struct CasedSets {
    /// Sets and characters under `(?i)`.
    folded: Vec<ClassUnicode>,
    /// Negated sets outside of `(?i)` that `(?i)` would narrow.
    narrowable: Vec<ClassUnicode>,
}

impl CasedSets {
    /// Returns the number of sets and characters under `(?i)` so far.
    pub fn count_folded(&self) -> usize {
        self.folded.len()
    }

    /// Records a negated set.
    pub fn note_negated(&mut self, class: &ClassUnicode, flags: Flags) {
        let mut complement = class.clone();
        complement.negate();
        if !flags.ignore_case && case_closure(&complement) != complement {
            self.narrowable.push(class.clone());
        }
    }

    /// Records a set under `(?i)`.
    pub fn note_folded(&mut self, class: &ClassUnicode, flags: Flags) {
        if flags.ignore_case {
            self.folded.push(class.clone());
        }
    }

    /// Returns `class`, closed under case if `(?i)` is set.
    pub fn folded(&mut self, class: ClassUnicode, flags: Flags) -> ClassUnicode {
        if !flags.ignore_case {
            return class;
        }
        let closure = case_closure(&class);
        self.note_folded(&closure, flags);
        closure
    }

    /// Returns why `regex` would miss matches of `node`, the whole pattern; None if it finds all.
    ///
    /// `regex` searches for a start with one set of all first characters, and applies `(?i)` to the
    /// whole set if any part is under it: `(?i:c)|[^ab]` does not match A.
    pub fn misread_starts(&self, node: &Node) -> Option<&'static str> {
        let mut starts = Vec::new();
        node.starts(&mut starts);
        let any = |sets: &[ClassUnicode]| starts.iter().any(|&start| sets.contains(start));
        (any(&self.folded) && any(&self.narrowable)).then_some(
            "a match can start with a character under (?i), or with one of a negated set that is \
             not under it",
        )
    }
}

/// Returns why `regex` would misread an alternation; None if it does not.
///
/// `regex` merges the branches of one character into one set. `folded` has whether `(?i)` occurs in
/// each branch.
pub fn misread_branches(nodes: &[Node], folded: &[bool]) -> Option<&'static str> {
    let mut all = Vec::new();
    let (mut with, mut without) = (false, false);
    for (node, &folded) in nodes.iter().zip(folded) {
        let before = all.len();
        single_branches(node, &mut all);
        if all.len() > before {
            *if folded { &mut with } else { &mut without } = true;
        }
    }
    // `regex` applies (?i) to all of them: (?i:c)|[b]|[^a] does not match A.
    if with && without {
        return Some("branches of one character each, some under (?i) and some not");
    }
    // The merged set lacks both characters: [^a]|[^b] does not match a.
    let mut lacked: Vec<char> = all.into_iter().filter_map(lacking).collect();
    lacked.dedup();
    (lacked.len() > 1)
        .then_some("two branches of one character each that match all but one character")
}

/// Collects the sets of the branches of one character, in nested alternations too.
fn single_branches<'a>(node: &'a Node, out: &mut Vec<&'a ClassUnicode>) {
    match node {
        Node::Class(class) => out.push(class),
        Node::Alternation(nodes) => nodes.iter().for_each(|node| single_branches(node, out)),
        _ => {}
    }
}

/// Returns the only character that is not in `class`; None if there is not exactly one.
fn lacking(class: &ClassUnicode) -> Option<char> {
    let mut complement = class.clone();
    complement.negate();
    single_of(&complement)
}
