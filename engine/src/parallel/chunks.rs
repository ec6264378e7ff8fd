//! Splits a text into chunks that can be encoded separately: cut at safe split points and at
//! special tokens.

use std::ops::Range;

use crate::split::next_split_point;
use crate::vocabulary::special::SpecialSet;

/// An iterator over the chunks of a text in order. No chunk is empty; joined they are the text.
///
/// Ordinary text between two allowed special tokens is split on its own, so it may be cut at each
/// of its split points. A special token is never cut.
pub struct Chunks<'a> {
    text: &'a str,
    allowed: &'a SpecialSet,
    least: usize,
    /// Start of the next chunk.
    at: usize,
    /// The ordinary text at or after `at`, and the end of the special token that follows it.
    ordinary: Range<usize>,
    after: usize,
}

impl<'a> Chunks<'a> {
    /// Makes chunks of at least `least` bytes, except for the last.
    pub fn new(text: &'a str, allowed: &'a SpecialSet, least: usize) -> Self {
        let mut chunks = Chunks {
            text,
            allowed,
            least: least.max(1),
            at: 0,
            ordinary: 0..0,
            after: 0,
        };
        chunks.go_on();
        chunks
    }

    /// Moves to the ordinary text after the special token.
    fn go_on(&mut self) {
        let start = self.after;
        (self.ordinary, self.after) = match self.allowed.next_known(self.text, start) {
            Some((found, _)) => (start..found.start, found.end),
            None => (start..self.text.len(), self.text.len()),
        };
    }

    /// Returns the first position at or after `target` where the text can be cut.
    fn next_cut(&mut self, target: usize) -> usize {
        loop {
            let ordinary = &self.text[self.ordinary.clone()];
            let from = target.saturating_sub(self.ordinary.start);
            if from < ordinary.len()
                && let Some(point) = next_split_point(ordinary, from)
            {
                return self.ordinary.start + point;
            }
            let end = self.after;
            if end == self.text.len() {
                return end;
            }
            self.go_on();
            if end >= target {
                return end;
            }
        }
    }
}

impl Iterator for Chunks<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        if start == self.text.len() {
            return None;
        }
        self.at = self.next_cut(start.saturating_add(self.least));
        Some(start..self.at)
    }
}

