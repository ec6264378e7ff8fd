//! The ends of graphemes, words and sentences, as Unicode Standard Annex 29 defines them.

use icu_segmenter::SentenceSegmenter;
use icu_segmenter::options::SentenceBreakInvariantOptions;
use unicode_segmentation::UnicodeSegmentation;

/// The version of Unicode that defines the ends: major, minor and update.
pub const UNICODE_VERSION: (u64, u64, u64) = unicode_segmentation::UNICODE_VERSION;

/// Returns the ends of all parts of a text, in bytes; empty for "".
pub type Ends = fn(&str) -> Vec<usize>;

pub fn graphemes(text: &str) -> Vec<usize> {
    text.grapheme_indices(true).map(end).collect()
}

pub fn words(text: &str) -> Vec<usize> {
    text.split_word_bound_indices().map(end).collect()
}

pub fn sentences(text: &str) -> Vec<usize> {
    // `unicode-segmentation` needs quadratic time.
    SentenceSegmenter::new(SentenceBreakInvariantOptions::default())
        .segment_str(text)
        .filter(|&end| end > 0)
        .collect()
}

fn end((start, part): (usize, &str)) -> usize {
    start + part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_crates_have_the_same_version_of_unicode() {
        let every = if cfg!(debug_assertions) { 997 } else { 1 };
        for character in ('\0'..=char::MAX).step_by(every) {
            for around in ["a. @ b", "A.@B", "!) @)1", "1.@\u{301}A"] {
                let text = around.replace('@', character.encode_utf8(&mut [0; 4]));
                let parts = text.split_sentence_bound_indices();
                let expected: Vec<usize> = parts.map(|(at, part)| at + part.len()).collect();
                assert_eq!(sentences(&text), expected, "{text:?}");
            }
        }
    }
}
