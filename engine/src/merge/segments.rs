//! Segments of a pre-token that no token crosses the ends of: each is merged alone.
//!
//! A pre-token of Chinese, Japanese or Korean text, or of emoji, is mostly new, but most of its
//! segments are single characters or other tokens, and few of the others are new.
//!
//! **Lemma (segments).** If no token occurs in a pre-token xy such that it begins in x and ends in
//! y, the tokens of xy are those of x and then those of y. *Proof.* Every part during merging is
//! one byte or a token that occurs at its place, so no part crosses from x to y. Which merges x
//! has, and in which order, thus depends on parts of x alone; and the same for y. ∎
//!
//! The two characters on either side of a place tell whether such a token may exist. `blocks` has
//! the scripts in which three must be looked at.

use crate::merge::NO_RANK;
use crate::merge::blocks::{BLOCKS_END, Blocks, are_in_block};
use crate::merge::initial::{character, is_trailing};
use crate::vocabulary::Pairs;
use crate::vocabulary::hash::K0;
use crate::vocabulary::lengths::pair;
use crate::vocabulary::regions::Regions;

/// Where a token may cross from one character to the next.
#[derive(Debug)]
pub struct Crossings {
    /// A Bloom filter of two adjacent characters of tokens: alone, and with the whole characters of
    /// the token on either side of them, `OTHER` for none. The two choose the line.
    filter: Box<[Line]>,
    regions: Regions<REGIONS>,
    /// The flags and the number below, by the lower 16 bits of the code point.
    characters: Box<[u8; 1 << 16]>,
    /// Where a token may cross within a block, of which the filter has no places.
    pub(super) blocks: Blocks,
}

/// A cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line([u64; 8]);

/// A place in the filter.
#[derive(Clone, Copy)]
struct Place {
    line: usize,
    hash: u64,
}

impl Place {
    /// Returns the place of the same two characters with those beside them.
    #[inline(always)]
    fn with(self, first: u32, last: u32) -> Self {
        let code = self.hash ^ (self.hash >> 32) ^ (first as u64) << 22 ^ last as u64;
        let hash = code.wrapping_mul(K0);
        Place { hash, ..self }
    }

    /// Returns the word of the line, and its bits.
    #[inline(always)]
    fn bits(self) -> (usize, u64) {
        let bit = |shift: u32| 1 << (self.hash >> shift & 63);
        ((self.hash >> 43) as usize & 7, bit(58) | bit(52) | bit(46))
    }
}

/// A token begins within the character before this one and contains this one.
const ENTERED: u8 = 1;

/// Returns the flag of a token that contains this character, or begins within it, and ends within
/// the next one, of which it contains the first byte. Bytes of different scripts may share a flag.
#[inline(always)]
fn left(lead: u8) -> u8 {
    1 << (2 + lead % 4)
}

/// The shift of the number of merges of the three bytes of the character.
const MERGES: u32 = 6;

/// The first code points that take three bytes, and four.
pub(super) const THREE_BYTES: u32 = 0x800;
const FOUR_BYTES: u32 = 1 << 16;

/// Number of regions of the filter: a block of 128 code points up to U+FFFF each, and all others.
const REGIONS: usize = 513;

/// Returns the region of two characters, by the higher code point.
#[inline(always)]
fn region(before: u32, after: u32) -> usize {
    let [before, after] = [before, after].map(|code| code & (OTHER - 1));
    (before.max(after) as usize >> 7).min(REGIONS - 1)
}

/// The code of bytes that are not one character.
pub(super) const OTHER: u32 = 1 << 21;

/// One segment: where it ends, and its character if it is a single one of at most three bytes.
pub struct Segment {
    pub end: usize,
    pub single: Option<u32>,
}

/// Returns whether a pre-token or segment of more than three bytes has a character of three or four
/// bytes at its start or after its first byte, such as a space.
#[inline(always)]
pub fn starts_wide(piece: &[u8]) -> bool {
    piece.len() > 3 && (piece[0] >= 0xe0 || piece[1] >= 0xe0)
}

