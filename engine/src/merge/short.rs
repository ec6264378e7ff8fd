//! The parts of a short piece during merging, in small arrays.

use crate::merge::NO_RANK;
use crate::vocabulary::Vocabulary;
use crate::vocabulary::short_table::Key;

/// Maximum length of a short piece, in bytes.
pub const SHORT: usize = 64;

/// The number of values of a byte: an index of one byte needs no bounds check.
const ALL: usize = 256;

/// The parts in their initial positions. A part that is merged into the one before it keeps its
/// position and is skipped. The arrays are made once, and not cleared for each piece.
#[derive(Debug)]
pub struct Parts {
    /// The piece, padded so that every key is read with one load.
    text: [u8; ALL + 16],
    count: u8,
    /// Start of each part; the end of the piece at `count`.
    starts: [u8; ALL],
    /// Index of the next part; `count` for none.
    next: [u8; ALL],
    previous: [u8; ALL],
    ids: [u32; ALL],
    /// Rank of the part joined with the next. All are `NO_RANK` once a piece is merged.
    ranks: [u32; ALL],
}

impl Default for Parts {
    fn default() -> Self {
        Parts {
            text: [0; ALL + 16],
            count: 0,
            starts: [0; ALL],
            next: [0; ALL],
            previous: [0; ALL],
            ids: [0; ALL],
            ranks: [NO_RANK; ALL],
        }
    }
}

impl Parts {
    /// Appends the tokens of a piece of at most `SHORT` bytes to `ids`. Returns the number of merges.
    #[inline(always)]
    pub fn run(&mut self, vocabulary: &Vocabulary, piece: &[u8], ids: &mut Vec<u32>) -> u64 {
        self.begin(vocabulary, piece);
        let mut merges = 0;
        while let Some(at) = self.lowest() {
            self.merge(vocabulary, at);
            merges += 1;
        }
        let mut at = 0;
        while at < self.count {
            ids.push(self.ids[at as usize]);
            at = self.next[at as usize];
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
        self.starts[self.count as usize] = piece.len() as u8;
        self.rank_all(vocabulary);
    }

    /// Ranks each part joined with the next. Their cache misses overlap.
    #[inline(always)]
    fn rank_all(&mut self, vocabulary: &Vocabulary) {
        // Two adjacent initial parts have at most six bytes.
        let key = |i: u8| {
            let (start, end) = (self.starts[i as usize], self.starts[i as usize + 2]);
            Key::of_few(&self.text, start as usize, (end - start) as usize)
        };
        let mut maybe = 0;
        for i in 1..self.count {
            let key = key(i - 1);
            let may_have = vocabulary.fetch(key, key.hash());
            maybe |= (may_have as u64) << (i - 1);
        }
        while maybe != 0 {
            let i = maybe.trailing_zeros() as u8;
            let key = key(i);
            self.ranks[i as usize] = vocabulary.find_short(key, key.hash()).unwrap_or(NO_RANK);
            maybe &= maybe - 1;
        }
    }

    #[inline(always)]
    fn push(&mut self, id: u32, start: usize) {
        let i = self.count as usize;
        self.starts[i] = start as u8;
        self.previous[i] = self.count.wrapping_sub(1);
        self.next[i] = self.count + 1;
        self.ids[i] = id;
        self.count += 1;
    }

    /// Returns the first of the parts that join the next at the lowest rank; None if there is none.
    #[inline(always)]
    fn lowest(&self) -> Option<u8> {
        // The minimum of eight lanes without branches, and then its position: the compiler
        // vectorizes it.
        let ranks = &self.ranks[..(self.count as usize).next_multiple_of(8)];
        let mut lowest = [NO_RANK; 8];
        for chunk in ranks.chunks_exact(8) {
            for (low, &rank) in lowest.iter_mut().zip(chunk) {
                *low = rank.min(*low);
            }
        }
        let lowest = lowest.into_iter().fold(NO_RANK, u32::min);
        if lowest == NO_RANK {
            return None;
        }
        ranks
            .iter()
            .position(|&rank| rank == lowest)
            .map(|at| at as u8)
    }

    /// Joins a part with the next.
    #[inline(always)]
    fn merge(&mut self, vocabulary: &Vocabulary, at: u8) {
        let here = at as usize;
        let middle = self.next[here];
        let after = self.next[middle as usize];
        self.ids[here] = self.ranks[here];
        self.ranks[middle as usize] = NO_RANK;
        self.next[here] = after;
        self.previous[after as usize] = at;
        let text = &self.text;
        let [start, end] = [at, after].map(|i| self.starts[i as usize] as usize);
        // Of the first part, an index that no part has.
        let before = self.previous[here] as usize;
        let first = || self.starts[before] as usize;
        let last = || self.starts[self.next[after as usize] as usize] as usize;
        [self.ranks[before], self.ranks[here]] = match (at > 0, after < self.count) {
            (true, true) => vocabulary.ranks(text, [first(), start, end, last()]),
            (true, false) => [vocabulary.rank(text, first(), end - first()), NO_RANK],
            (false, true) => [NO_RANK, vocabulary.rank(text, start, last() - start)],
            (false, false) => [NO_RANK; 2],
        };
    }
}
