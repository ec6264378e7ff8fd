//! The parts of a short piece during merging, in small arrays.
//!
//! Each merge depends on the one before it, so what counts is how soon its result is known. The
//! neighbours of a part are found in a bit mask. The lowest rank is found by comparing single
//! words: loading a vector would wait until the ranks just written have reached the cache.

use crate::merge::NO_RANK;
use crate::vocabulary::Vocabulary;
use crate::vocabulary::short_table::Key;

/// Maximum length of a short piece, in bytes. A mask has one bit more.
pub const SHORT: usize = 63;

/// Number of joins that `lowest` compares in one step.
const GROUP: usize = 8;

/// The parts in their initial positions. A part that is merged into the one before it is no longer
/// in the mask. The arrays are made once, and not cleared for each piece.
#[derive(Debug)]
pub struct Parts {
    /// The piece, padded so that every key is read with one load.
    text: [u8; SHORT + 17],
    count: usize,
    /// Start of each part; the end of the piece at `count`.
    starts: [u8; SHORT + 1],
    ids: [u32; SHORT + 1],
    /// The rank of the part joined with the next, and in the lower half the index of the part. All
    /// have `NO_RANK` once a piece is merged.
    joins: [u64; SHORT + 1],
}

impl Default for Parts {
    fn default() -> Self {
        Parts {
            text: [0; SHORT + 17],
            count: 0,
            starts: [0; SHORT + 1],
            ids: [0; SHORT + 1],
            joins: [join(NO_RANK, 0); SHORT + 1],
        }
    }
}

#[inline(always)]
fn join(rank: u32, part: usize) -> u64 {
    (rank as u64) << 32 | part as u64
}

impl Parts {
    /// Appends the tokens of a piece of at most `SHORT` bytes to `ids`. Returns the number of
    /// merges.
    #[inline(always)]
    pub fn run(&mut self, vocabulary: &Vocabulary, piece: &[u8], ids: &mut Vec<u32>) -> u64 {
        self.begin(vocabulary, piece);
        // The parts, and the end of the piece.
        let mut left = !0 >> (SHORT - self.count);
        let mut merges = 0;
        while let Some((at, rank)) = self.lowest() {
            left = self.merge(vocabulary, left, at, rank);
            merges += 1;
        }
        left ^= 1 << self.count;
        while left != 0 {
            ids.push(self.ids[left.trailing_zeros() as usize]);
            left &= left - 1;
        }
        merges
    }

    /// Replaces the parts by the initial ones of a piece.
    #[inline(always)]
    fn begin(&mut self, vocabulary: &Vocabulary, piece: &[u8]) {
        self.text[..piece.len()].copy_from_slice(piece);
        self.count = 0;
        let mut at = 0;
        while at < piece.len() {
            let opening = vocabulary.opening(piece, at);
            self.push(vocabulary.part_id(&self.text, at, opening.first), at);
            if opening.first < opening.len {
                let (start, len) = (at + opening.first, opening.len - opening.first);
                self.push(vocabulary.part_id(&self.text, start, len), start);
            }
            at += opening.len;
        }
        self.starts[self.count] = piece.len() as u8;
        self.rank_all(vocabulary);
    }

    /// Ranks each part joined with the next. Their cache misses overlap.
    #[inline(always)]
    fn rank_all(&mut self, vocabulary: &Vocabulary) {
        let key = |i: usize| {
            let [start, end] = [i, i + 2].map(|part| self.starts[part] as usize);
            Key::of(&self.text, start, end - start)
        };
        let mut maybe = 0u64;
        for i in 1..self.count {
            let two = key(i - 1);
            maybe |= (vocabulary.fetch(two, two.hash()) as u64) << (i - 1);
        }
        while maybe != 0 {
            let i = maybe.trailing_zeros() as usize;
            let two = key(i);
            let rank = vocabulary.find_short(two, two.hash()).unwrap_or(NO_RANK);
            self.joins[i] = join(rank, i);
            maybe &= maybe - 1;
        }
    }

    #[inline(always)]
    fn push(&mut self, id: u32, start: usize) {
        self.starts[self.count] = start as u8;
        self.ids[self.count] = id;
        self.count += 1;
    }

    /// Returns the first of the parts that join the next at the lowest rank, and the rank; None if
    /// there is none.
    #[inline(always)]
    fn lowest(&self) -> Option<(usize, u32)> {
        let joins = &self.joins[..self.count.next_multiple_of(GROUP)];
        let groups = joins.as_chunks::<GROUP>().0;
        let mut lowest = u64::MAX;
        for &[a, b, c, d, e, f, g, h] in groups {
            let [first, second] =
                [[a, b, c, d], [e, f, g, h]].map(|[a, b, c, d]| a.min(b).min(c.min(d)));
            lowest = lowest.min(first.min(second));
        }
        let rank = (lowest >> 32) as u32;
        (rank != NO_RANK).then_some((lowest as u8 as usize % (SHORT + 1), rank))
    }

    /// Joins a part with the next. Returns the mask of the parts that are left.
    #[inline(always)]
    fn merge(&mut self, vocabulary: &Vocabulary, left: u64, at: usize, rank: u32) -> u64 {
        let start_of = |part: usize| self.starts[part % (SHORT + 1)] as usize;
        let first_of = |mask: u64| mask.trailing_zeros() as usize;
        let without_first = |mask: u64| mask & mask.wrapping_sub(1);
        let before = left & !(!0 << at);
        // `at` if there is none.
        let previous = (before | 1).ilog2() as usize;
        let after = left & (!1 << at);
        let middle = first_of(after) % (SHORT + 1);
        let after = without_first(after);
        let next = without_first(after);
        let (start, end) = (start_of(at), start_of(first_of(after)));
        let (first, last) = (start_of(previous), start_of(first_of(next)));
        let ranges = [
            (first, if before == 0 { 0 } else { end - first }),
            (start, if next == 0 { 0 } else { last - start }),
        ];
        let [with_previous, with_next] = vocabulary.ranks(&self.text, ranges);
        self.ids[at] = rank;
        self.joins[middle] = join(NO_RANK, 0);
        self.joins[previous] = join(with_previous, previous);
        self.joins[at] = join(with_next, at);
        left & !(1 << middle)
    }
}
