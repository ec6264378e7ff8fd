//! Quantifiers: `?`, `*`, `+` and braces, with their lazy and possessive forms.

use super::ast::{Greed, Node, Repeat};
use super::parser::Parser;
use crate::split::PatternFault;

/// Largest number in braces.
const MAX_REPEAT: u32 = 1000;

impl Parser<'_> {
    /// Parses a quantifier after `node`, which starts at `start`. Returns `node` itself if there is
    /// none.
    pub fn repeated(&mut self, node: Node, start: usize) -> Result<Node, PatternFault> {
        let position = self.at;
        let Some((min, max)) = self.quantifier()? else {
            return Ok(node);
        };
        if matches!(
            node,
            Node::Empty | Node::Ahead { .. } | Node::Behind { .. } | Node::Assertion(_)
        ) {
            return Err(self.fault(start, "a part that matches no character cannot be repeated"));
        }
        let is_lazy = self.eat("?");
        let is_possessive = !is_lazy && self.eat("+");
        if matches!(self.peek(), Some('?' | '*' | '+' | '{')) {
            let problem = "a repeat follows a repeat: put the first into a group";
            return Err(self.fault(self.at, problem));
        }
        let repeat = Node::Repeat(Repeat {
            node: Box::new(node),
            min,
            max,
            greed: if is_lazy { Greed::Lazy } else { Greed::Greedy },
            position: self.offset + position,
        });
        Ok(if is_possessive {
            Node::Atomic(Box::new(repeat))
        } else {
            repeat
        })
    }

    /// Parses the bounds of a quantifier; None if there is none.
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

    /// Parses `{n}`, `{n,}` or `{n,m}`. Other braces are fuzzy matching or text to `regex`.
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
            let problem = "the upper bound of a repeat is below its lower bound";
            return Err(self.fault(start, problem));
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
            let problem = format!("a repeat count above {MAX_REPEAT}");
            return Err(self.fault(start, problem));
        }
        Ok((self.at > start).then_some(value))
    }
}
