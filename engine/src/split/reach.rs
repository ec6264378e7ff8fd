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
    let white_end = run_end(text, start, WHITESPACE);
    if white_end > end {
        return white_end;
    }
    let (true, Some(first)) = (cased_words, char_at(text, start)) else {
        return end;
    };
    let has_prefix = !UPPERISH.has(first.class) && !LOWERISH.has(first.class);
    let word = start + if has_prefix { first.len } else { 0 };
    run_end(text, run_end(text, word, UPPERISH), LOWERISH).max(end)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HARD, PUBLISHED, random_text};
    use fastrand::Rng;

    /// Returns the place three characters after `at`, or the end of the text.
    fn three_on(text: &str, at: usize) -> usize {
        let three = text[at..].chars().take(3);
        at + three.map(char::len_utf8).sum::<usize>()
    }

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
            let text = random_text(&mut random, from, 12);
            for splitter in PUBLISHED {
                let pieces = splitter.pieces(&text);
                let Some(first) = pieces.first().map(|piece| piece.len()) else {
                    continue;
                };
                let seen = splitter.reach(text.as_bytes(), 0, first);
                if let Some(second) = pieces.get(1).map(|piece| first + piece.len()) {
                    let next = splitter.reach(text.as_bytes(), first, second);
                    assert!(seen <= next, "{} {text:?}", splitter.name());
                }
                let cut = three_on(&text, splitter.reach_of_cut(text.as_bytes(), 0, first));
                for cut in (cut..=text.len()).filter(|&cut| text.is_char_boundary(cut)) {
                    let alone = splitter.pieces(&text[..cut])[0].len();
                    assert_eq!(alone, first, "{} {text:?} {cut}", splitter.name());
                }
                let seen = three_on(&text, seen);
                // Followed by arbitrary text.
                let other = text[..seen].to_owned() + from[random.usize(..from.len())];
                if seen < text.len() {
                    let found = splitter.pieces(&other)[0].len();
                    assert_eq!(found, first, "{} {text:?} {other:?}", splitter.name());
                }
            }
        }
    }
}
