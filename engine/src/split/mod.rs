//! Splits text into pre-tokens.

mod blocks;
pub mod bytes;
mod class;
mod deepseek;
mod piece;
mod published;
mod reach;
pub mod regex;
mod rules;
mod split_points;

pub use class::{UNICODE_VERSION, is_letter};
pub use split_points::{is_split_point, next_split_point};

use std::sync::Arc;

use crate::split::regex::{Cursor, Regex};
use rules::{Cl100k, Gpt2, Llama3, O200k, Qwen2, Tekken};

/// Maximum number of ends that one call of `Splitter::fill` finds.
pub const BATCH: usize = 256;

/// The ends of consecutive pre-tokens, in bytes from the start of the text.
pub struct Ends {
    ends: [usize; BATCH],
    len: usize,
    walk: Walk,
}

/// The position of the regex engine in a text, if the pattern has no scanner.
#[derive(Default)]
struct Walk {
    cursor: Cursor,
    /// The addresses of the engine and of the text, and the length of the text.
    of: (usize, usize, usize),
}

impl Ends {
    pub fn new() -> Self {
        Ends {
            ends: [0; BATCH],
            len: 0,
            walk: Walk::default(),
        }
    }

    pub fn as_slice(&self) -> &[usize] {
        &self.ends[..self.len]
    }

    fn clear(&mut self) {
        self.len = 0;
    }

    /// Returns the number of ends that still fit.
    fn remaining(&self) -> usize {
        BATCH - self.len
    }

    fn push(&mut self, end: usize) {
        self.ends[self.len] = end;
        self.len += 1;
    }

    /// Pushes `at` plus the position of each set bit; 64 more ends must fit.
    ///
    /// Writes eight ends at a time, more than there may be: a branch on their number would be
    /// unpredictable.
    #[inline(always)]
    fn push_bits(&mut self, at: usize, mut bits: u64) {
        let count = bits.count_ones() as usize;
        for eight in self.ends[self.len..self.len + 64].chunks_exact_mut(8) {
            for end in eight {
                *end = at + bits.trailing_zeros() as usize;
                bits &= bits.wrapping_sub(1);
            }
            if bits == 0 {
                break;
            }
        }
        self.len += count;
    }
}

impl Default for Ends {
    fn default() -> Self {
        Self::new()
    }
}

/// The scanner or regex of one pattern.
#[derive(Clone)]
pub enum Splitter {
    Gpt2,
    Cl100k,
    O200k,
    Llama3,
    Qwen2,
    Tekken,
    DeepSeekV3,
    Regex(Arc<Regex>),
}

/// The reason why a pattern is not supported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternFault {
    /// Position in the pattern, in characters.
    pub position: usize,
    pub problem: String,
}

impl Splitter {
    /// Returns the scanner for exactly this pattern, or else the compiled regex.
    pub fn for_pattern(pattern: &str) -> Result<Self, PatternFault> {
        match published::scanner_of(pattern) {
            Some(scanner) => Ok(scanner),
            None => Ok(Splitter::Regex(Arc::new(Regex::new(pattern)?))),
        }
    }

    /// Returns the name for reports.
    pub fn name(&self) -> &'static str {
        match self {
            Splitter::Gpt2 => "gpt2",
            Splitter::Cl100k => "cl100k",
            Splitter::O200k => "o200k",
            Splitter::Llama3 => "llama3",
            Splitter::Qwen2 => "qwen2",
            Splitter::Tekken => "tekken",
            Splitter::DeepSeekV3 => "deepseek_v3",
            Splitter::Regex(_) => "regex",
        }
    }

    /// Returns whether the split points of `next_split_point` are valid for this splitter. They are
    /// not known for other patterns.
    pub fn has_split_points(&self) -> bool {
        !matches!(self, Splitter::Regex(_))
    }

    /// Returns the end of the text examined to find that a pre-token goes from `start` to `end`,
    /// except for up to three characters beyond. It never exceeds the reach of the next pre-token.
    /// Valid only if `has_split_points`.
    pub fn reach(&self, text: &[u8], start: usize, end: usize) -> usize {
        let cased_words = matches!(self, Splitter::O200k | Splitter::Tekken);
        reach::reach(text, start, end, cased_words)
    }

    /// As `reach`, for a text that ends where it is cut: nothing replaces the text after the cut.
    ///
    /// A word that gave back capitals ends where it did without them, as long as no lower case
    /// follows. White space up to the end of a text is one pre-token in cl100k; elsewhere it ends
    /// with the same line end, or one character earlier.
    pub fn reach_of_cut(&self, text: &[u8], start: usize, end: usize) -> usize {
        match self {
            Splitter::Cl100k => self.reach(text, start, end),
            _ => end,
        }
    }

    /// Returns the pre-tokens of `text`.
    pub fn pieces<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let (mut ends, mut pieces, mut at) = (Ends::new(), Vec::new(), 0);
        while at < text.len() {
            self.fill(text, at, &mut ends);
            for &end in ends.as_slice() {
                pieces.push(&text[at..end]);
                at = end;
            }
        }
        pieces
    }

    /// Replaces `ends` by the ends of the next pre-tokens from byte `start`, which must be a
    /// pre-token's start.
    ///
    /// `ends` is empty only if `start` is the end of the text. Consecutive calls with the same
    /// `ends` must be for one text, from its start on: the regex engine continues from its last
    /// position.
    pub fn fill(&self, text: &str, start: usize, ends: &mut Ends) {
        match self {
            Splitter::Gpt2 => blocks::fill::<Gpt2>(text.as_bytes(), start, ends),
            Splitter::Cl100k => blocks::fill::<Cl100k>(text.as_bytes(), start, ends),
            Splitter::O200k => blocks::fill::<O200k>(text.as_bytes(), start, ends),
            Splitter::Llama3 => blocks::fill::<Llama3>(text.as_bytes(), start, ends),
            Splitter::Qwen2 => blocks::fill::<Qwen2>(text.as_bytes(), start, ends),
            Splitter::Tekken => blocks::fill::<Tekken>(text.as_bytes(), start, ends),
            Splitter::DeepSeekV3 => fill_by(text, start, ends, deepseek::piece_end),
            Splitter::Regex(regex) => fill_regex(regex, text, start, ends),
        }
    }
}

