//! Segments of text in one block of code points, such as Thai or Devanagari.
//!
//! Tokens cross between most of its characters, so the two beside a place rarely tell. Three
//! adjacent ones mostly do. All places are tested before the first segment is encoded, without
//! branches, which would be unpredictable.

use crate::merge::initial::character;
use crate::merge::segments::{Crossings, OTHER, Segment, THREE_BYTES, decode};

/// The first code point after the blocks of 128 code points, whose first byte is 0xe0.
pub const BLOCKS_END: u32 = 1 << 12;

/// Flags of three adjacent characters of a token: its whole characters start with them, end with
/// them, or are more than three.
const STARTS: u8 = 1;
const ENDS: u8 = 1 << 1;
const INNER: u8 = 1 << 2;

/// Where a token may cross between two characters of one block.
#[derive(Debug)]
pub struct Blocks {
    /// By two characters, the first one without its block: in the lowest bit, whether a token may
    /// cross whatever is beside them. Above it, the row of the two in `threes`.
    pairs: Box<[u32]>,
    /// The flags of two characters and the one after them, without its block. All others share the
    /// first row, which has none.
    threes: Vec<[u8; 128]>,
}

/// Returns the place of two characters in `pairs`.
#[inline(always)]
fn pair_of(before: u32, after: u32) -> usize {
    (after % BLOCKS_END * 128 + before % 128) as usize
}

/// Returns whether two characters are in one block.
#[inline(always)]
pub fn are_in_block(before: u32, after: u32) -> bool {
    (THREE_BYTES..BLOCKS_END).contains(&after) && (before ^ after) < 128
}

/// Returns whether the last character of a piece of more than three bytes is in a block.
#[inline(always)]
pub fn ends_in_block(piece: &[u8]) -> bool {
    matches!(piece.last_chunk::<3>(), Some([0xe0, ..]))
}

impl Blocks {
    pub fn new() -> Self {
        Blocks {
            pairs: vec![0; pair_of(127, BLOCKS_END - 1) + 1].into_boxed_slice(),
            threes: vec![[0; 128]],
        }
    }

    /// Adds a place in a token, between the middle ones of four characters, which are in one block.
    /// The others are `OTHER` if the token does not contain them.
    pub fn add(&mut self, [first, before, after, last]: [u32; 4]) {
        match (first, last) {
            (OTHER, OTHER) => self.pairs[pair_of(before, after)] |= 1,
            (OTHER, _) => self.add_three([before, after, last], STARTS),
            (_, OTHER) => self.add_three([first, before, after], ENDS),
            _ => {
                self.add_three([first, before, after], INNER);
                self.add_three([before, after, last], INNER);
            }
        }
    }

    fn add_three(&mut self, [first, middle, last]: [u32; 3], flag: u8) {
        let pair = &mut self.pairs[pair_of(first, middle)];
        if *pair < 2 {
            *pair |= (self.threes.len() as u32) << 1;
            self.threes.push([0; 128]);
        }
        self.threes[(*pair >> 1) as usize][last as usize % 128] |= flag;
    }

    /// Returns 1 if a token may cross between two characters, else 0, and the flags of these and
    /// the one after them. Yes is always right, and the answer if they are not in one block.
    /// `ending` are the flags of the character before the two and these.
    #[inline(always)]
    fn crosses(&self, [before, after, last]: [u32; 3], ending: u8) -> (u8, u8) {
        if !(THREE_BYTES..BLOCKS_END).contains(&after) {
            return (1, 0);
        }
        let pair = self.pairs[pair_of(before, after)];
        let starting = self.threes[(pair >> 1) as usize][last as usize % 128];
        let may_cross = pair as u8 | starting | ending >> 1 | (ending & starting) >> 2;
        let are_apart = !are_in_block(before, after);
        (may_cross & 1 | u8::from(are_apart), starting)
    }
}

/// The segments of a pre-token that ends in a block.
pub struct BlockSegments<'a> {
    blocks: &'a Blocks,
    piece: &'a [u8],
    /// The start of the next segment.
    start: usize,
    /// The first place that was not tested, the characters before and after it, and the flags of
    /// those before it that are in one segment.
    at: usize,
    near: [(u32, usize); 2],
    flags: u8,
    /// The ends that were found, as bits from the place `base`.
    ends: u64,
    base: usize,
}

/// Number of bytes in which ends are looked for at once. The last character may be longer.
const WINDOW: usize = 60;

impl<'a> BlockSegments<'a> {
    #[inline(always)]
    pub fn of(crossings: &'a Crossings, piece: &'a [u8]) -> Self {
        let first = decode(piece, 0);
        BlockSegments {
            blocks: &crossings.blocks,
            piece,
            start: 0,
            at: first.1,
            near: [first, decode(piece, first.1)],
            flags: 0,
            ends: 0,
            base: 0,
        }
    }

    /// Looks for ends in the next bytes.
    #[inline(always)]
    fn find_ends(&mut self) {
        let (mut at, [mut before, mut after], mut flags) = (self.at, self.near, self.flags);
        self.base = at;
        while at < self.piece.len() && at - self.base < WINDOW {
            let last = decode_after(self.piece, at + after.1);
            let three = [before.0, after.0, last.0];
            let (crosses, next) = self.blocks.crosses(three, flags);
            self.ends |= u64::from(crosses ^ 1) << (at - self.base);
            flags = next & crosses.wrapping_neg();
            at += after.1;
            (before, after) = (after, last);
        }
        if at >= self.piece.len() {
            self.ends |= 1 << (at - self.base);
        }
        (self.at, self.near, self.flags) = (at, [before, after], flags);
    }
}

/// Returns the character after the byte before `start`, and its length, as `decode` does.
#[inline(always)]
fn decode_after(text: &[u8], start: usize) -> (u32, usize) {
    if let Some(four) = text[start - 1..].first_chunk()
        && let word = u32::from_le_bytes(*four)
        && word & 0xc0e0_ff00 == 0x80a0_e000
    {
        return (word >> 10 & 0xfc0 | word >> 24 & 0x3f, 3);
    }
    decode(text, start)
}

impl Iterator for BlockSegments<'_> {
    type Item = Segment;

    #[inline(always)]
    fn next(&mut self) -> Option<Segment> {
        let start = self.start;
        if start >= self.piece.len() {
            return None;
        }
        while self.ends == 0 {
            self.find_ends();
        }
        let end = self.base + self.ends.trailing_zeros() as usize;
        self.ends &= self.ends - 1;
        self.start = end;
        let single = match character(self.piece, start) {
            (point, 3) if end - start == 3 => Some(point as u32),
            _ => None,
        };
        Some(Segment { end, single })
    }
}
