//! The ends of graphemes, words and sentences, as Unicode Standard Annex 29 defines them.

use unicode_segmentation::UnicodeSegmentation;

use crate::sentences;

/// The version of Unicode that defines the ends: major, minor and update.
pub const UNICODE_VERSION: (u64, u64, u64) = unicode_segmentation::UNICODE_VERSION;

/// The parts that a text is divided into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Grapheme,
    Word,
    Sentence,
}

/// Returns the ends of all parts of `text`, in bytes; empty for "".
pub fn ends(text: &str, level: Level) -> Vec<usize> {
    let end = |(start, part): (usize, &str)| start + part.len();
    match level {
        Level::Grapheme => text.grapheme_indices(true).map(end).collect(),
        Level::Word => text.split_word_bound_indices().map(end).collect(),
        Level::Sentence => sentences::ends(text),
    }
}
