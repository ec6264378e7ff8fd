//! Where a piece can be cut before it is merged, so that its chunks are short enough to be cached.
//!
//! A piece may be cut between two of its characters a and b if no token holds ab, and no unit has a
//! prefix or suffix. A merge across the cut would make a token that is the concatenation of what it
//! merges, so it would hold a's last and b's first byte next to each other as ab. There is none, so
//! all merges are on one side or the other; and which merge is the best on one side does not depend
//! on what the other side did, since merging there neither makes nor takes away a pair here. So the
//! merges of the whole piece, each side by itself, are those of the parts, in the same order.
//!
//! Where a unit that is no token may be unknown, a and b must both be tokens: an unknown unit may
//! vanish, so that its neighbours meet; it may join one before it; and it stands behind bytes that
//! came between. A token beside the cut ends all three. Pieces in bytes are not cut: they are split
//! before. No piece is cut if an id that stands for text without spelling it (of a byte, or the
//! unknown one) is itself in a merge, or if unknown units may come of what is taken apart.

use crate::vocabulary::hash::fold;

/// Bits for each pair of characters that is in some token: then a cut that is missed is rare.
const BITS_FOR_EACH: usize = 16;

/// Pairs that are gathered before duplicates are removed.
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
            // Long tokens have many pairs, but few different ones.
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
