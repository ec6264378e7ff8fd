//! The ends of graphemes, words and sentences, as Unicode Standard Annex 29 defines them.

use unicode_segmentation::UnicodeSegmentation;

/// The version of Unicode that defines the ends: major, minor and update.
pub const UNICODE_VERSION: (u64, u64, u64) = unicode_segmentation::UNICODE_VERSION;

/// The parts that a text is divided into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Grapheme,
    Word,
    Sentence,
}

/// Returns the ends of all parts of `text`, in code points; empty for "".
pub fn ends(text: &str, level: Level) -> Vec<usize> {
    match level {
        Level::Grapheme => joined(text.graphemes(true)),
        Level::Word => joined(text.split_word_bounds()),
        Level::Sentence => joined(text.split_sentence_bounds()),
    }
}

/// Returns the same as `ends`, in bytes.
pub fn ends_in_bytes(text: &str, level: Level) -> Vec<usize> {
    let end = |(start, part): (usize, &str)| start + part.len();
    match level {
        Level::Grapheme => text.grapheme_indices(true).map(end).collect(),
        Level::Word => text.split_word_bound_indices().map(end).collect(),
        Level::Sentence => text.split_sentence_bound_indices().map(end).collect(),
    }
}

fn joined<'t>(parts: impl Iterator<Item = &'t str>) -> Vec<usize> {
    parts
        .scan(0, |end, part| {
            *end += part.chars().count();
            Some(*end)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_in_code_points() {
        assert_eq!(ends("e\u{301}x\r\n", Level::Grapheme), [2, 3, 5]);
        assert_eq!(ends("Hi. You", Level::Sentence), [4, 7]);
        assert_eq!(ends("Hi you", Level::Word), [2, 3, 6]);
        assert!(ends("", Level::Word).is_empty());
    }
}
