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
//! The two characters beside a place tell whether such a token may exist.

use crate::merge::NO_RANK;
use crate::merge::initial::{character, is_trailing, pair};
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
            (single, before) = (None, after);
            end += len;
        }
        Segment { end, single }
    }
}

/// Returns the code point and the length of a character of at most three bytes at `start`; (`OTHER`,
/// 1) for anything else.
#[inline(always)]
fn decode(text: &[u8], start: usize) -> (u32, usize) {
    match (text[start], character(text, start)) {
        (byte @ ..0x80, _) => (byte as u32, 1),
        (_, (_, 1)) => (OTHER, 1),
        (_, (point, len)) => (point as u32, len),
    }
}
