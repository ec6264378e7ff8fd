//! The syntax tree of a pattern.

use regex_syntax::hir::ClassUnicode;

/// The order in which a repeat tries its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greed {
    Greedy,
    Lazy,
    /// Greedy, without backtracking.
    Possessive,
}

/// A condition on a position between two characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assertion {
    Start,
    End,
    /// The end of the text, or the position before a line feed that ends the text.
    EndOrLastNewline,
    LineStart,
    LineEnd,
    WordBoundary,
    NotWordBoundary,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Empty,
    /// One character of the set.
    Class(ClassUnicode),
    Concat(Vec<Node>),
    /// The leftmost branch that leads to a match.
    Alternation(Vec<Node>),
    Repeat(Repeat),
    /// The first match of the body, without backtracking into it.
    Atomic(Box<Node>),
    Ahead {
        node: Box<Node>,
        negative: bool,
    },
    /// One of the sequences of single characters ends here.
    Behind {
        sequences: Vec<Vec<ClassUnicode>>,
        negative: bool,
    },
    Assertion(Assertion),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    pub node: Box<Node>,
    pub min: u32,
    /// None for no upper bound.
    pub max: Option<u32>,
    pub greed: Greed,
    /// Position of the quantifier in the pattern, in characters.
    pub position: usize,
}

impl Node {
    /// Returns whether the node can match the empty string.
    pub fn is_nullable(&self) -> bool {
        match self {
            Node::Empty | Node::Ahead { .. } | Node::Behind { .. } | Node::Assertion(_) => true,
            Node::Class(_) => false,
            Node::Concat(nodes) => nodes.iter().all(Node::is_nullable),
            Node::Alternation(nodes) => nodes.iter().any(Node::is_nullable),
            Node::Repeat(repeat) => repeat.min == 0 || repeat.node.is_nullable(),
            Node::Atomic(node) => node.is_nullable(),
        }
    }

    /// Returns the memory of the tree: its nodes, and 64 ranges of a set as another.
    pub fn size(&self) -> usize {
        1 + match self {
            Node::Class(class) => class.ranges().len() / 64,
            Node::Concat(nodes) | Node::Alternation(nodes) => nodes.iter().map(Node::size).sum(),
            Node::Repeat(repeat) => repeat.node.size(),
            Node::Atomic(node) | Node::Ahead { node, .. } => node.size(),
            Node::Behind { sequences, .. } => sequences.iter().map(Vec::len).sum(),
            Node::Empty | Node::Assertion(_) => 0,
        }
    }

    /// Collects the sets that the first character matched or looked at belongs to. Alternatives
    /// that all start with the same character, as in `(?i:'s|'t)`, are left out.
    pub fn starts<'a>(&'a self, out: &mut Vec<&'a ClassUnicode>) {
        match self {
            Node::Class(class) => out.push(class),
            Node::Concat(nodes) => {
                for node in nodes {
                    node.starts(out);
                    if !node.is_nullable() {
                        break;
                    }
                }
            }
            Node::Alternation(nodes) => {
                if !share_first_character(nodes) {
                    nodes.iter().for_each(|node| node.starts(out));
                }
            }
            Node::Repeat(repeat) => repeat.node.starts(out),
            Node::Atomic(node) | Node::Ahead { node, .. } => node.starts(out),
            Node::Empty | Node::Behind { .. } | Node::Assertion(_) => {}
        }
    }
}

fn share_first_character(nodes: &[Node]) -> bool {
    let first = |node: &Node| match node {
        Node::Concat(parts) => match &parts[0] {
            Node::Class(class) => single_of(class),
            _ => None,
        },
        _ => None,
    };
    let shared = nodes.first().and_then(first);
    nodes.len() > 1 && shared.is_some() && nodes.iter().all(|node| first(node) == shared)
}

/// Returns the character of `class` if it has exactly one.
pub fn single_of(class: &ClassUnicode) -> Option<char> {
    let mut ranges = class.iter();
    let range = ranges.next()?;
    (range.start() == range.end() && ranges.next().is_none()).then(|| range.start())
}

/// Matches `nodes` one after the other.
pub fn concat(mut nodes: Vec<Node>) -> Node {
    nodes.retain(|node| *node != Node::Empty);
    match nodes.len() {
        0 => Node::Empty,
        1 => nodes.remove(0),
        _ => Node::Concat(nodes),
    }
}

/// Matches the first of `nodes` that leads to a match.
pub fn alternation(mut nodes: Vec<Node>) -> Node {
    match nodes.len() {
        1 => nodes.remove(0),
        _ => Node::Alternation(nodes),
    }
}
