//! The bodies of lookbehinds: lists of sequences of single characters.
//!
//! The order of the sequences does not matter: a lookbehind holds if any of them ends at the
//! position.

use regex_syntax::hir::ClassUnicode;

use super::ast::{Greed, Node, Repeat};

const MAX_SEQUENCES: usize = 64;
const MAX_LENGTH: usize = 64;

/// Returns every sequence that `node` matches; None if there are too many, or one is too long or of
/// variable length.
pub fn sequences(node: &Node) -> Option<Vec<Vec<ClassUnicode>>> {
    let found = match node {
        Node::Empty => vec![Vec::new()],
        Node::Class(class) => vec![vec![class.clone()]],
        Node::Concat(nodes) => {
            let mut parts = nodes.iter().map(sequences);
            parts.try_fold(vec![Vec::new()], |joined, part| product(&joined, &part?))?
        }
        Node::Alternation(nodes) => {
            let branches = nodes.iter().map(sequences).collect::<Option<Vec<_>>>()?;
            branches.concat()
        }
        Node::Repeat(Repeat {
            node,
            min,
            max: Some(max),
            greed: Greed::Greedy,
            ..
        }) if min == max && *min as usize <= MAX_LENGTH => {
            let part = sequences(node)?;
            (0..*min).try_fold(vec![Vec::new()], |joined, _| product(&joined, &part))?
        }
        _ => return None,
    };
    let few = found.len() <= MAX_SEQUENCES;
    (few && found.iter().all(|one| one.len() <= MAX_LENGTH)).then_some(found)
}

fn product(
    left: &[Vec<ClassUnicode>],
    right: &[Vec<ClassUnicode>],
) -> Option<Vec<Vec<ClassUnicode>>> {
    if left.len() * right.len() > MAX_SEQUENCES {
        return None;
    }
    let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (a, b)));
    Some(pairs.map(|(a, b)| [&a[..], &b[..]].concat()).collect())
}
