//! Segments of text in one block of code points, such as Thai or Devanagari.
//!
//! Tokens cross between most of its characters, so the two beside a place rarely tell. Three
//! adjacent ones mostly do. All places are tested before the first segment is encoded, without
//! branches, which would be unpredictable.

use crate::merge::initial::character;
use crate::merge::segments::{Crossings, OTHER, Segment, THREE_BYTES, decode};
use crate::vocabulary::hash::K0;
use crate::vocabulary::regions::Regions;

/// The first code point after the blocks of 128 code points, whose first byte is 0xe0.
pub const BLOCKS_END: u32 = 1 << 12;

/// Flags of three adjacent characters of a token: its whole characters start with them, end with
/// them, or are more than three.
const STARTS: u64 = 1;
const ENDS: u64 = 1 << 1;
const INNER: u64 = 1 << 2;

/// Where a token may cross between two characters of one block.
#[derive(Debug)]
pub struct Blocks {
    /// A bit for two characters: whether a token may cross whatever is beside them. By the block,
    /// the first and the second one.
    pairs: Box<[[[u64; 2]; 128]]>,
    /// A Bloom filter of the flags of three characters, by the block of the middle one.
    threes: Box<[u64]>,
    regions: Regions<{ BLOCKS_END as usize / 128 }>,
}

/// Returns the block of a character; None if it is in none.
#[inline(always)]
fn block_of(point: u32) -> Option<usize> {
    let is_known = (THREE_BYTES..BLOCKS_END).contains(&point);
    is_known.then_some(point as usize / 128)
}

/// Returns the block of two characters; None if they are not in one.
#[inline(always)]
pub fn common_block(before: u32, after: u32) -> Option<usize> {
    block_of(after).filter(|_| (before ^ after) < 128)
}

/// Returns whether the last character of a piece of more than three bytes is in a block.
#[inline(always)]
pub fn ends_in_block(piece: &[u8]) -> bool {
    matches!(piece.last_chunk::<3>(), Some([0xe0, ..]))
}

impl Blocks {
    /// Makes an empty table from the number of tokens of each block.
    pub fn of(counts: &[u32]) -> Self {
        let (regions, words) = Regions::of(std::array::from_fn(|block| counts[block] + 1));
        Blocks {
            pairs: vec![[[0; 2]; 128]; BLOCKS_END as usize / 128].into_boxed_slice(),
            threes: vec![0; words].into_boxed_slice(),
            regions,
        }
    }

    /// Adds a place in a token, between the middle ones of four characters. The others are `OTHER`
    /// if the token does not contain them.
    pub fn add(&mut self, block: usize, [first, before, after, last]: [u32; 4]) {
        match (first, last) {
            (OTHER, OTHER) => {
                let row = &mut self.pairs[block][before as usize % 128];
                row[after as usize / 64 % 2] |= 1 << (after % 64);
            }
            (OTHER, _) => self.add_three(block, [before, after, last], STARTS),
            (_, OTHER) => self.add_three(block, [first, before, after], ENDS),
            _ => {
                self.add_three(block, [first, before, after], INNER);
                self.add_three(block, [before, after, last], INNER);
            }
        }
    }

    fn add_three(&mut self, block: usize, three: [u32; 3], flag: u64) {
        let (place, shifts) = self.place(block, three);
        for shift in shifts {
            self.threes[place] |= flag.rotate_left(shift);
        }
    }

    /// Returns the word of three characters in the filter, and two shifts in it.
    #[inline(always)]
    fn place(&self, block: usize, three: [u32; 3]) -> (usize, [u32; 2]) {
        let [first, middle, last] = three.map(u64::from);
        let hash = (first << 42 | middle << 21 | last).wrapping_mul(K0);
        let place = self.regions.place(block, (hash >> 32) as u32);
        (place, [26, 20].map(|bits| (hash >> bits) as u32 % 64))
    }

    /// Returns the flags of three characters, in the lowest bits.
    #[inline(always)]
    fn flags(&self, three: [u32; 3]) -> u64 {
        let Some(block) = block_of(three[1]) else {
            return 0;
        };
        let (place, [one, two]) = self.place(block, three);
        let word = self.threes[place];
        word.rotate_right(one) & word.rotate_right(two)
    }

    /// Returns 1 if a token may cross between two characters, else 0. Yes is always right, and the
    /// answer if they are not in one block. `ending` are the flags of these two and the character
    /// before them, `starting` those of these two and the one after.
    #[inline(always)]
    fn crosses(&self, before: u32, after: u32, ending: u64, starting: u64) -> u64 {
        let Some(block) = common_block(before, after) else {
            return 1;
        };
        let row = self.pairs[block][before as usize % 128];
        let always = row[after as usize / 64 % 2] >> (after % 64);
        (always | starting | ending >> 1 | (ending & starting) >> 2) & 1
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
    flags: u64,
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
            let next = self.blocks.flags([before.0, after.0, last.0]);
            let crosses = self.blocks.crosses(before.0, after.0, flags, next);
            self.ends |= (crosses ^ 1) << (at - self.base);
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
