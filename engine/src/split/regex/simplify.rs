//! Rewrites a tree to an equivalent one that the compiler supports.
//!
//! Afterwards no body of a repeat with a bound above one, or without a bound, can be empty, and
//! every possessive repeat is one of a single character.

use super::ast::{Greed, Node, alternation, concat};
use crate::split::PatternFault;

pub fn simplify(node: Node) -> Result<Node, PatternFault> {
    Ok(match node {
        Node::Concat(nodes) => {
            let nodes = nodes.into_iter().map(simplify);
            concat(nodes.collect::<Result<_, _>>()?)
        }
        Node::Alternation(nodes) => {
            let nodes = nodes.into_iter().map(simplify);
            alternation(united(nodes.collect::<Result<_, _>>()?))
        }
        Node::Repeat {
            node,
            min,
            max,
            greed,
            position,
        } => repeat(simplify(*node)?, min, max, greed, position)?,
        Node::Atomic(node) => atomic(simplify(*node)?),
        Node::Ahead { node, negative } => Node::Ahead {
            node: Box::new(simplify(*node)?),
            negative,
        },
        other => other,
    })
}

/// Merges neighbouring branches of one character into one set: the rest of the pattern is the same
/// for all of them.
fn united(mut nodes: Vec<Node>) -> Vec<Node> {
    nodes.dedup_by(|node, last| {
        let (Node::Class(class), Node::Class(last)) = (node, last) else {
            return false;
        };
        last.union(class);
        true
    });
    nodes
}

fn repeat(
    mut node: Node,
    mut min: u32,
    max: Option<u32>,
    greed: Greed,
    position: usize,
) -> Result<Node, PatternFault> {
    if max == Some(0) {
        return Ok(Node::Empty);
    }
    if (min, max) == (1, Some(1)) {
        return Ok(node);
    }
    if node.is_nullable() && max != Some(1) {
        // The continuation after an empty round is also tried without that round.
        let fuller = if greed == Greed::Lazy {
            None
        } else {
            nonempty(&node)
        };
        node = fuller.ok_or_else(|| PatternFault {
            position,
            problem: "a repeat of what can be empty, unless it is empty as a last resort".into(),
        })?;
        min = 0;
    }
    Ok(Node::Repeat {
        node: Box::new(node),
        min,
        max,
        greed,
        position,
    })
}

fn atomic(mut node: Node) -> Node {
    match &mut node {
        Node::Class(_) | Node::Empty => node,
        Node::Repeat {
            node: body, greed, ..
        } if *greed != Greed::Lazy && matches!(**body, Node::Class(_)) => {
            *greed = Greed::Possessive;
            node
        }
        _ => Node::Atomic(Box::new(node)),
    }
}

/// Returns the non-empty matches of a simplified `node`, in the same order.
///
/// None if `node` can be empty other than as its last alternative and unconditionally.
fn nonempty(node: &Node) -> Option<Node> {
    if !node.is_nullable() {
        return Some(node.clone());
    }
    match node {
        Node::Empty => Some(Node::Alternation(Vec::new())),
        Node::Concat(nodes) => {
            let (first, rest) = nodes.split_first()?;
            let rest = concat(rest.to_vec());
            let full = concat(vec![nonempty(first)?, rest.clone()]);
            Some(alternation(vec![full, nonempty(&rest)?]))
        }
        Node::Alternation(nodes) => {
            let (last, others) = nodes.split_last()?;
            if others.iter().any(Node::is_nullable) {
                return None;
            }
            let mut branches = others.to_vec();
            branches.push(nonempty(last)?);
            Some(alternation(branches))
        }
        Node::Repeat {
            node,
            min,
            max,
            greed: Greed::Greedy,
            position,
        } => Some(Node::Repeat {
            node: Box::new(nonempty(node)?),
            min: (*min).max(1),
            max: *max,
            greed: Greed::Greedy,
            position: *position,
        }),
        _ => None,
    }
}
