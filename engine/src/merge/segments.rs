//! Segments of a pre-token that no token crosses the ends of: each is merged alone.
//!
//! A pre-token of Chinese, Japanese or Korean text is mostly new, but most of its segments are
//! single characters, and few of the others are new.
//!
//! **Lemma (segments).** If no token occurs in a pre-token xy such that it begins in x and ends in
//! y, the tokens of xy are those of x and then those of y. *Proof.* Every part during merging is
//! one byte or a token that occurs at its place, so no part crosses from x to y. Which merges x has,
//! and in which order, thus depends on parts of x alone; and the same for y. ∎
//!
//! Whether such a token exists is asked of the two characters beside the place, and answered
//! conservatively.

use crate::merge::NO_RANK;
use crate::vocabulary::rank_table::RankTable;

/// Which pairs of characters a token may cross from one to the other.
#[derive(Debug)]
pub struct Crossings {
    /// A Bloom filter with one bit for each pair of characters that is in a token.
    pairs: Box<[u64]>,
    /// By code point, up to U+FFFF. Bits 0 to 15: whether a token that crosses out of the character
    /// may end within the next one, by the upper four bits of that one's code point. Then the flags
    /// below.
    characters: Box<[u32]>,
}

/// A token may begin within the character before this one.
const ENTERED: u32 = 1 << 16;

/// The three bytes of the character merge to one token.
const ONE_TOKEN: u32 = 1 << 17;

/// The first code point that takes three bytes.
const THREE_BYTES: u32 = 0x800;

/// The code of what is no character of at most three bytes.
const OTHER: u32 = 1 << 16;

/// One segment: where it ends, and its character if it is a single one of at most three bytes.
pub struct Segment {
    pub end: usize,
    pub single: Option<u32>,
}

impl Crossings {
    /// Makes the table from a rank table and the ranks of all strings of two bytes.
    pub fn of(table: &RankTable, pairs: &[u32]) -> Self {
        let bits = (table.len() * 2).next_power_of_two().max(64);
        let mut crossings = Crossings {
            pairs: vec![0; bits / 64].into_boxed_slice(),
            characters: vec![0; 1 << 16].into_boxed_slice(),
        };
        // By the last byte of a character that a token begins within: the next characters that it
        // may end within, as in `characters`.
        let mut within_both = [0; 64];
        for (token, _) in table.iter() {
            // Other tokens cross between characters that each take less than three bytes.
            if is_trailing(token[0]) || token.iter().any(|&byte| byte >= 0xe0) {
                crossings.add(token, &mut within_both);
            }
            if let (point @ ..OTHER, 3) = decode(token, 0)
                && token.len() == 3
                && token
                    .windows(2)
                    .any(|two| pairs[pair(two[0], two[1])] != NO_RANK)
            {
                crossings.characters[point as usize] |= ONE_TOKEN;
            }
        }
        for (point, character) in crossings.characters.iter_mut().enumerate().skip(0x80) {
            *character |= within_both[point & 0x3f];
        }
        crossings
    }

    /// Adds the places of a token that are between two characters.
    fn add(&mut self, token: &[u8], within_both: &mut [u32; 64]) {
        let mut at = token.iter().take_while(|&&byte| is_trailing(byte)).count();
        let mut begins_within = at > 0;
        let mut before = OTHER;
        while at < token.len() {
            let lead = token[at];
            let (after, len) = decode(token, at);
            let ends_within = after == OTHER && lead < 0xf0;
            let ending = 1 << if lead < 0xe0 { 0 } else { lead & 0x0f };
            match (begins_within, ends_within) {
                (true, true) => within_both[token[at - 1] as usize & 0x3f] |= ending,
                (true, false) if after < OTHER => self.characters[after as usize] |= ENTERED,
                (false, true) if before < OTHER => self.characters[before as usize] |= ending,
                (false, false) if before < OTHER && after < OTHER => {
                    let (word, bit) = self.place(before, after);
                    self.pairs[word] |= bit;
                }
                _ => {}
            }
            (before, begins_within) = (after, false);
            at += len;
            while at < token.len() && is_trailing(token[at]) {
                // They belong to no character that ends here.
                before = OTHER;
                at += 1;
            }
        }
    }

    #[inline(always)]
    fn place(&self, before: u32, after: u32) -> (usize, u64) {
        let pair = (before as u64) << 16 | after as u64;
        let hash = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let word = (hash >> 32) as usize & (self.pairs.len() - 1);
        (word, 1 << (hash >> 58))
    }

