//! Merging short pieces, several side by side: while one waits for memory, the others do not.

use crate::merge::NO_RANK;
use crate::vocabulary::{Question, Vocabulary};

/// The longest piece, in bytes: where its parts start and where it ends are bits of one word.
pub const SHORT: usize = 63;

/// How many pieces are merged side by side.
pub const LANES: usize = 8;

/// Ranks from here on leave no room for the byte that is kept beside them.
pub const RANKS: u32 = u32::MAX >> PLACE_BITS;

const PLACE_BITS: u32 = (SHORT as u32 + 1).ilog2();

/// In `joined`: no token. Greater than every rank with its byte.
const NOT_JOINED: u32 = RANKS << PLACE_BITS;

/// A piece while it is merged. Its parts go by the bytes that they start at.
#[derive(Debug)]
pub struct Piece {
    /// Padded, so that every key is read with one load.
    text: [u8; SHORT + 1 + 16],
    len: usize,
    /// The bits of the bytes where parts start, and of the end.
    starts: u64,
    ids: [u32; SHORT + 1],
    /// The rank of a part joined with the next and, in the lower bits, where the part starts.
    joined: [u32; SHORT + 1],
}

/// What a merge changed: the part before it and the new one, and what each would be when joined with
/// the next.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changed {
    first: usize,
    left: Question,
    start: usize,
    right: Question,
}

impl Changed {
    /// Ask for the memory that `settle` will need.
    #[inline(always)]
    pub fn fetch(&self, vocabulary: &Vocabulary) {
        vocabulary.fetch(self.left.hash);
        vocabulary.fetch(self.right.hash);
    }
}

impl Default for Piece {
    fn default() -> Self {
        Piece {
            text: [0; SHORT + 1 + 16],
            len: 0,
            starts: 0,
            ids: [0; SHORT + 1],
            joined: [NOT_JOINED; SHORT + 1],
        }
    }
}

impl Piece {
    /// Replace it by another, as merging begins.
    #[inline(always)]
    pub fn open(&mut self, vocabulary: &Vocabulary, bytes: &[u8]) {
        self.len = bytes.len();
        self.text[..self.len].copy_from_slice(bytes);
        self.text[self.len..self.len + 16].fill(0);
        self.joined.fill(NOT_JOINED);
        let bytes = &self.text[..self.len];
        self.starts = 1 << self.len;
        let (mut at, mut previous) = (0, None);
        while at < self.len {
            let opening = vocabulary.opening(bytes, at);
            for (from, to) in [
                (at, at + opening.first),
                (at + opening.first, at + opening.len),
            ] {
                if from == to {
                    continue;
                }
                self.starts |= 1 << from;
                self.ids[from] = vocabulary.part_id(&self.text, from, to - from);
                if let Some(previous) = previous.replace(from) {
                    let rank = vocabulary.rank(&self.text, previous, to - previous);
                    self.joined[previous] = rank << PLACE_BITS | previous as u32;
                }
            }
            at += opening.len;
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.text[..self.len]
    }

    /// Where the part after the one at `start` starts.
    #[inline(always)]
    fn after(&self, start: usize) -> usize {
        start + 1 + (self.starts >> (start + 1)).trailing_zeros() as usize
    }

    /// Join the pair of the lowest rank, the first of several, and expect the ranks that this
    /// changes; None where no pair is a token.
    #[inline(always)]
    pub fn merge(&mut self, vocabulary: &Vocabulary) -> Option<Changed> {
        let lowest = self.lowest();
        if lowest >= NOT_JOINED {
            return None;
        }
        let start = lowest as usize & SHORT;
        let middle = self.after(start);
        self.starts &= !(1 << middle);
        self.joined[middle] = NOT_JOINED;
        self.ids[start] = lowest >> PLACE_BITS;
        let end = self.after(start);
        let before = self.starts & ((1 << start) - 1);
        let first = (before | 1).ilog2() as usize;
        // Nothing is asked about what there is not.
        let left = if before == 0 { 0 } else { end - first };
        let right = if end < self.len {
            self.after(end) - start
        } else {
            0
        };
        Some(Changed {
            first,
            left: vocabulary.question(&self.text, first, left),
            start,
            right: vocabulary.question(&self.text, start, right),
        })
    }

    /// The lowest rank, with the byte of its part.
    #[inline(always)]
    fn lowest(&self) -> u32 {
        // Eight at a time without branches: the compiler makes vectors of it.
        let mut lowest = [NOT_JOINED; 8];
        for eight in self.joined[..self.len.next_multiple_of(8)].chunks_exact(8) {
            for (low, &joined) in lowest.iter_mut().zip(eight) {
                *low = joined.min(*low);
            }
        }
        lowest.into_iter().fold(NOT_JOINED, u32::min)
    }

    /// Keep the ranks that changed.
    #[inline(always)]
    pub fn settle(&mut self, vocabulary: &Vocabulary, changed: &Changed) {
        let Changed { first, start, .. } = *changed;
        let left = vocabulary.answer(&self.text, first, &changed.left);
        let right = vocabulary.answer(&self.text, start, &changed.right);
        self.joined[first] = left << PLACE_BITS | first as u32;
        self.joined[start] = right << PLACE_BITS | start as u32;
    }

    /// The ids of the parts that are left.
    pub fn push_ids(&self, ids: &mut Vec<u32>) {
        let mut starts = self.starts & !(1 << self.len);
        while starts != 0 {
            ids.push(self.ids[starts.trailing_zeros() as usize]);
            starts &= starts - 1;
        }
    }
}

// What is no token is still none when its bits have made way.
const _: () = assert!(NO_RANK << PLACE_BITS == NOT_JOINED);
