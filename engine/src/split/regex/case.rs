//! Sets under (?i) and beside it: what they hold, and the mixtures of them that the package `regex`
//! misreads, which are refused.

use regex_syntax::hir::ClassUnicode;

use super::ast::{Node, single_of};
use super::parser::Flags;
use super::property::case_closure;

/// The sets of a pattern to which case matters.
#[derive(Default)]
pub struct CasedSets {
    /// The sets and characters under (?i).
    folded: Vec<ClassUnicode>,
    /// Negated sets outside of (?i) that (?i) would narrow.
    narrowable: Vec<ClassUnicode>,
}

impl CasedSets {
    /// How many sets and characters so far are under (?i).
    pub fn count_folded(&self) -> usize {
        self.folded.len()
    }

    /// Note a set that is written as what it does not hold.
    pub fn note_negated(&mut self, class: &ClassUnicode, flags: Flags) {
        let mut complement = class.clone();
        complement.negate();
        if !flags.ignore_case && case_closure(&complement) != complement {
            self.narrowable.push(class.clone());
        }
    }

    /// Note a set under (?i).
    pub fn note_folded(&mut self, class: &ClassUnicode, flags: Flags) {
        if flags.ignore_case {
            self.folded.push(class.clone());
        }
    }

    /// `class`, under (?i) if that is set.
    pub fn folded(&mut self, class: ClassUnicode, flags: Flags) -> ClassUnicode {
        if !flags.ignore_case {
            return class;
        }
        let closure = case_closure(&class);
        self.note_folded(&closure, flags);
        closure
    }

    /// Why `regex` would not find every match of `node`, the whole pattern, if so. It looks for a
    /// start by one set of all that a match can start with, and applies (?i) to all of it if to
    /// any: (?i:c)|[^ab] does not match A.
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

/// Why `regex` would not take the branches of an alternation one by one, if so: of those that are
/// one character it makes one set. `folded` says of each branch whether (?i) is in it.
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
    // It applies (?i) to too many of them: (?i:c)|[b]|[^a] does not match A.
    if with && without {
        return Some("branches of one character each, some under (?i) and some not");
    }
    // And of these it makes one that lacks both: [^a]|[^b] does not match a.
    let mut lacked: Vec<char> = all.into_iter().filter_map(lacking).collect();
    lacked.dedup();
    (lacked.len() > 1)
        .then_some("two branches of one character each that match all but one character")
}

/// The sets of `node` if it is one character, or of such branches of an alternation, however deep.
fn single_branches<'a>(node: &'a Node, out: &mut Vec<&'a ClassUnicode>) {
    match node {
        Node::Class(class) => out.push(class),
        Node::Alternation(nodes) => nodes.iter().for_each(|node| single_branches(node, out)),
        _ => {}
    }
}

/// The character that `class` alone lacks.
fn lacking(class: &ClassUnicode) -> Option<char> {
    let mut complement = class.clone();
    complement.negate();
    single_of(&complement)
}
