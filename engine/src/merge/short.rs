//! The parts of a short piece during merging, in small arrays on the stack.

use crate::merge::NO_RANK;
use crate::vocabulary::Vocabulary;
use crate::vocabulary::short_table::Key;

/// Maximum length of a short piece, in bytes.
pub const SHORT: usize = 64;

/// A buffer for a piece, padded so that every key is read with one load.
pub type Text = [u8; SHORT + 16];

/// The parts in their initial positions. A part that is merged into the one before it keeps its
/// position and is skipped.
pub struct Parts {
    count: usize,
    /// Start of each part; the end of the piece at `count`.
    starts: [u8; SHORT + 1],
    /// Index of the next part; `count` for none.
    next: [u8; SHORT + 1],
    previous: [u8; SHORT + 1],
    ids: [u32; SHORT],
    /// Rank of the part joined with the next.
    ranks: [u32; SHORT],
}

impl Parts {
    /// Makes the initial parts of the first `len` bytes.
    #[inline(always)]
    pub fn of(vocabulary: &Vocabulary, text: &Text, len: usize) -> Self {
        let mut parts = Parts {
            count: 0,
            starts: [0; SHORT + 1],
            next: [0; SHORT + 1],
            previous: [0; SHORT + 1],
            ids: [0; SHORT],
            ranks: [NO_RANK; SHORT],
        };
        let mut at = 0;
        while at < len {
            let opening = vocabulary.opening(&text[..len], at);
            parts.push(vocabulary.part_id(text, at, opening.first), at);
            if opening.first < opening.len {
                let (start, len) = (at + opening.first, opening.len - opening.first);
                parts.push(vocabulary.part_id(text, start, len), start);
            }
            at += opening.len;
        }
        parts.starts[parts.count] = len as u8;
        parts.rank_all(vocabulary, text);
        parts
    }

    /// Ranks each part joined with the next. Their cache misses overlap.
    #[inline(always)]
    fn rank_all(&mut self, vocabulary: &Vocabulary, text: &Text) {
        // Two adjacent initial parts have at most six bytes.
        let key = |i: usize| {
            let (start, end) = (self.starts[i] as usize, self.starts[i + 2] as usize);
            Key::of_few(text, start, end - start)
        };
        let mut maybe = 0;
        for i in 1..self.count {
            let may_have = vocabulary.fetch(key(i - 1).hash());
            maybe |= (may_have as u64) << (i - 1);
        }
        while maybe != 0 {
            let i = maybe.trailing_zeros() as usize;
            let key = key(i);
            self.ranks[i] = vocabulary.find_short(key, key.hash()).unwrap_or(NO_RANK);
            maybe &= maybe - 1;
        }
    }

    #[inline(always)]
    fn push(&mut self, id: u32, start: usize) {
        let i = self.count;
        self.starts[i] = start as u8;
        self.previous[i] = (i as u8).wrapping_sub(1);
        self.next[i] = i as u8 + 1;
        self.ids[i] = id;
        self.count += 1;
    }

    /// Returns the first of the parts that join the next at the lowest rank; None if there is none.
    #[inline(always)]
    pub fn lowest(&self) -> Option<usize> {
        // The minimum of eight lanes without branches, and then its position: the compiler
        // vectorizes it.
        let lanes = self.count.next_multiple_of(8).min(SHORT);
        let mut lowest = [NO_RANK; 8];
        for chunk in self.ranks[..lanes].chunks_exact(8) {
            for (low, &rank) in lowest.iter_mut().zip(chunk) {
                *low = rank.min(*low);
            }
        }
        let lowest = lowest.into_iter().fold(NO_RANK, u32::min);
        if lowest == NO_RANK {
            return None;
        }
        self.ranks[..lanes].iter().position(|&rank| rank == lowest)
    }

    /// Joins a part with the next.
    #[inline(always)]
    pub fn merge(&mut self, vocabulary: &Vocabulary, text: &Text, at: usize) {
        let middle = self.next[at] as usize;
        let after = self.next[middle] as usize;
        self.ids[at] = self.ranks[at];
        self.ranks[middle] = NO_RANK;
        self.next[at] = after as u8;
        self.previous[after] = at as u8;
        let (start, end) = (self.starts[at] as usize, self.starts[after] as usize);
        let before = self.previous[at] as usize;
        let last = || self.starts[self.next[after] as usize] as usize;
        match (at > 0, after < self.count) {
            (true, true) => {
                let first = self.starts[before] as usize;
                let places = [first, start, end, last()];
                [self.ranks[before], self.ranks[at]] = vocabulary.ranks(text, places);
            }
            (true, false) => {
                let first = self.starts[before] as usize;
                self.ranks[before] = vocabulary.rank(text, first, end - first);
                self.ranks[at] = NO_RANK;
            }
            (false, true) => self.ranks[at] = vocabulary.rank(text, start, last() - start),
            (false, false) => self.ranks[at] = NO_RANK,
        }
    }

    /// Returns the ids of the remaining parts.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        let after = |&i: &usize| Some(self.next[i] as usize).filter(|&i| i < self.count);
        let first = Some(0).filter(|_| self.count > 0);
        std::iter::successors(first, after).map(|i| self.ids[i])
    }
}
