//! Rewrites a tree to an equivalent one that the compiler supports.
//!
//! Afterwards no body of a repeat with a bound above one, or without a bound, can be empty, and
//! every possessive repeat is one of a single character.

use super::ast::{Greed, Node, Repeat, alternation, concat};
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
        Node::Repeat(part) => repeat(part)?,
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

fn repeat(mut part: Repeat) -> Result<Node, PatternFault> {
    *part.node = simplify(*part.node)?;
    if part.max == Some(0) {
        return Ok(Node::Empty);
    }
    if (part.min, part.max) == (1, Some(1)) {
        return Ok(*part.node);
    }
    if part.node.is_nullable() && part.max != Some(1) {
        // The continuation after an empty round is also tried without that round.
        let fuller = match part.greed {
            Greed::Lazy => None,
            Greed::Greedy | Greed::Possessive => nonempty(&part.node),
        };
        *part.node = fuller.ok_or_else(|| PatternFault {
            position: part.position,
            problem: "a repeat of what can be empty, unless it is empty as a last resort".into(),
        })?;
        part.min = 0;
    }
    Ok(Node::Repeat(part))
}

fn atomic(mut node: Node) -> Node {
    match &mut node {
        Node::Class(_) | Node::Empty => node,
        Node::Repeat(part) if part.greed != Greed::Lazy && matches!(*part.node, Node::Class(_)) => {
            part.greed = Greed::Possessive;
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
        Node::Repeat(part) if part.greed == Greed::Greedy => Some(Node::Repeat(Repeat {
            node: Box::new(nonempty(&part.node)?),
            min: part.min.max(1),
            ..*part
        })),
        _ => None,
    }
}