/// Groups consecutive texts so that each group has at least `least` bytes, except for the last.
pub fn groups<'a>(texts: &'a [&'a str], least: usize) -> impl Iterator<Item = &'a [&'a str]> {
    // Asked once about each text that another follows, in order.
    let mut bytes = 0;
    texts.chunk_by(move |text, _| {
        bytes += text.len();
        let goes_on = bytes < least;
        if !goes_on {
            bytes = 0;
        }
        goes_on
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpe::{Bpe, SpecialFound};
    use crate::output::offsets::OffsetUnit;
    use crate::parallel::Sharing;
    use crate::split::tests::HARD;
    use crate::vocabulary::rank_table::RankTable;
    use fastrand::Rng;
    use std::collections::HashMap;
    use std::sync::Arc;

    const CL100K: &str = concat!(
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+",
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    );

    /// An encoding with all bytes and a few merges, for small texts on several threads.
    fn toy(pattern: &str, [threads, from, least_chunk]: [usize; 3]) -> Bpe {
        let bytes = (0..=255).map(|byte| vec![byte]);
        let merged = [&b" t"[..], b"he", b" the", b"\n\n", b"..", b"ab", b"  "];
        let tokens = bytes.chain(merged.map(<[u8]>::to_vec));
        let table = RankTable::from_items(tokens.zip(0..)).expect("no duplicates");
        let specials = HashMap::from([("<s>".to_owned(), 999), ("<s><s>".to_owned(), 1000)]);
        let sharing = Sharing {
            threads,
            from,
            least_chunk,
        };
        Bpe::new(Arc::new(table), pattern, specials, 1 << 20, sharing).expect("a pattern")
    }

    fn hard_text(random: &mut Rng) -> String {
        let chunks = random.usize(..60);
        (0..chunks)
            .map(|_| match random.usize(..12) {
                0 => "<s>",
                1 => "<s",
                _ => HARD[random.usize(..HARD.len())],
            })
            .collect()
    }

    #[test]
    fn several_threads_return_the_same_as_one() {
        let several = toy(CL100K, [3, 0, 1]);
        let one = toy(CL100K, [1, 0, 1]);
        let mut random = Rng::with_seed(20_261_121);
        for _ in 0..if cfg!(miri) { 5 } else { 400 } {
            let text = &hard_text(&mut random);
            for names in [&[][..], &["<s>"], &["<s>", "<s><s>"]] {
                let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
                let (allowed, none) = (one.special_set(names), one.special_set(vec![]));
                let ids = one.encode(text, &allowed, &none);
                assert_eq!(several.encode(text, &allowed, &none), ids, "{text:?}");
                assert_eq!(
                    several.encode_with_offsets(text, OffsetUnit::Byte, &allowed, &none),
                    one.encode_with_offsets(text, OffsetUnit::Byte, &allowed, &none)
                );
                let total = ids.expect("nothing is disallowed").len();
                for limit in [0, 1, total.saturating_sub(1), total, total + 1, usize::MAX] {
                    let count = several.count(text, &allowed, &none, Some(limit));
                    assert_eq!(count, Ok(total.min(limit.saturating_add(1))), "{text:?}");
                }
                assert_eq!(several.count(text, &allowed, &none, None), Ok(total));
            }
        }
    }

    #[test]
    fn many_texts_on_several_threads_return_the_same_as_on_one() {
        // The second pattern has no scanner, so its split points are not known.
        for pattern in [CL100K, r"\w+|\W"] {
            let several = toy(pattern, [3, 500, 7]);
            let none = several.special_set(vec![]);
            let mut random = Rng::with_seed(20_261_121);
            let texts: Vec<String> = (0..if cfg!(miri) { 9 } else { 300 })
                .map(|_| hard_text(&mut random))
                .collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let encode = |text: &str| several.encode(text, &none, &none);
            let expected: Vec<_> = texts
                .iter()
                .map(|text| encode(text).expect("ids"))
                .collect();
            assert_eq!(several.on_each(&texts, encode), Ok(expected));
            // Of two texts that fail, the first one in order counts.
            let fail = |text: &str| -> Result<(), SpecialFound> {
                let at = texts.iter().position(|&one| one.as_ptr() == text.as_ptr());
                match at {
                    Some(at @ (3 | 8)) => Err(SpecialFound {
                        token: "<s>".to_owned(),
                        byte_offset: at,
                    }),
                    _ => Ok(()),
                }
            };
            let error = several.on_each(&texts, fail).expect_err("two of them fail");
            assert_eq!(error.byte_offset, 3);
        }
    }

    #[test]
    fn groups_hold_all_texts_in_order() {
        let texts = ["ab", "", "c", "defg", "", "h"];
        let of = |least| groups(&texts, least).map(<[_]>::len).collect::<Vec<_>>();
        assert_eq!(of(1), [1, 2, 1, 2]);
        assert_eq!(of(3), [3, 1, 2]);
        assert_eq!(of(99), [6]);
        assert_eq!(groups(&[], 1).count(), 0);
    }

    #[test]
    fn text_is_cut_at_split_points_and_after_special_tokens_but_never_in_one() {
        for (text, allowed, least, expected) in [
            ("", &[][..], 1, &[][..]),
            ("one two three", &[], 1, &["one", " two", " three"]),
            ("one two three", &[], 4, &["one two", " three"]),
            ("one two three", &[], 99, &["one two three"]),
            ("ab<x y>cd ef", &["<x y>"], 1, &["ab<x y>", "cd", " ef"]),
            ("ab<x y>cd ef", &["<x y>"], 4, &["ab<x y>", "cd ef"]),
            ("ab<x y>cd ef", &[], 3, &["ab<x", " y>cd", " ef"]),
            ("<s><s>", &["<s>"], 1, &["<s>", "<s>"]),
            ("<s><s>", &["<s>", "<s><s>"], 1, &["<s><s>"]),
        ] {
            let names = allowed.iter().map(|name| name.to_string()).collect();
            let set = SpecialSet::new(names, |_| Some(0));
            let chunks = Chunks::new(text, &set, least).map(|chunk| &text[chunk]);
            assert_eq!(chunks.collect::<Vec<_>>(), expected, "{text:?}, {least}");
        }
    }
}
