//! The count and the positions of each pair of adjacent tokens.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::vocabulary::hash::hash_number;

/// A list of ascending positions in `words`, which is part of a chunk.
#[derive(Clone, Copy, Debug)]
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
    /// Number of occurrences, weighted by the counts of their words, including overlapping ones.
    pub count: i64,
    /// The positions when the pair was added; some may be invalid now.
    pub list: List,
}

/// A hasher for a single number.
#[derive(Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = crate::vocabulary::hash::hash(bytes);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = hash_number(number);
    }
}

/// All pairs that have occurred.
#[derive(Default)]
pub struct Pairs {
    pairs: Vec<Pair>,
    index: HashMap<u64, u32, BuildHasherDefault<NumberHasher>>,
    chunks: Vec<Box<[u32]>>,
}

impl Pairs {
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    pub fn pair(&self, slot: u32) -> &Pair {
        &self.pairs[slot as usize]
    }

    pub fn pair_mut(&mut self, slot: u32) -> &mut Pair {
        &mut self.pairs[slot as usize]
    }

    /// Store a chunk of positions, and return its number, by which lists refer to it.
    pub fn keep(&mut self, positions: Box<[u32]>) -> u32 {
        self.chunks.push(positions);
        self.chunks.len() as u32 - 1
    }

    pub fn positions(&self, list: List) -> &[u32] {
        &self.chunks[list.chunk as usize][list.start as usize..][..list.len as usize]
    }

    /// Add `delta` to the count of a pair.
    pub fn adjust(&mut self, left: u32, right: u32, delta: i64) {
        if let Some(&slot) = self.index.get(&key(left, right)) {
            self.pairs[slot as usize].count += delta;
        }
    }

    /// Add a new pair, at the next slot.
    pub fn add(&mut self, left: u32, right: u32, count: i64, list: List) {
        let slot = self.pairs.len() as u32;
        self.index.insert(key(left, right), slot);
        self.pairs.push(Pair {
            left,
            right,
            count,
            list,
        });
    }
}

/// A number for a pair, which sorts by the left id, then by the right id.
pub fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}