    /// Returns whether a token may begin within or before the one character and end within or after
    /// the other.
    #[inline(always)]
    fn may_cross(&self, before: u32, after: u32) -> bool {
        if (before | after) >= OTHER || (before | after) < THREE_BYTES {
            return true;
        }
        let (word, bit) = self.place(before, after);
        let [leaves, enters] = [before, after].map(|point| self.characters[point as usize]);
        self.pairs[word] & bit != 0 || leaves >> (after >> 12) & 1 != 0 || enters & ENTERED != 0
    }

    /// Returns whether the three bytes of a character merge to one token.
    #[inline(always)]
    pub fn is_one_token(&self, point: u32) -> bool {
        self.characters[point as usize] & ONE_TOKEN != 0
    }

    /// Returns the segment that starts at `start`.
    #[inline(always)]
    pub fn segment(&self, piece: &[u8], start: usize) -> Segment {
        let (mut before, len) = decode(piece, start);
        let mut end = start + len;
        let mut single = Some(before).filter(|&point| point < OTHER);
        while end < piece.len() {
            let (after, len) = decode(piece, end);
            if !self.may_cross(before, after) {
                break;
            }
            single = None;
            before = after;
            end += len;
        }
        Segment { end, single }
    }
}

#[inline(always)]
fn pair(first: u8, second: u8) -> usize {
    (first as usize) << 8 | second as usize
}

#[inline(always)]
fn is_trailing(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Returns the code point and the length of a character of at most three bytes at `start`; (`OTHER`,
/// 1) for anything else. No two byte strings give the same character.
#[inline(always)]
fn decode(text: &[u8], start: usize) -> (u32, usize) {
    let byte = |i: usize| text.get(start + i).copied().unwrap_or(0);
    let (first, second, third) = (byte(0), byte(1), byte(2));
    let six = |byte: u8| (byte & 0x3f) as u32;
    match first {
        ..0x80 => (first as u32, 1),
        0xc2..=0xdf if is_trailing(second) => ((first as u32 & 0x1f) << 6 | six(second), 2),
        0xe0..=0xef if is_trailing(second) && is_trailing(third) => {
            let point = (first as u32 & 0x0f) << 12 | six(second) << 6 | six(third);
            if point < THREE_BYTES {
                (OTHER, 1)
            } else {
                (point, 3)
            }
        }
        _ => (OTHER, 1),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::merge::Merger;
    use crate::output::Ids;
    use crate::random::Random;
    use crate::vocabulary::Vocabulary;

    /// Characters of one to four bytes that share first and last bytes.
    const ALPHABET: [&str; 12] = [
        " ", "a", "é", "ß", "の", "ん", "中", "亭", "한", "국", "ไ", "😀",
    ];

    fn text(random: &mut Random, most: usize) -> Vec<u8> {
        let chars = 1 + random.below(most);
        let chars = (0..chars).map(|_| ALPHABET[random.below(ALPHABET.len())]);
        chars.collect::<String>().into_bytes()
    }

    /// A vocabulary of random stretches of such text, which may begin and end within characters.
    fn hostile(random: &mut Random) -> Vocabulary {
        let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        for _ in 0..random.below(80) {
            let text = text(random, 4);
            let start = random.below(text.len().min(4));
            let end = (start + 1 + random.below(9)).min(text.len());
            let token = text[start..end].to_vec();
            if !tokens.contains(&token) {
                tokens.insert(random.below(tokens.len() + 1), token);
            }
        }
        let table = RankTable::from_items(tokens.into_iter().zip(0..)).expect("no duplicates");
        Vocabulary::new(Arc::new(table))
    }

    #[test]
    fn merging_each_segment_is_merging_all() {
        let mut random = Random::new(27);
        let (mut merger, mut singles, mut several) = (Merger::default(), 0, 0);
        for _ in 0..if cfg!(miri) { 3 } else { 500 } {
            let vocabulary = hostile(&mut random);
            for _ in 0..8 {
                let mut piece = text(&mut random, 12);
                // Not all that is merged is whole characters.
                piece.drain(..random.below(2));
                let expected = merger.merge(&vocabulary, &piece).to_vec();
                let (mut ids, mut start) = (Ids::default(), 0);
                while start < piece.len() {
                    let Segment { end, single } = vocabulary.crossings().segment(&piece, start);
                    let bytes = &piece[start..end];
                    match single {
                        Some(point) => vocabulary.push_character(bytes, point, &mut ids),
                        None => ids.0.extend(merger.merge(&vocabulary, bytes)),
                    }
                    singles += usize::from(single.is_some());
                    several += usize::from(end - start > 4);
                    start = end;
                }
                assert_eq!(ids.0, expected, "{piece:?}");
            }
        }
        assert!(
            singles.min(several) > 100 || cfg!(miri),
            "{singles} {several}"
        );
    }
}
