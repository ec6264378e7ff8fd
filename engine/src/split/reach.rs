//! The part of a text that the published patterns examine to find the end of a pre-token.

use super::class::*;
use super::piece::{LOWERISH, UPPERISH};

/// Returns the end of the text examined to find that a pre-token goes from `start` to `end`, except
/// for up to three characters beyond.
///
/// An alternative that takes all it can examines one character more. Only two give back some of
/// what they took: white space, and words whose case decides where they end (`cased_words`).
///
/// The reach of a pre-token is at most that of the next one.
pub fn reach(text: &[u8], start: usize, end: usize, cased_words: bool) -> usize {
    let Some(first) = char_at(text, start) else {
        return end;
    };
    if WHITESPACE.has(first.class) && run_end(text, start, WHITESPACE) > end {
        return run_end(text, start, WHITESPACE);
    }
    if !cased_words {
        return end;
    }
    let has_prefix = !UPPERISH.has(first.class) && !LOWERISH.has(first.class);
    let word = start + if has_prefix { first.len } else { 0 };
    run_end(text, run_end(text, word, UPPERISH), LOWERISH).max(end)
}

/// As `reach`, for a text that ends where it is cut: nothing replaces the text after the cut.
///
/// A word that gave back capitals ends where it did without them, as long as no lower case follows.
/// White space up to the end of a text is one pre-token with `whole_end`, and otherwise ends with
/// the same line end, or one character earlier.
pub fn reach_of_cut(text: &[u8], start: usize, end: usize, whole_end: bool) -> usize {
    if whole_end {
        reach(text, start, end, false)
    } else {
        end
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HARD, PUBLISHED};
    use super::*;
    use fastrand::Rng;

    #[test]
    fn text_beyond_the_reach_does_not_change_the_pre_token() {
        let mut random = Rng::with_seed(20_261_123);
        for _ in 0..if cfg!(miri) { 10 } else { 20_000 } {
            let few: Vec<&str> = (0..3).map(|_| HARD[random.usize(..HARD.len())]).collect();
            let from = if random.usize(..2) == 0 {
                &few[..]
            } else {
                HARD
            };
            let parts = random.usize(..12);
            let text: String = (0..parts)
                .map(|_| from[random.usize(..from.len())])
                .collect();
            for splitter in PUBLISHED {
                let pieces = splitter.pieces(&text);
                let Some(first) = pieces.first().map(|piece| piece.len()) else {
                    continue;
                };
                let mut seen = splitter.reach(text.as_bytes(), 0, first);
                if let Some(second) = pieces.get(1).map(|piece| first + piece.len()) {
                    let next = splitter.reach(text.as_bytes(), first, second);
                    assert!(seen <= next, "{} {text:?}", splitter.name());
                }
                let mut cut = splitter.reach_of_cut(text.as_bytes(), 0, first);
                for _ in 0..3 {
                    cut += char_at(text.as_bytes(), cut).map_or(0, |seen| seen.len);
                }
                for cut in (cut..=text.len()).filter(|&cut| text.is_char_boundary(cut)) {
                    let alone = splitter.pieces(&text[..cut])[0].len();
                    assert_eq!(alone, first, "{} {text:?} {cut}", splitter.name());
                }
                // Three more characters, followed by arbitrary text.
                for _ in 0..3 {
                    seen += char_at(text.as_bytes(), seen).map_or(0, |seen| seen.len);
                }
                let other = text[..seen].to_owned() + from[random.usize(..from.len())];
                if seen < text.len() {
                    let found = splitter.pieces(&other)[0].len();
                    assert_eq!(found, first, "{} {text:?} {other:?}", splitter.name());
                    let alone = splitter.pieces(&text[..seen])[0].len();
                    assert_eq!(alone, first, "{} {text:?}", splitter.name());
                }
            }
        }
    }
}
