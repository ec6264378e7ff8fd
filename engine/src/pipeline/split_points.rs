//! Where a piece can be cut before it is merged, so that its parts are short enough to be
//! remembered: between two characters that no token has next to each other.
//!
//! Merging only ever joins neighbours into a token, so nothing is merged across such a place, and
//! what happens on one side of it does not depend on the other: docs/formats.md has the proof.

use crate::vocabulary::hash::fold;

/// Bits for each pair of characters that is in some token: then a cut that is missed is rare.
const BITS_FOR_EACH: usize = 16;

/// So many pairs are gathered before those that are there twice go.
const AT_ONCE: usize = 1 << 22;

/// Pairs of characters that stand next to each other in some token. A pair that does not may be
/// taken for one that does, never the other way round: a cut that is not made changes nothing.
pub struct Joined {
    bits: Box<[u64]>,
}

impl Joined {
    /// The pairs in these tokens; bytes that are not UTF-8 have no part in it.
    pub fn of<'a>(tokens: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut pairs: Vec<u64> = Vec::new();
        let mut different = 0;
        for text in tokens.filter_map(|token| std::str::from_utf8(token).ok()) {
            pairs.extend(text.chars().zip(text.chars().skip(1)).map(packed));
            // Long tokens have many, of which few are different.
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
            let (word, bit) = place(pair, words);
            bits[word] |= bit;
        }
        Joined { bits }
    }

    /// Whether the two characters may stand next to each other in a token.
    #[inline(always)]
    pub fn has(&self, left: char, right: char) -> bool {
        let (word, bit) = place(packed((left, right)), self.bits.len());
        self.bits[word] & bit != 0
    }
}

#[inline(always)]
fn packed((left, right): (char, char)) -> u64 {
    u64::from(u32::from(left)) << 32 | u64::from(u32::from(right))
}

#[inline(always)]
fn place(pair: u64, words: usize) -> (usize, u64) {
    let hash = fold(pair ^ 0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03);
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
