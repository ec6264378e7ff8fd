//! Parses patterns in the syntax of the package `regex` (version 0).
//!
//! Syntax that is not certain to mean the same here is rejected.

use super::ast::{Assertion, Node, alternation, concat};
use super::case::{CasedSets, misread_branches};
use super::class_parser;
use super::property::{parsed, single};
use crate::split::PatternFault;

#[derive(Clone, Copy, Default)]
pub struct Flags {
    pub ignore_case: bool,
    pub dot_all: bool,
    pub multi_line: bool,
}

pub struct Parser<'a> {
    pub pattern: &'a [char],
    pub at: usize,
    /// Position of the line's first character in the whole pattern, in characters.
    pub offset: usize,
    /// Number of open groups.
    pub depth: usize,
    pub sets: CasedSets,
}

/// Parses one line of a pattern. `offset` is its start in the pattern, in characters.
pub fn parse(line: &[char], offset: usize) -> Result<Node, PatternFault> {
    let mut parser = Parser {
        pattern: line,
        at: 0,
        offset,
        depth: 0,
        sets: CasedSets::default(),
    };
    let flags = parser.leading_flags()?;
    let node = parser.alternatives(flags)?;
    if parser.peek().is_some() {
        return Err(parser.fault(parser.at, "unmatched closing parenthesis"));
    }
    match parser.sets.misread_starts(&node) {
        Some(problem) => Err(parser.fault(0, problem)),
        None => Ok(node),
    }
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

    /// Parses branches up to the end of the line or a closing parenthesis.
    pub fn alternatives(&mut self, flags: Flags) -> Result<Node, PatternFault> {
        let (mut nodes, mut folded) = (Vec::new(), Vec::new());
        let start = self.at;
        loop {
            let known = self.sets.count_folded();
            nodes.push(self.sequence(flags)?);
            folded.push(self.sets.count_folded() > known);
            if !self.eat("|") {
                break;
            }
        }
        if let Some(problem) = misread_branches(&nodes, &folded) {
            return Err(self.fault(start, problem));
        }
        Ok(alternation(nodes))
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
            '.' if flags.dot_all => Ok(Node::Class(parsed("(?s:.)"))),
            '.' => Ok(Node::Class(parsed("."))),
            '^' if flags.multi_line => assertion(Assertion::LineStart),
            '^' => assertion(Assertion::Start),
            '$' if flags.multi_line => assertion(Assertion::LineEnd),
            '$' => assertion(Assertion::EndOrLastNewline),
            '?' | '*' | '+' | '{' => {
                Err(self.fault(start, "there is nothing to repeat: escape the character"))
            }
            _ => Ok(Node::Class(self.sets.folded(single(character), flags))),
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
                        Ok(Node::Class(self.sets.folded(single(c), flags)))
                    }
                    class_parser::Escape::Class { set, cased } => {
                        self.sets.note_negated(&set, flags);
                        self.sets.note_folded(&set, flags);
                        if cased && flags.ignore_case {
                            return Err(self.fault(start, class_parser::ONE_CASE));
                        }
                        Ok(Node::Class(set))
                    }
                };
            }
        };
        self.at += 1;
        Ok(Node::Assertion(assertion))
    }
}
