//! Rewrites a tree to an equivalent one that the compiler supports.
//!
//! Afterwards no body of a repeat with a bound above one, or without a bound, can be empty, and
//! every possessive repeat is one of a single character.

use super::ast::{Greed, Node, Repeat, alternation, concat};
use super::program::too_many_parts;
use crate::split::PatternFault;

/// Rewrites a tree. `budget` is the maximum size of what is copied; zero if that was exceeded.
pub fn simplify(node: Node, budget: &mut usize) -> Result<Node, PatternFault> {
    let mut all = |nodes: Vec<Node>| -> Result<Vec<Node>, PatternFault> {
        nodes
            .into_iter()
            .map(|node| simplify(node, budget))
            .collect()
    };
    Ok(match node {
        Node::Concat(nodes) => concat(all(nodes)?),
        Node::Alternation(nodes) => alternation(united(all(nodes)?)),
        Node::Repeat(part) => repeat(part, budget)?,
        Node::Atomic(node) => atomic(simplify(*node, budget)?),
        Node::Ahead { node, negative } => Node::Ahead {
            node: Box::new(simplify(*node, budget)?),
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

fn repeat(mut part: Repeat, budget: &mut usize) -> Result<Node, PatternFault> {
    *part.node = simplify(*part.node, budget)?;
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
            Greed::Greedy | Greed::Possessive => nonempty(&part.node, budget),
        };
        *part.node = fuller.ok_or_else(|| PatternFault {
            position: part.position,
            problem: match budget {
                0 => too_many_parts(),
                _ => "a repeat of what can be empty, unless it is empty as a last resort".into(),
            },
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
/// None if `node` can be empty other than as its last alternative and unconditionally, or if there
/// is no `budget` for the copies.
fn nonempty(node: &Node, budget: &mut usize) -> Option<Node> {
    if !node.is_nullable() {
        return copies(std::slice::from_ref(node), budget)?.pop();
    }
    match node {
        Node::Empty => Some(Node::Alternation(Vec::new())),
        Node::Concat(nodes) => {
            let from = |i: usize| {
                let mut full = vec![nonempty(&nodes[i], budget)?];
                full.extend(copies(&nodes[i + 1..], budget)?);
                Some(concat(full))
            };
            let branches = (0..nodes.len()).map(from).collect::<Option<_>>();
            branches.map(alternation)
        }
        Node::Alternation(nodes) => {
            let (last, others) = nodes.split_last()?;
            if others.iter().any(Node::is_nullable) {
                return None;
            }
            let mut branches = copies(others, budget)?;
            branches.push(nonempty(last, budget)?);
            Some(alternation(branches))
        }
        Node::Repeat(part) if part.greed == Greed::Greedy => Some(Node::Repeat(Repeat {
            node: Box::new(nonempty(&part.node, budget)?),
            min: part.min.max(1),
            ..*part
        })),
        _ => None,
    }
}

/// Copies nodes; None, and no `budget` left, if they do not fit.
fn copies(nodes: &[Node], budget: &mut usize) -> Option<Vec<Node>> {
    *budget = budget.saturating_sub(nodes.iter().map(Node::size).sum());
    (*budget > 0).then(|| nodes.to_vec())
}
