//! Groups of every kind, and inline flags.

use super::ast::Node;
use super::lookbehind;
use super::parser::{Flags, Parser};
use crate::split::PatternFault;

/// Maximum depth of nested groups.
const MAX_DEPTH: usize = 50;

impl Parser<'_> {
    /// Parses flags at the very start, as in `(?i)`. Elsewhere version 0 would apply them to the
    /// whole pattern.
    pub fn leading_flags(&mut self) -> Result<Flags, PatternFault> {
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

    /// Parses flag letters up to `:` or `)`, which is not consumed.
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

    /// Parses a group whose opening parenthesis has been consumed.
    pub fn group(&mut self, mut flags: Flags) -> Result<Node, PatternFault> {
        let start = self.at - 1;
        if self.depth == MAX_DEPTH {
            let problem = format!("groups are nested deeper than {MAX_DEPTH}");
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
        Err(self.fault(start, "the name of a group is not closed"))
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
