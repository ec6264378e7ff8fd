//! A pattern's text to a tree, in the syntax of the package `regex` (version 0).
//!
//! What is not certain to mean here what it means there is refused.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::ast::{Assertion, Greed, Node, alternation, concat, single_of};
use super::property::{case_closure, single};
use super::{class_parser, lookbehind};
use crate::split::PatternFault;

/// Groups in groups.
const MAX_DEPTH: usize = 50;

/// The largest number in braces.
pub const MAX_REPEAT: u32 = 1000;

#[derive(Clone, Copy, Default)]
pub struct Flags {
    pub ignore_case: bool,
    dot_all: bool,
    multi_line: bool,
}

pub struct Parser<'a> {
    pattern: &'a [char],
    pub at: usize,
    /// Of the first character in the whole pattern.
    offset: usize,
    depth: usize,
    /// The sets and characters under (?i).
    folded_sets: Vec<ClassUnicode>,
    /// Negated sets outside of (?i) that (?i) would narrow.
    narrowable_sets: Vec<ClassUnicode>,
}

/// Parse one line of a pattern; `offset` is where it starts, in characters.
pub fn parse(line: &[char], offset: usize) -> Result<Node, PatternFault> {
    let mut parser = Parser {
        pattern: line,
        at: 0,
        offset,
        depth: 0,
        folded_sets: Vec::new(),
        narrowable_sets: Vec::new(),
    };
    let flags = parser.leading_flags()?;
    let node = parser.alternatives(flags)?;
    if parser.peek().is_some() {
        return Err(parser.fault(parser.at, "a parenthesis closes nothing"));
    }
    parser.check_starts(&node)?;
    Ok(node)
}

