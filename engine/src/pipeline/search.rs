//! The successive matches of a regular expression in a piece.

use memchr::memmem::Finder;

use crate::split::PatternFault;
use crate::split::regex::Regex;

/// A pattern: a plain string, or a program.
pub enum Search {
    Literal(Box<Finder<'static>>, usize),
    Program(Box<Regex>),
}

impl Search {
    /// Compile a pattern of docs/patterns.md; an error if it can match the empty string.
    pub fn new(pattern: &str) -> Result<Self, PatternFault> {
        if let Some(text) = literal(pattern) {
            return Ok(Search::Literal(
                Box::new(Finder::new(text.as_bytes()).into_owned()),
                text.len(),
            ));
        }
        let fault = |problem: &str| PatternFault {
            position: 0,
            problem: problem.to_owned(),
        };
        if pattern.contains('\n') {
            return Err(fault("a line break is not supported here"));
        }
        let regex = Regex::new(pattern)?;
        if regex.may_match_nothing {
            return Err(fault(
                "it can match the empty string, which engines treat differently",
            ));
        }
        Ok(Search::Program(Box::new(regex)))
    }

    /// Call `work` with the start and the end of each match, in order.
    pub fn each_match(&self, piece: &str, mut work: impl FnMut(usize, usize)) {
        match self {
            Search::Literal(finder, length) => {
                for start in finder.find_iter(piece.as_bytes()) {
                    work(start, start + length);
                }
            }
            Search::Program(regex) => regex.each_match(piece.as_bytes(), work),
        }
    }
}

/// The only string that a pattern matches, if it is a literal.
fn literal(pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                let escaped = characters.next()?;
                if escaped.is_alphanumeric() || escaped == '_' {
                    return None;
                }
                text.push(escaped);
            }
            '.' | '^' | '$' | '*' | '+' | '?' | '{' | '}' | '[' | ']' | '|' | '(' | ')' => {
                return None;
            }
            _ => text.push(character),
        }
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_match_nothing_is_not_run_here() {
        for pattern in ["a*", "(?=a)", "", "[a\n]b", "("] {
            assert!(Search::new(pattern).is_err(), "{pattern:?}");
        }
    }
}
