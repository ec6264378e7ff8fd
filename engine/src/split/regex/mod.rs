//! Regular expressions for split patterns without a scanner of their own, in bounded time.
//!
//! `parser` parses a line of a pattern into a tree (`ast`), `simplify` rewrites the tree, `program`
//! compiles it, `matcher` runs the program, and `Cursor` iterates over a text. docs/patterns.md
//! describes the supported syntax; `matcher` proves the bound.

mod ast;
mod case;
mod char_set;
mod class_parser;
mod condition;
mod cursor;
mod first;
mod group;
mod lookbehind;
mod matcher;
mod memo;
mod parser;
mod program;
mod property;
mod quantifier;
mod run;
mod simplify;
#[cfg(test)]
mod tests;

pub use char_set::CharSet;
pub use cursor::Cursor;

use regex_syntax::hir::ClassUnicode;

use crate::split::PatternFault;
use program::Program;

/// A compiled pattern: a program for each of its lines.
pub struct Regex {
    lines: Vec<Program>,
    /// Whether the pattern can match the empty string, which isolates nothing.
    pub may_match_nothing: bool,
}

/// Returns the set of `\w`.
pub fn word_characters() -> ClassUnicode {
    property::perl('w')
}

impl Regex {
    /// Compiles `pattern`, in the syntax of the package `regex`.
    pub fn new(pattern: &str) -> Result<Self, PatternFault> {
        let mut offset = 0;
        let mut lines = Vec::new();
        let mut may_match_nothing = false;
        for line in pattern.split('\n') {
            let characters: Vec<char> = line.chars().collect();
            let tree = parser::parse(&characters, offset)?;
            may_match_nothing |= tree.is_nullable();
            let tree = simplify::simplify(tree, &mut { program::MAX_COPIES })?;
            lines.push(program::compile(&tree, offset)?);
            offset += characters.len() + 1;
        }
        Ok(Regex {
            lines,
            may_match_nothing,
        })
    }
}