fn fill_regex(regex: &Arc<Regex>, text: &str, start: usize, ends: &mut Ends) {
    ends.clear();
    let of = (Arc::as_ptr(regex).addr(), text.as_ptr().addr(), text.len());
    if start == 0 || ends.walk.of != of || ends.walk.cursor.at() != start {
        ends.walk.of = of;
        ends.walk.cursor.reset(regex);
    }
    while ends.remaining() > 0 {
        match ends.walk.cursor.next_end(regex, text.as_bytes()) {
            Some(end) if end > start => ends.push(end),
            Some(_) => {}
            None => {
                ends.walk.cursor.reset(regex);
                break;
            }
        }
    }
}

fn fill_by(text: &str, start: usize, ends: &mut Ends, piece_end: impl Fn(&[u8], usize) -> usize) {
    ends.clear();
    let mut at = start;
    while at < text.len() && ends.remaining() > 0 {
        at = piece_end(text.as_bytes(), at);
        ends.push(at);
    }
}

#[cfg(test)]
pub mod tests {
    use super::rules::Family;
    use super::*;
    use fastrand::Rng;

    pub const PUBLISHED: &[Splitter] = &[
        Splitter::Gpt2,
        Splitter::Cl100k,
        Splitter::O200k,
        Splitter::Llama3,
        Splitter::Qwen2,
        Splitter::Tekken,
        Splitter::DeepSeekV3,
    ];

    const LAST: &str = "\u{10ffff}";

    /// Characters of every class, and all that the patterns of the family treat specially.
    pub const HARD: &[&str] = &[
        " ", " ", "  ", "\n", "\r", "\r\n", "\t", "\u{b}", "\u{85}", "\u{a0}", "\u{3000}", "a",
        "b", "the", "A", "B", "s", "S", "é", "É", "ǅ", "ʰ", "中", "の", "ア", "・", "한국",
        "\u{301}", "\u{20e3}", "1", "23", "456", "٣", "Ⅷ", "'", "'", "'s", "'S", "'t", "'ll",
        "'Ll", "'re", "'ve", "'d", "'m", "'ſ", "ſ", ".", ",", "...", "/", "//", "(", "_", "-", "+",
        "$", "€", "👍", "\u{200d}", "\u{fe0f}", "\u{0}", "\u{1c}", "\u{7f}", "\u{ad}", "\u{e000}",
        LAST, "\u{2028}", "국", "꙰", "꛲", "\u{d7fc}", "꠆", "д", "Ж", "ӑ", "א", "ع", "\u{64e}", "क",
        "\u{93f}", "।", "७", "ก", "\u{e31}", "ế", "\u{2003}",
    ];

    /// Joins random parts, fewer than `most`.
    pub fn random_text(random: &mut Rng, parts: &[&str], most: usize) -> String {
        let count = random.usize(..most);
        (0..count)
            .filter_map(|_| random.choice(parts).copied())
            .collect()
    }

    fn check<F: Family>(text: &str) {
        let (mut ends, mut at) = (Ends::new(), 0);
        while at < text.len() {
            blocks::fill::<F>(text.as_bytes(), at, &mut ends);
            for &end in ends.as_slice() {
                let expected = piece::piece_end::<F>(text.as_bytes(), at);
                assert_eq!(end, expected, "{text:?} from {at}");
                at = end;
            }
        }
    }

    fn check_all(text: &str) {
        check::<Gpt2>(text);
        check::<Cl100k>(text);
        check::<O200k>(text);
        check::<Llama3>(text);
        check::<Qwen2>(text);
        check::<Tekken>(text);
    }

    #[test]
    fn blocks_find_the_same_ends_as_piece_end() {
        let mut random = Rng::with_seed(20_261_120);
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        for round in 0..rounds {
            // Long runs of a few members, and short runs of many.
            let members = 1 + random.usize(..if round % 2 == 0 { 4 } else { HARD.len() });
            let alphabet: Vec<&str> = (0..members)
                .map(|_| HARD[random.usize(..HARD.len())])
                .collect();
            check_all(&random_text(&mut random, &alphabet, 120));
        }
    }

    #[test]
    fn blocks_agree_at_every_alignment() {
        let hard = "don't I'M'S we'll_x\n  \n\t if (x)  12345 naïve 中文 한국,, ok. \n\n/ 'sa 'rea";
        for shift in 0..if cfg!(miri) { 3 } else { 130 } {
            check_all(&("a".repeat(shift) + hard + &" ".repeat(shift)));
            check_all(&(" x".repeat(shift) + hard + &"é".repeat(shift)));
        }
    }
}
