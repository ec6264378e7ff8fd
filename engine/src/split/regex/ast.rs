//! What a pattern says, as a tree.

use regex_syntax::hir::ClassUnicode;

/// How a repeat chooses its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greed {
    Greedy,
    Lazy,
    /// Greedy, and never reconsidered.
    Possessive,
}

/// What holds between two characters, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assertion {
    Start,
    End,
    /// At the end, or before a line feed that ends the text.
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
    /// The leftmost that leads to a match.
    Alternation(Vec<Node>),
    Repeat {
        node: Box<Node>,
        min: u32,
        /// None: any number.
        max: Option<u32>,
        greed: Greed,
        /// Of the quantifier in the pattern, in characters.
        position: usize,
    },
    /// The first match of the body, never reconsidered.
    Atomic(Box<Node>),
    Ahead {
        node: Box<Node>,
        negative: bool,
    },
    /// Some sequence of single characters ends here.
    Behind {
        sequences: Vec<Vec<ClassUnicode>>,
        negative: bool,
    },
    Assertion(Assertion),
}

impl Node {
    /// Whether some match of it is empty.
    pub fn is_nullable(&self) -> bool {
        match self {
            Node::Empty | Node::Ahead { .. } | Node::Behind { .. } | Node::Assertion(_) => true,
            Node::Class(_) => false,
            Node::Concat(nodes) => nodes.iter().all(Node::is_nullable),
            Node::Alternation(nodes) => nodes.iter().any(Node::is_nullable),
            Node::Repeat { node, min, .. } => *min == 0 || node.is_nullable(),
            Node::Atomic(node) => node.is_nullable(),
        }
    }

    /// The sets of which one holds the first character that it matches or looks at; except for
    /// alternatives that all start with one character, as (?i:'s|'t).
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
            Node::Repeat { node, .. } | Node::Atomic(node) | Node::Ahead { node, .. } => {
                node.starts(out);
            }
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

/// The only character of `class`.
pub fn single_of(class: &ClassUnicode) -> Option<char> {
    let mut ranges = class.iter();
    let range = ranges.next()?;
    (range.start() == range.end() && ranges.next().is_none()).then(|| range.start())
}

/// `nodes` one after the other.
pub fn concat(mut nodes: Vec<Node>) -> Node {
    nodes.retain(|node| *node != Node::Empty);
    match nodes.len() {
        0 => Node::Empty,
        1 => nodes.remove(0),
        _ => Node::Concat(nodes),
    }
}

/// The first of `nodes` that leads to a match.
pub fn alternation(mut nodes: Vec<Node>) -> Node {
    match nodes.len() {
        1 => nodes.remove(0),
        _ => Node::Alternation(nodes),
    }
}
