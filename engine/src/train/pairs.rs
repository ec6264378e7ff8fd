//! How often and where each pair of adjacent tokens stands.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::hash::fold;

/// Positions in `words`, ascending, in a chunk.
#[derive(Clone, Copy, Debug, Default)]
pub struct List {
    chunk: u32,
    start: u32,
    len: u32,
}

impl List {
    pub fn new(chunk: u32, start: usize, len: usize) -> Self {
        List {
            chunk,
            start: start as u32,
            len: len as u32,
        }
    }

    /// The list without its first positions.
    pub fn skip(self, count: usize) -> Self {
        List {
            start: self.start + count as u32,
            len: self.len - count as u32,
            ..self
        }
    }
}

/// One pair.
pub struct Pair {
    pub left: u32,
    pub right: u32,
    /// Occurrences, each as often as its word was seen; overlapping ones too.
    pub count: i64,
    /// Where it stood when it came to be: some occurrences may be gone since.
    pub list: List,
}

/// A hasher of one number.
#[derive(Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = crate::hash::hash(bytes);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = fold(number ^ 0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03);
    }
}

/// Every pair that ever stood anywhere.
#[derive(Default)]
pub struct Pairs {
    pairs: Vec<Pair>,
    index: HashMap<u64, u32, BuildHasherDefault<NumberHasher>>,
    chunks: Vec<Box<[u32]>>,
}

/// What adding to a pair did.
pub enum Added {
    /// The pair is new.
    New(u32),
    /// It was there, with or without occurrences.
    Known(u32),
}

impl Pairs {
    pub fn pair(&self, slot: u32) -> &Pair {
        &self.pairs[slot as usize]
    }

    pub fn pair_mut(&mut self, slot: u32) -> &mut Pair {
        &mut self.pairs[slot as usize]
    }

    /// Keep positions; lists refer to them by the number that is returned.
    pub fn keep(&mut self, positions: Box<[u32]>) -> u32 {
        self.chunks.push(positions);
        self.chunks.len() as u32 - 1
    }

    pub fn positions(&self, list: List) -> &[u32] {
        let start = list.start as usize;
        match self.chunks.get(list.chunk as usize) {
            Some(chunk) => &chunk[start..start + list.len as usize],
            None => &[],
        }
    }

    /// Change the count of a pair that was there at some time.
    pub fn adjust(&mut self, left: u32, right: u32, delta: i64) {
        if let Some(&slot) = self.index.get(&key(left, right)) {
            self.pairs[slot as usize].count += delta;
        }
    }

    /// Add to the count of a pair, and make it if it is new; the list of one that is there stays.
    pub fn add(&mut self, left: u32, right: u32, delta: i64, list: List) -> Added {
        let next = self.pairs.len() as u32;
        let slot = *self.index.entry(key(left, right)).or_insert(next);
        if slot != next {
            self.pairs[slot as usize].count += delta;
            return Added::Known(slot);
        }
        self.pairs.push(Pair {
            left,
            right,
            count: delta,
            list,
        });
        Added::New(slot)
    }

    /// Both lists as one, ascending, each position once.
    pub fn union(&mut self, one: List, other: List) -> List {
        let mut all = self.positions(one).to_vec();
        all.extend_from_slice(self.positions(other));
        all.sort_unstable();
        all.dedup();
        let len = all.len();
        let chunk = self.keep(all.into());
        List::new(chunk, 0, len)
    }
}

/// One number for a pair, in the order of its ids.
pub fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}
