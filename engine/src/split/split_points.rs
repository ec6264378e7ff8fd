//! Positions where ordinary text can be cut so that the parts split as the whole does.
//!
//! The rules are the local ones that all published patterns share. Each looks at two characters
//! only. The Python package's `streaming/split_points.py` has the proofs.

use super::class::*;

/// Returns the first safe split point of all published patterns at or after byte `from` and inside
/// `text`; None if there is none.
pub fn next_split_point(text: &str, from: usize) -> Option<usize> {
    let mut at = text.floor_char_boundary(from.saturating_sub(1));
    let mut behind = char_at(text.as_bytes(), at)?;
    loop {
        at += behind.len;
        let ahead = char_at(text.as_bytes(), at)?;
        if at >= from && separates(behind, ahead) {
            return Some(at);
        }
        behind = ahead;
    }
}

/// Returns whether `at`, a character boundary inside `text`, is a safe split point of all published
/// patterns.
pub fn is_split_point(text: &str, at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else {
        return false;
    };
    let before = text.floor_char_boundary(before);
    let [behind, ahead] = [before, at].map(|at| char_at(text.as_bytes(), at));
    let both = behind.zip(ahead);
    both.is_some_and(|(behind, ahead)| separates(behind, ahead))
}

/// Returns whether no match of a published pattern contains both characters in sequence, and no
/// match that ends between them has looked ahead.
fn separates(behind: Seen, ahead: Seen) -> bool {
    match behind.class {
        SPACE | NEWLINE => false,
        NUMBER => ahead.class != NUMBER,
        // The apostrophe may start the suffix of a word.
        UPPER | LOWER | CASELESS => {
            !LETTERS_AND_MARKS.has(ahead.class) && ahead.code_point != u32::from(b'\'')
        }
        _ => ahead.class == SPACE,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HARD, PUBLISHED, random_text};
    use super::*;
    use fastrand::Rng;

    /// Cuts `text` at each of its split points, and returns their number.
    fn check(text: &str) -> usize {
        let mut found = 0;
        let mut from = 0;
        while let Some(point) = next_split_point(text, from) {
            assert!(point >= from && point > 0 && point < text.len());
            for splitter in PUBLISHED {
                let (left, right) = text.split_at(point);
                let parts = [splitter.pieces(left), splitter.pieces(right)].concat();
                assert_eq!(parts, splitter.pieces(text), "{text:?} cut at {point}");
            }
            found += 1;
            from = point + 1;
        }
        found
    }

    #[test]
    fn every_short_text_of_hard_characters_can_be_cut_at_its_split_points() {
        // One character for each case that a pattern can distinguish.
        const ALPHABET: &[&str] = &[
            "a", "A", "r", "あ", "\u{301}", "1", " ", "\n", "'", "/", ".", "\0", "・",
        ];
        let length = if cfg!(miri) { 2 } else { 4 };
        let mut found = 0;
        for mut number in 0..ALPHABET.len().pow(length) {
            let mut text = String::new();
            for _ in 0..length {
                text += ALPHABET[number % ALPHABET.len()];
                number /= ALPHABET.len();
            }
            found += check(&text);
        }
        assert!(found > 10);
    }

    #[test]
    fn random_hard_texts_can_be_cut_at_their_split_points() {
        let mut random = Rng::with_seed(20_261_121);
        for _ in 0..if cfg!(miri) { 5 } else { 3_000 } {
            check(&random_text(&mut random, HARD, 32));
        }
    }

    #[test]
    fn the_next_split_point_is_at_or_after_from_and_inside_the_text() {
        for (text, from, expected) in [
            ("", 0, None),
            ("a", 0, None),
            ("ab cd", 0, Some(2)),
            ("ab cd", 2, Some(2)),
            ("ab cd", 3, None),
            ("ab ", 2, Some(2)),
            ("中文 a", 1, Some(6)),
            ("中文 a", 6, Some(6)),
            ("don't", 0, None),
            ("12a", 9, None),
        ] {
            assert_eq!(
                next_split_point(text, from),
                expected,
                "{text:?} from {from}"
            );
        }
    }
}
