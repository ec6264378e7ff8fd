//! Splitting text into pre-tokens.

mod class;
mod class_table;
mod deepseek;
mod piece;
mod published;
mod rules;

pub use class::class_of;
pub use class_table::UNICODE_VERSION;

use rules::{Cl100k, Family, Gpt2, Llama3, O200k, Qwen2, Tekken};

/// How many ends one call of `Splitter::fill` finds at most.
pub const BATCH: usize = 256;

/// Ends of consecutive pre-tokens, in bytes from the start of the text.
pub struct Ends {
    ends: [usize; BATCH],
    len: usize,
}

impl Ends {
    pub fn new() -> Self {
        Ends {
            ends: [0; BATCH],
            len: 0,
        }
    }

    pub fn as_slice(&self) -> &[usize] {
        &self.ends[..self.len]
    }

    fn clear(&mut self) {
        self.len = 0;
    }

    fn is_full(&self) -> bool {
        self.len == BATCH
    }

    fn push(&mut self, end: usize) {
        self.ends[self.len] = end;
        self.len += 1;
    }
}

impl Default for Ends {
    fn default() -> Self {
        Self::new()
    }
}

/// What finds the pre-tokens of one pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Splitter {
    Gpt2,
    Cl100k,
    O200k,
    Llama3,
    Qwen2,
    Tekken,
    DeepSeekV3,
}

/// Why a pattern cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternFault {
    /// Where in the pattern, in characters.
    pub position: usize,
    pub problem: String,
}

impl Splitter {
    /// The scanner written for exactly this pattern, or else the general engine.
    pub fn for_pattern(pattern: &str) -> Result<Self, PatternFault> {
        published::scanner_of(pattern).ok_or_else(|| PatternFault {
            position: 0,
            problem: "no scanner is written for this pattern".to_owned(),
        })
    }

    /// The name under which it is reported.
    pub fn name(&self) -> &'static str {
        match self {
            Splitter::Gpt2 => "gpt2",
            Splitter::Cl100k => "cl100k",
            Splitter::O200k => "o200k",
            Splitter::Llama3 => "llama3",
            Splitter::Qwen2 => "qwen2",
            Splitter::Tekken => "tekken",
            Splitter::DeepSeekV3 => "deepseek_v3",
        }
    }

    /// Replace `ends` by the ends of the next pre-tokens from byte `start`, where one starts.
    ///
    /// It is empty only when `start` is the end of the text.
    pub fn fill(&self, text: &str, start: usize, ends: &mut Ends) {
        match self {
            Splitter::Gpt2 => fill_family::<Gpt2>(text, start, ends),
            Splitter::Cl100k => fill_family::<Cl100k>(text, start, ends),
            Splitter::O200k => fill_family::<O200k>(text, start, ends),
            Splitter::Llama3 => fill_family::<Llama3>(text, start, ends),
            Splitter::Qwen2 => fill_family::<Qwen2>(text, start, ends),
            Splitter::Tekken => fill_family::<Tekken>(text, start, ends),
            Splitter::DeepSeekV3 => fill_by(text, start, ends, deepseek::piece_end),
        }
    }
}

fn fill_family<F: Family>(text: &str, start: usize, ends: &mut Ends) {
    fill_by(text, start, ends, piece::piece_end::<F>);
}

fn fill_by(text: &str, start: usize, ends: &mut Ends, piece_end: impl Fn(&[u8], usize) -> usize) {
    ends.clear();
    let mut at = start;
    while at < text.len() && !ends.is_full() {
        at = piece_end(text.as_bytes(), at);
        ends.push(at);
    }
}
