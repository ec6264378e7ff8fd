//! Split points within a piece, so that its parts are short enough for the cache.
//!
//! A piece may be split between two of its characters a and b if no token contains ab, and units
//! have no prefix or suffix. A merge across the split would produce a token that is the
//! concatenation of its parts, so it would contain ab. There is none, so every merge is on one
//! side. The best merge on one side does not depend on the other side, because merges there neither
//! add nor remove pairs here. So the merges of the whole piece on each side are those of the parts,
//! in the same order.
//!
//! If a unit without a token may be unknown, a and b must both be tokens. An unknown unit may be
//! dropped, so that adjacent units meet; it may be fused with one before it; and it is emitted
//! after byte tokens in between. A token next to the split point prevents all three. Pieces in
//! bytes are not split: a pattern has split them before. No piece is split if an id that replaces
//! text without a token (of a byte, or the unknown one) is part of a merge, or if parts of a token
//! that is taken apart may be unknown.

use crate::vocabulary::hash::hash_number;

/// Number of bits for each pair of characters within tokens: enough to rarely miss a split point.
const BITS_FOR_EACH: usize = 16;

/// Number of pairs collected before duplicates are removed.
const AT_ONCE: usize = 1 << 22;

/// A Bloom filter of the pairs of adjacent characters within tokens. A false positive only misses a
/// split point, which does not change the result.
pub struct Joined {
    bits: Box<[u64]>,
}

impl Joined {
    /// Collect the pairs within tokens, apart from bytes that are not UTF-8.
    pub fn of<'a>(tokens: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut pairs: Vec<u64> = Vec::new();
        let mut different = 0;
        for text in tokens.filter_map(|token| std::str::from_utf8(token).ok()) {
            pairs.extend(text.chars().zip(text.chars().skip(1)).map(packed));
            // Long tokens have many pairs, but few distinct ones.
            if pairs.len() > 2 * different + AT_ONCE {
                pairs.sort_unstable();
                pairs.dedup();
                different = pairs.len();
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let words = (pairs.len() * BITS_FOR_EACH / 64).next_power_of_two();
        let mut bits = vec![0; words].into_boxed_slice();
        for pair in pairs {
            let (word, bit) = slot(pair, words);
            bits[word] |= bit;
        }
        Joined { bits }
    }

    /// Whether two characters may be adjacent within a token.
    #[inline(always)]
    pub fn has(&self, left: char, right: char) -> bool {
        let (word, bit) = slot(packed((left, right)), self.bits.len());
        self.bits[word] & bit != 0
    }
}

#[inline(always)]
fn packed((left, right): (char, char)) -> u64 {
    u64::from(u32::from(left)) << 32 | u64::from(u32::from(right))
}

#[inline(always)]
fn slot(pair: u64, words: usize) -> (usize, u64) {
    let hash = hash_number(pair);
    ((hash >> 32) as usize & (words - 1), 1 << (hash >> 58 & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_a_token_is_joined_and_most_others_are_not() {
        let tokens = ["▁the", "ab", "日本", "x"];
        let joined = Joined::of(tokens.iter().map(|token| token.as_bytes()));
        for token in tokens {
            for (left, right) in token.chars().zip(token.chars().skip(1)) {
                assert!(joined.has(left, right));
            }
        }
        let others = ('a'..='z').filter(|&c| joined.has(c, '▁')).count();
        assert!(others < 10);
    }
}
