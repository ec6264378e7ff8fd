//! The part of a text that the published patterns examine to find the end of a pre-token.

use super::class::*;

const LETTERS_AND_MARKS: ClassSet = ClassSet::of(&[UPPER, LOWER, CASELESS, MARK]);

/// Returns an upper bound of the end of the text that any alternative examines from `start`, except
/// for up to three characters beyond.
///
/// The alternatives are those of `docs/patterns.md`: a word with an optional character before it; a
/// number, of at most three digits unless `long_numbers`; a run of other characters with an
/// optional space before it and line ends and slashes after it; white space.
pub fn reach(text: &[u8], start: usize, long_numbers: bool) -> usize {
    let Some(first) = char_at(text, start) else {
        return start;
    };
    let after = start + first.len;
    let word = run_end(text, after, LETTERS_AND_MARKS);
    let number = |from| {
        if long_numbers {
            run_end(text, from, ClassSet::of(&[NUMBER]))
        } else {
            from
        }
    };
    let others = |from| run_end(text, run_end(text, from, NEITHER), ClassSet::of(&[NEWLINE]));
    match first.class {
        SPACE | NEWLINE => run_end(text, after, WHITESPACE)
            .max(word)
            .max(number(after))
            .max(others(after)),
        NUMBER => number(after),
        UPPER | LOWER | CASELESS => word,
        _ => word.max(others(after)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Splitter, tests::HARD};
    use super::*;
    use crate::random::Random;

    #[test]
    fn text_beyond_the_reach_does_not_change_the_pre_token() {
        let splitters = [
            Splitter::Gpt2,
            Splitter::Cl100k,
            Splitter::O200k,
            Splitter::Llama3,
            Splitter::Qwen2,
            Splitter::Tekken,
            Splitter::DeepSeekV3,
        ];
        let mut random = Random::new(20_261_123);
        for _ in 0..if cfg!(miri) { 10 } else { 20_000 } {
            let few: Vec<&str> = (0..3).map(|_| HARD[random.below(HARD.len())]).collect();
            let from = if random.below(2) == 0 { &few[..] } else { HARD };
            let parts = random.below(12);
            let text: String = (0..parts).map(|_| from[random.below(from.len())]).collect();
            for splitter in &splitters {
                let Some(first) = splitter.pieces(&text).first().map(|piece| piece.len()) else {
                    continue;
                };
                // Three more characters, followed by arbitrary text.
                let mut seen = splitter.reach(text.as_bytes(), 0).max(first);
                for _ in 0..3 {
                    seen += char_at(text.as_bytes(), seen).map_or(0, |seen| seen.len);
                }
                let other = text[..seen].to_owned() + from[random.below(from.len())];
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
