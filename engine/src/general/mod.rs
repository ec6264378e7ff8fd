//! Split patterns that have no scanner of their own: any pattern, in bounded time.
//!
//! `parser` makes a tree (`ast`) of a pattern's line, `simplify` an equal tree that `program`
//! compiles, and `matcher` runs; `Cursor` walks a text by them. docs/patterns.md says which syntax
//! is supported and proves the bound.

mod ast;
mod char_set;
mod class_parser;
mod cursor;
mod first;
mod lookbehind;
mod matcher;
mod memo;
mod parser;
mod program;
mod property;
mod simplify;
#[cfg(test)]
mod tests;

pub use cursor::Cursor;

use crate::split::PatternFault;
use program::Program;

/// A compiled pattern: a program for each of its lines.
pub struct General {
    lines: Vec<Program>,
}

impl General {
    /// Compile `pattern`, in the syntax of the package `regex`.
    pub fn new(pattern: &str) -> Result<Self, PatternFault> {
        let mut offset = 0;
        let mut lines = Vec::new();
        for line in pattern.split('\n') {
            let characters: Vec<char> = line.chars().collect();
            let tree = simplify::simplify(parser::parse(&characters, offset)?)?;
            lines.push(program::compile(&tree, offset)?);
            offset += characters.len() + 1;
        }
        Ok(General { lines })
    }
}
