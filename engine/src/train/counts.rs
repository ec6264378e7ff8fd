//! The result of counting: distinct pre-tokens with their counts, in order of first occurrence.

use super::word_table::WordTable;
use crate::vocabulary::hash::hash;

/// Pre-tokens and counts.
#[derive(Clone, Default)]
pub struct Counts {
    arena: Vec<u8>,
    /// The end of each word in the arena.
    ends: Vec<usize>,
    counts: Vec<u64>,
}

impl Counts {
    /// Collect (word, count, first position), sorted by the first position.
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

    /// Append a new word.
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

    /// Number of bytes of the distinct words.
    pub fn unique_bytes(&self) -> usize {
        self.arena.len()
    }

    /// Number of bytes of the counted text.
    pub fn total_bytes(&self) -> u128 {
        self.iter()
            .map(|(word, count)| word.len() as u128 * u128::from(count))
            .sum()
    }

    /// Sum the counts of equal words; each word keeps its first position.
    pub fn united(&self) -> Self {
        let mut table = WordTable::default();
        for (number, (word, count)) in self.iter().enumerate() {
            table.add(word, hash(word), count, number as u64);
        }
        Counts::collect(table.iter().collect())
    }

    /// The words with the numbers `start..stop`, as far as there are any.
    pub fn range(&self, start: usize, stop: usize) -> impl Iterator<Item = (&[u8], u64)> {
        (start..stop.min(self.len())).map(|number| {
            let before = number.checked_sub(1);
            let start = before.map_or(0, |before| self.ends[before]);
            (&self.arena[start..self.ends[number]], self.counts[number])
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.range(0, self.len())
    }
}