impl Crossings {
    /// Makes the table from the tokens that are not ASCII and the ranks of all pairs of bytes.
    pub fn of(tokens: &[(&[u8], u32)], pairs: &Pairs) -> Self {
        let mut counts = [0u32; REGIONS];
        let mut crossing = Vec::with_capacity(tokens.len());
        for &(token, _) in tokens {
            let wide = token.iter().position(|&byte| byte >= 0xe0);
            // Other tokens cross between characters that each take less than three bytes.
            if wide.is_some() || is_trailing(token[0]) {
                counts[region(within(0xff), decode(token, wide.unwrap_or(0)).0)] += 1;
                crossing.push(token);
            }
        }
        // At least 48 bits for each token.
        let (regions, lines) = Regions::of(counts.map(|count| (count * 3).div_ceil(32).max(1)));
        let mut crossings = Crossings {
            filter: vec![Line::default(); lines].into_boxed_slice(),
            regions,
            characters: Box::new([0; 1 << 16]),
            blocks: Blocks::new(),
        };
        let points = (0u32..).zip(&mut crossings.characters[..]);
        for (point, flags) in points.skip(THREE_BYTES as usize) {
            let [second, third] = [point >> 6, point].map(|bits| 0x80 | bits as u8 & 0x3f);
            let lead = 0xe0 | (point >> 12) as u8;
            let two = pairs[pair([lead, second])].min(pairs[pair([second, third])]);
            *flags = u8::from(two != NO_RANK) << MERGES;
        }
        for token in crossing {
            crossings.add(token);
            if let (3, (point, 3)) = (token.len(), decode(token, 0)) {
                let flags = &mut crossings.characters[point as usize];
                // If two of its bytes merge, the second merge makes it whole.
                *flags += (*flags >> MERGES & 1) << MERGES;
            }
        }
        for before in THREE_BYTES..BLOCKS_END {
            for after in before & !127..(before | 127) + 1 {
                let end = 0x80 | before as u8 & 0x3f;
                if crossings.crosses_within(before, after, end, 0xe0) {
                    crossings.blocks.add([OTHER, before, after, OTHER]);
                }
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
            match (begins_within, after == OTHER) {
                (true, true) => {
                    let last = token[at - 1] as usize & 0x3f;
                    let ending_so = self.characters.iter_mut().skip(last).step_by(64);
                    ending_so.for_each(|flags| *flags |= left(lead));
                }
                (true, false) if after < OTHER => {
                    self.characters[after as u16 as usize] |= ENTERED;
                    self.insert(self.place(within(token[at - 1]), after));
                }
                (false, true) if before < OTHER => {
                    self.characters[before as u16 as usize] |= left(lead);
                }
                (false, false) if before < OTHER && after < OTHER => {
                    let last = decode(token, at + len).0;
                    if are_in_block(before, after) {
                        self.blocks.add([first, before, after, last]);
                    } else {
                        let two = self.place(before, after);
                        self.insert(two);
                        self.insert(two.with(first, last));
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

    fn insert(&mut self, place: Place) {
        let (word, bits) = place.bits();
        self.filter[place.line].0[word] |= bits;
    }

    #[inline(always)]
    fn has(&self, place: Place) -> bool {
        let (word, bits) = place.bits();
        !self.filter[place.line].0[word] & bits == 0
    }

    /// Returns the place of two adjacent characters.
    #[inline(always)]
    fn place(&self, before: u32, after: u32) -> Place {
        let hash = ((before as u64) << 22 | after as u64).wrapping_mul(K0);
        // By other bits than those that `bits` takes.
        let region = region(before, after);
        let line = self.regions.place(region, (hash >> 11) as u32);
        Place { line, hash }
    }

    /// Returns whether a token may begin within or before the character that ends at `at`, and end
    /// within or after the one that starts there. They are the middle ones of four adjacent
    /// characters; the first is `OTHER` if it is in no segment with them.
    #[inline(always)]
    fn may_cross(&self, piece: &[u8], at: usize, [first, before, after, last]: [u32; 4]) -> bool {
        // Yes is always right. After a space it is the usual answer, and costs most to find.
        let is_after_space = before == u32::from(b' ');
        if is_after_space || (before | after) >= OTHER || (before | after) < BLOCKS_END {
            return true;
        }
        let two = self.place(before, after);
        let has = |first, last| self.has(two.with(first, last));
        // The last tests have no branches, which would be unpredictable.
        if self.has(two)
            && (has(OTHER, OTHER) || has(first, OTHER) | has(OTHER, last) | has(first, last))
        {
            return true;
        }
        self.crosses_within(before, after, piece[at - 1], piece[at])
    }

    /// Returns whether a token may cross between two characters that begins or ends within one of
    /// them. `end` is the last byte of the first one, `start` the first byte of the other.
    #[inline(always)]
    fn crosses_within(&self, before: u32, after: u32, end: u8, start: u8) -> bool {
        let [flags, entered] = [before, after].map(|point| self.characters[point as u16 as usize]);
        let is_entered = || self.has(self.place(within(end), after));
        flags & left(start) != 0 || entered & ENTERED != 0 && is_entered()
    }

    /// Returns the number of tokens that the three bytes of a character merge to.
    #[inline(always)]
    pub fn tokens_of(&self, point: u32) -> usize {
        3 - (self.characters[point as u16 as usize] >> MERGES) as usize
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
        let mut single = Some(before).filter(|&point| point < FOUR_BYTES);
        while self.at < self.piece.len() {
            let [(after, _), (last, _)] = self.ahead;
            let near = [first, before, after, last];
            if !self.crossings.may_cross(self.piece, self.at, near) {
                break;
            }
            (single, first, before) = (None, before, self.advance());
        }
        let end = self.at;
        Some(Segment { end, single })
    }
}

/// Returns the code of a character that a token begins within, with this as its last byte.
#[inline(always)]
fn within(byte: u8) -> u32 {
    OTHER | byte as u32
}

/// Returns the code point and the length of a character at `start`; (`OTHER`, 1) for anything else,
/// and at the end.
#[inline(always)]
pub(super) fn decode(text: &[u8], start: usize) -> (u32, usize) {
    match (character(text, start), text.get(start)) {
        ((point, len @ 2..), _) => (point as u32, len),
        (_, Some(&byte @ ..0x80)) => (byte as u32, 1),
        (_, Some(0xf0..)) => decode_four(&text[start..]).unwrap_or((OTHER, 1)),
        _ => (OTHER, 1),
    }
}

#[inline(never)]
fn decode_four(text: &[u8]) -> Option<(u32, usize)> {
    let character = str::from_utf8(text.get(..4)?).ok()?.chars().next()?;
    Some((character as u32, 4))
}