impl Parser<'_> {
    pub fn fault(&self, at: usize, problem: impl Into<String>) -> PatternFault {
        PatternFault {
            position: self.offset + at,
            problem: problem.into(),
        }
    }

    pub fn peek(&self) -> Option<char> {
        self.pattern.get(self.at).copied()
    }

    pub fn peek_second(&self) -> Option<char> {
        self.pattern.get(self.at + 1).copied()
    }

    pub fn eat(&mut self, text: &str) -> bool {
        let mut rest = self.pattern[self.at..].iter().copied();
        let found = text.chars().all(|expected| rest.next() == Some(expected));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    /// `(?i)` at the very start; elsewhere version 0 would apply it to the whole pattern.
    fn leading_flags(&mut self) -> Result<Flags, PatternFault> {
        let mut flags = Flags::default();
        if !self.pattern.starts_with(&['(', '?']) {
            return Ok(flags);
        }
        let letters = self.pattern[2..]
            .iter()
            .take_while(|c| c.is_ascii_lowercase());
        let end = 2 + letters.count();
        if end == 2 || self.pattern.get(end) != Some(&')') {
            return Ok(flags);
        }
        self.at = 2;
        self.set_flags(&mut flags)?;
        self.at = end + 1;
        Ok(flags)
    }

    /// The letters up to `:` or `)`, which is left.
    fn set_flags(&mut self, flags: &mut Flags) -> Result<(), PatternFault> {
        let mut on = true;
        loop {
            match self.peek() {
                Some(':' | ')') => return Ok(()),
                Some('-') if on => on = false,
                Some('i') => flags.ignore_case = on,
                Some('s') => flags.dot_all = on,
                Some('m') => flags.multi_line = on,
                _ => return Err(self.fault(self.at, "only the flags i, s and m are supported")),
            }
            self.at += 1;
        }
    }

    fn alternatives(&mut self, flags: Flags) -> Result<Node, PatternFault> {
        let (mut nodes, mut folded) = (Vec::new(), Vec::new());
        let start = self.at;
        loop {
            let known = self.folded_sets.len();
            let node = self.sequence(flags)?;
            let mut singles = Vec::new();
            single_branches(&node, &mut singles);
            if !singles.is_empty() {
                folded.push(self.folded_sets.len() > known);
            }
            nodes.push(node);
            if !self.eat("|") {
                break;
            }
        }
        // `regex` makes one set of such branches, and applies (?i) to too many of them:
        // (?i:c)|[b]|[^a] does not match A.
        if folded.contains(&true) && folded.contains(&false) {
            let problem = "branches of one character each, some under (?i) and some not";
            return Err(self.fault(start, problem));
        }
        // And of these it makes one that lacks both: [^a]|[^b] does not match a.
        let mut singles = Vec::new();
        nodes
            .iter()
            .for_each(|node| single_branches(node, &mut singles));
        let mut lacked: Vec<char> = singles.into_iter().filter_map(lacking).collect();
        lacked.dedup();
        if lacked.len() > 1 {
            let problem = "two branches of one character each that match all but one character";
            return Err(self.fault(start, problem));
        }
        Ok(alternation(nodes))
    }

    /// `regex` looks for a start by one set of all that a match can start with, and applies (?i)
    /// to all of it if to any: (?i:c)|[^ab] does not match A.
    fn check_starts(&self, node: &Node) -> Result<(), PatternFault> {
        let mut starts = Vec::new();
        node.starts(&mut starts);
        let any = |sets: &[ClassUnicode]| starts.iter().any(|&start| sets.contains(start));
        if any(&self.folded_sets) && any(&self.narrowable_sets) {
            let problem = "a match can start with a character under (?i), or with one of a \
                           negated set that is not under it";
            return Err(self.fault(0, problem));
        }
        Ok(())
    }

    /// Note a set that is written as what it does not hold.
    pub fn note_negated(&mut self, class: &ClassUnicode, flags: Flags) {
        let mut complement = class.clone();
        complement.negate();
        if !flags.ignore_case && case_closure(&complement) != complement {
            self.narrowable_sets.push(class.clone());
        }
    }

    /// Note a set under (?i).
    pub fn note_folded(&mut self, class: &ClassUnicode, flags: Flags) {
        if flags.ignore_case {
            self.folded_sets.push(class.clone());
        }
    }

    /// `class`, under (?i) if that is set.
    fn folded(&mut self, class: ClassUnicode, flags: Flags) -> ClassUnicode {
        if !flags.ignore_case {
            return class;
        }
        let closure = case_closure(&class);
        self.note_folded(&closure, flags);
        closure
    }

    fn sequence(&mut self, flags: Flags) -> Result<Node, PatternFault> {
        let mut nodes = Vec::new();
        while !matches!(self.peek(), None | Some('|' | ')')) {
            let start = self.at;
            let atom = self.atom(flags)?;
            nodes.push(self.repeated(atom, start)?);
        }
        Ok(concat(nodes))
    }

    fn repeated(&mut self, node: Node, start: usize) -> Result<Node, PatternFault> {
        let position = self.at;
        let Some((min, max)) = self.quantifier()? else {
            return Ok(node);
        };
        if matches!(
            node,
            Node::Empty | Node::Ahead { .. } | Node::Behind { .. } | Node::Assertion(_)
        ) {
            return Err(self.fault(start, "what matches no character is repeated"));
        }
        let greed = if self.eat("?") {
            Greed::Lazy
        } else if self.eat("+") {
            Greed::Possessive
        } else {
            Greed::Greedy
        };
        if matches!(self.peek(), Some('?' | '*' | '+' | '{')) {
            return Err(self.fault(self.at, "a repeat is repeated: put a group around it"));
        }
        Ok(Node::Repeat {
            node: Box::new(node),
            min,
            max,
            greed,
            position: self.offset + position,
        })
    }

    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>)>, PatternFault> {
        let bounds = match self.peek() {
            Some('?') => (0, Some(1)),
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('{') => return self.braces().map(Some),
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(bounds))
    }

    /// `{n}`, `{n,}` or `{n,m}`: all else in braces is fuzzy matching, or text, to `regex`.
    fn braces(&mut self) -> Result<(u32, Option<u32>), PatternFault> {
        let start = self.at;
        self.at += 1;
        let (min, comma) = (self.number()?, self.eat(","));
        let max = if comma { self.number()? } else { min };
        let (Some(min), true) = (min, self.eat("}")) else {
            let problem = "a brace that is no {n}, {n,} or {n,m}: write \\{ for the character";
            return Err(self.fault(start, problem));
        };
        if max.is_some_and(|max| max < min) {
            return Err(self.fault(start, "the bounds of a repeat are in the wrong order"));
        }
        Ok((min, max))
    }

    fn number(&mut self) -> Result<Option<u32>, PatternFault> {
        let start = self.at;
        let mut value: u32 = 0;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            value = value.saturating_mul(10).saturating_add(digit);
            self.at += 1;
        }
        if value > MAX_REPEAT {
            let problem = format!("a repeat of more than {MAX_REPEAT}");
            return Err(self.fault(start, problem));
        }
        Ok((self.at > start).then_some(value))
    }

    fn atom(&mut self, flags: Flags) -> Result<Node, PatternFault> {
        let start = self.at;
        let Some(character) = self.peek() else {
            return Ok(Node::Empty);
        };
        self.at += 1;
        let assertion = |assertion| Ok(Node::Assertion(assertion));
        match character {
            '(' => self.group(flags),
            '[' => class_parser::set(self, flags).map(Node::Class),
            '\\' => self.escape(flags),
            '.' if flags.dot_all => Ok(Node::Class(everything())),
            '.' => {
                let mut class = everything();
                class.difference(&single('\n'));
                Ok(Node::Class(class))
            }
            '^' if flags.multi_line => assertion(Assertion::LineStart),
            '^' => assertion(Assertion::Start),
            '$' if flags.multi_line => assertion(Assertion::LineEnd),
            '$' => assertion(Assertion::EndOrLastNewline),
            '?' | '*' | '+' | '{' => {
                Err(self.fault(start, "there is nothing to repeat: escape the character"))
            }
            _ => Ok(Node::Class(self.folded(single(character), flags))),
        }
    }

    fn escape(&mut self, flags: Flags) -> Result<Node, PatternFault> {
        let start = self.at - 1;
        let assertion = match self.peek() {
            Some('A') => Assertion::Start,
            Some('Z') => Assertion::End,
            Some('b') => Assertion::WordBoundary,
            Some('B') => Assertion::NotWordBoundary,
            _ => {
                return match class_parser::escape(self, start)? {
                    class_parser::Escape::Character(c) => {
                        Ok(Node::Class(self.folded(single(c), flags)))
                    }
                    class_parser::Escape::Class { set, cased } => {
                        self.note_negated(&set, flags);
                        self.note_folded(&set, flags);
                        if cased && flags.ignore_case {
                            return Err(self.fault(start, "a class of case under (?i)"));
                        }
                        Ok(Node::Class(set))
                    }
                };
            }
        };
        self.at += 1;
        Ok(Node::Assertion(assertion))
    }

    fn group(&mut self, mut flags: Flags) -> Result<Node, PatternFault> {
        let start = self.at - 1;
        if self.depth == MAX_DEPTH {
            let problem = format!("more than {MAX_DEPTH} groups within each other");
            return Err(self.fault(start, problem));
        }
        self.depth += 1;
        let node = if !self.eat("?") || self.eat(":") {
            self.body(flags, start)?
        } else if self.eat(">") {
            Node::Atomic(Box::new(self.body(flags, start)?))
        } else if self.eat("=") {
            self.ahead(flags, start, false)?
        } else if self.eat("!") {
            self.ahead(flags, start, true)?
        } else if self.eat("<=") {
            self.behind(flags, start, false)?
        } else if self.eat("<!") {
            self.behind(flags, start, true)?
        } else if self.eat("P<") || self.eat("<") {
            self.name(start)?;
            self.body(flags, start)?
        } else if matches!(self.peek(), Some('a'..='z' | '-')) {
            self.set_flags(&mut flags)?;
            if !self.eat(":") {
                let problem = "flags inside the pattern: write (?i:...), or put them first";
                return Err(self.fault(start, problem));
            }
            self.body(flags, start)?
        } else {
            return Err(self.fault(start, "this kind of group is not supported"));
        };
        self.depth -= 1;
        Ok(node)
    }

    fn name(&mut self, start: usize) -> Result<(), PatternFault> {
        while let Some(character) = self.peek() {
            self.at += 1;
            if character == '>' {
                return Ok(());
            }
        }
        Err(self.fault(start, "the name of a group does not end"))
    }

    fn body(&mut self, flags: Flags, start: usize) -> Result<Node, PatternFault> {
        let node = self.alternatives(flags)?;
        if self.eat(")") {
            Ok(node)
        } else {
            Err(self.fault(start, "a group is not closed"))
        }
    }

    fn ahead(&mut self, flags: Flags, start: usize, negative: bool) -> Result<Node, PatternFault> {
        let node = Box::new(self.body(flags, start)?);
        Ok(Node::Ahead { node, negative })
    }

    fn behind(&mut self, flags: Flags, start: usize, negative: bool) -> Result<Node, PatternFault> {
        let body = self.body(flags, start)?;
        let sequences = lookbehind::sequences(&body).ok_or_else(|| {
            let problem = "a lookbehind that is no short list of sequences of fixed length";
            self.fault(start, problem)
        })?;
        Ok(Node::Behind {
            sequences,
            negative,
        })
    }
}

pub fn everything() -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])
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
