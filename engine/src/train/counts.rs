//! The result of counting: every pre-token once, with its count, in the order of first occurrence.

use super::word_table::{WordTable, hash_of};

/// Pre-tokens and counts.
#[derive(Clone, Default)]
pub struct Counts {
    arena: Vec<u8>,
    /// Where each word ends in the arena.
    ends: Vec<usize>,
    counts: Vec<u64>,
}

impl Counts {
    /// Take (word, count, first seen at); the order is that of the last.
    pub fn collect(mut words: Vec<(&[u8], u64, u64)>) -> Self {
        words.sort_unstable_by_key(|&(_, _, first)| first);
        let mut counts = Counts {
            arena: Vec::with_capacity(words.iter().map(|word| word.0.len()).sum()),
            ends: Vec::with_capacity(words.len()),
            counts: Vec::with_capacity(words.len()),
        };
        for (word, count, _) in words {
            counts.push(word, count);
        }
        counts
    }

    /// Add a word that is not there yet, as the last one seen.
    pub fn push(&mut self, word: &[u8], count: u64) {
        self.arena.extend_from_slice(word);
        self.ends.push(self.arena.len());
        self.counts.push(count);
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of all words, each once.
    pub fn unique_bytes(&self) -> usize {
        self.arena.len()
    }

    /// The bytes of the text that was counted.
    pub fn total_bytes(&self) -> u128 {
        self.iter()
            .map(|(word, count)| word.len() as u128 * u128::from(count))
            .sum()
    }

    /// The same with each word once, where it first stands.
    pub fn united(&self) -> Self {
        let mut table = WordTable::default();
        for (number, (word, count)) in self.iter().enumerate() {
            table.add(word, hash_of(word), count, number as u64);
        }
        Counts::collect(table.iter().collect())
    }

    pub fn get(&self, number: usize) -> (&[u8], u64) {
        let start = if number == 0 {
            0
        } else {
            self.ends[number - 1]
        };
        (&self.arena[start..self.ends[number]], self.counts[number])
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        (0..self.len()).map(|number| self.get(number))
    }
}
