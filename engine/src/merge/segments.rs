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
//! The two characters on either side of a place tell whether such a token may exist.

use crate::merge::NO_RANK;
use crate::merge::initial::{character, is_trailing, pair};
use crate::vocabulary::rank_table::RankTable;

/// Where a token may cross from one character to the next.
#[derive(Debug)]
pub struct Crossings {
    /// A Bloom filter of adjacent characters of tokens: of two after `ANY`; of three; and of two
    /// after `OTHER`, where the token has no whole character beside them.
    filter: Box<[u64]>,
    /// The flags below, by code point, up to U+FFFF.
    characters: Box<[u8]>,
}

/// A token begins within the character before this one and contains this one.
const ENTERED: u8 = 1;

/// A token contains this character, or begins within it, and ends within the next one.
const LEFT: u8 = 1 << 1;

/// The three bytes of the character merge to one token.
const ONE_TOKEN: u8 = 1 << 2;

/// The first code point that takes three bytes.
const THREE_BYTES: u32 = 0x800;

/// The code of what is no character of at most three bytes.
const OTHER: u32 = 1 << 16;

/// Stands for whatever is before two characters.
const ANY: u32 = OTHER | 0xff;

/// One segment: where it ends, and its character if it is a single one of at most three bytes.
pub struct Segment {
    pub end: usize,
    pub single: Option<u32>,
}

impl Crossings {
    /// Makes the table from a rank table and the ranks of all strings of two bytes.
    pub fn of(table: &RankTable, pairs: &[u32]) -> Self {
        // Other tokens cross between characters that each take less than three bytes.
        let is_wide = |token: &&[u8]| is_trailing(token[0]) || token.iter().any(|&b| b >= 0xe0);
        let tokens = || table.iter().map(|(token, _)| token).filter(is_wide);
        let bits = (tokens().count() * 32).next_power_of_two().max(64);
        let mut crossings = Crossings {
            filter: vec![0; bits / 64].into_boxed_slice(),
            characters: vec![0; 1 << 16].into_boxed_slice(),
        };
        for token in tokens() {
            crossings.add(token);
            if let (&[first, second, third], (point, 3)) = (token, decode(token, 0))
                && pairs[pair(first, second)].min(pairs[pair(second, third)]) != NO_RANK
            {
                crossings.characters[point as usize] |= ONE_TOKEN;
            }
        }
        crossings
    }

    /// Adds the places of a token that are between two characters.
    fn add(&mut self, token: &[u8]) {
        let mut at = token.iter().take_while(|&&byte| is_trailing(byte)).count();
        let mut begins_within = at > 0;
        // The two characters before `at`.
        let [mut first, mut before] = [OTHER; 2];
        while at < token.len() {
            let lead = token[at];
            let (after, len) = decode(token, at);
            match (begins_within, after == OTHER && lead < 0xf0) {
                (true, true) => {
                    let last = token[at - 1];
                    let ending_so = self.characters.iter_mut().skip(last as usize & 0x3f);
                    ending_so.step_by(64).for_each(|flags| *flags |= LEFT);
                    self.insert([ANY, within(last), within(lead)]);
                }
                (true, false) if after < OTHER => {
                    self.characters[after as usize] |= ENTERED;
                    self.insert([ANY, within(token[at - 1]), after]);
                }
                (false, true) if before < OTHER => {
                    self.characters[before as usize] |= LEFT;
                    self.insert([ANY, before, within(lead)]);
                }
                (false, false) if before < OTHER && after < OTHER => {
                    self.insert([ANY, before, after]);
                    // Else the three are added when the last of them is `after`.
                    if first < OTHER || decode(token, at + len).0 == OTHER {
                        self.insert([first, before, after]);
                    }
                }
                _ => {}
            }
            (first, before, begins_within) = (before, after, false);
            at += len;
            while at < token.len() && is_trailing(token[at]) {
                // They belong to no character that ends here.
                before = OTHER;
                at += 1;
            }
        }
    }

