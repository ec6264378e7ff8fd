//! A hash table of byte strings with counts and first positions: open addressing over one arena.

/// A byte string with its count and first position.
#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u64,
    start: usize,
    len: u32,
    count: u64,
    first: u64,
}

/// Byte strings to counts.
#[derive(Default)]
pub struct WordTable {
    entries: Vec<Entry>,
    arena: Vec<u8>,
    /// The high half of the hash, and the number of the entry plus 1; 0 for an empty slot.
    index: Vec<u64>,
}

const TAG: u64 = 0xffff_ffff_0000_0000;
const LEAST_INDEX: usize = 1 << 10;

impl WordTable {
    /// Allocated memory in bytes.
    pub fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.arena.capacity()
            + self.index.capacity() * size_of::<u64>()
    }

    /// Add `count` occurrences of `word`, the first at the position `first`. `hash` is that of
    /// `vocabulary::hash`.
    pub fn add(&mut self, word: &[u8], hash: u64, count: u64, first: u64) {
        if self.entries.len() * 2 >= self.index.len() {
            self.grow();
        }
        let mask = self.index.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let found = self.index[at];
            if found == 0 {
                break;
            }
            if (found ^ hash) & TAG == 0 {
                let entry = &mut self.entries[(found & !TAG) as usize - 1];
                let start = entry.start;
                if self.arena[start..start + entry.len as usize] == *word {
                    entry.count = entry.count.saturating_add(count);
                    entry.first = entry.first.min(first);
                    return;
                }
            }
            at = (at + 1) & mask;
        }
        self.entries.push(Entry {
            hash,
            start: self.arena.len(),
            len: word.len() as u32,
            count,
            first,
        });
        self.arena.extend_from_slice(word);
        self.index[at] = hash & TAG | self.entries.len() as u64;
    }

    fn grow(&mut self) {
        let len = (self.index.len() * 2).max(LEAST_INDEX);
        self.index = vec![0; len];
        for (number, entry) in self.entries.iter().enumerate() {
            let mut at = entry.hash as usize & (len - 1);
            while self.index[at] != 0 {
                at = (at + 1) & (len - 1);
            }
            self.index[at] = entry.hash & TAG | (number as u64 + 1);
        }
    }

    /// Add all entries of `other`.
    pub fn absorb(&mut self, other: &WordTable) {
        for entry in &other.entries {
            let word = &other.arena[entry.start..entry.start + entry.len as usize];
            self.add(word, entry.hash, entry.count, entry.first);
        }
    }

    /// All words with their counts and first positions, unordered.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64, u64)> {
        self.entries.iter().map(|entry| {
            let word = &self.arena[entry.start..entry.start + entry.len as usize];
            (word, entry.count, entry.first)
        })
    }
}