    fn insert(&mut self, characters: [u32; 3]) {
        let (word, bits) = self.place(characters);
        self.filter[word] |= bits;
    }

    #[inline(always)]
    fn has(&self, characters: [u32; 3]) -> bool {
        let (word, bits) = self.place(characters);
        self.filter[word] & bits == bits
    }

    #[inline(always)]
    fn place(&self, [first, before, after]: [u32; 3]) -> (usize, u64) {
        let code = (first as u64) << 34 | (before as u64) << 17 | after as u64;
        let hash = code.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let word = (hash >> 38) as usize & (self.filter.len() - 1);
        (word, 1 << (hash >> 58) | 1 << (hash >> 52 & 63))
    }

    /// Returns whether a token may begin within or before the character that ends at `at`, and end
    /// within or after the one that starts there. They are the middle ones of four adjacent
    /// characters; the first is `OTHER` if it is in no segment with them.
    #[inline(always)]
    fn may_cross(&self, piece: &[u8], at: usize, [first, before, after, last]: [u32; 4]) -> bool {
        if (before | after) >= OTHER || (before | after) < THREE_BYTES {
            return true;
        }
        if self.has([ANY, before, after])
            && (self.has([OTHER, before, after])
                || self.has([first, before, after])
                || self.has([before, after, last]))
        {
            return true;
        }
        let [left, entered] = [before, after].map(|point| self.characters[point as usize]);
        if left & LEFT | entered & ENTERED == 0 {
            return false;
        }
        let (end, start) = (piece[at - 1], piece[at]);
        entered & ENTERED != 0 && self.has([ANY, within(end), after])
            || left & LEFT != 0
                && (self.has([ANY, before, within(start)])
                    || self.has([ANY, within(end), within(start)]))
    }

    /// Returns whether the three bytes of a character merge to one token.
    #[inline(always)]
    pub fn is_one_token(&self, point: u32) -> bool {
        self.characters[point as usize] & ONE_TOKEN != 0
    }
}

/// The segments of a pre-token, in order.
pub struct Segments<'a> {
    crossings: &'a Crossings,
    piece: &'a [u8],
    at: usize,
    /// The characters at `at` and after it, and their lengths.
    ahead: [(u32, usize); 2],
}

impl<'a> Segments<'a> {
    #[inline(always)]
    pub fn of(crossings: &'a Crossings, piece: &'a [u8]) -> Self {
        let first = decode(piece, 0);
        Segments {
            crossings,
            piece,
            at: 0,
            ahead: [first, decode(piece, first.1)],
        }
    }

    #[inline(always)]
    fn advance(&mut self) -> u32 {
        let [(point, len), next] = self.ahead;
        self.at += len;
        self.ahead = [next, decode(self.piece, self.at + next.1)];
        point
    }
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    #[inline(always)]
    fn next(&mut self) -> Option<Segment> {
        if self.at >= self.piece.len() {
            return None;
        }
        let mut first = OTHER;
        let mut before = self.advance();
        let mut single = Some(before).filter(|&point| point < OTHER);
        while self.at < self.piece.len() {
            let [(after, _), (last, _)] = self.ahead;
            let near = [first, before, after, last];
            if !self.crossings.may_cross(self.piece, self.at, near) {
                break;
            }
            (single, first, before) = (None, before, self.advance());
        }
        Some(Segment {
            end: self.at,
            single,
        })
    }
}

/// Returns the code of a character that a token begins or ends within, of which the token has this
/// byte next to another character.
#[inline(always)]
fn within(byte: u8) -> u32 {
    OTHER | byte as u32
}

/// Returns the code point and the length of a character of at most three bytes at `start`; (`OTHER`,
/// 1) for anything else, and at the end.
#[inline(always)]
fn decode(text: &[u8], start: usize) -> (u32, usize) {
    match (text.get(start), character(text, start)) {
        (Some(&byte @ ..0x80), _) => (byte as u32, 1),
        (_, (_, 1)) => (OTHER, 1),
        (_, (point, len)) => (point as u32, len),
    }
}
