//! Counts as columns, in the format of Arrow and Parquet, and divided into buckets, which several
//! machines can sum.

use super::counts::Counts;
use crate::vocabulary::hash::hash;

const WIDTH: usize = size_of::<i64>();

/// Bits of the hash that determine neither the shard nor the slot of a table: otherwise all words
/// of one bucket would collide there.
const BUCKET_SHIFT: u32 = 36;
const BUCKET_MASK: u64 = (1 << 24) - 1;

/// Write the words with the numbers `start..stop` to three columns: the concatenated words; the
/// start of each, then the end of the last; and their counts. Numbers are i64, little-endian. None
/// if a count exceeds an i64.
pub fn write(counts: &Counts, start: usize, stop: usize) -> Option<[Vec<u8>; 3]> {
    let mut words = Vec::new();
    let mut offsets = 0i64.to_le_bytes().to_vec();
    let mut occurrences = Vec::new();
    for (word, count) in counts.range(start, stop) {
        words.extend_from_slice(word);
        offsets.extend(i64::try_from(words.len()).ok()?.to_le_bytes());
        occurrences.extend(i64::try_from(count).ok()?.to_le_bytes());
    }
    Some([words, offsets, occurrences])
}

/// Read untrusted columns into words and counts. None if an offset is invalid, a word is empty or
/// too long to count, or a count is less than 1.
pub fn read<'a>(words: &'a [u8], offsets: &[u8], counts: &[u8]) -> Option<Vec<(&'a [u8], u64)>> {
    if offsets.len() != counts.len() + WIDTH || !counts.len().is_multiple_of(WIDTH) {
        return None;
    }
    let offsets = numbers(offsets).map(|n| usize::try_from(n).ok());
    let offsets: Vec<usize> = offsets.collect::<Option<_>>()?;
    offsets
        .windows(2)
        .zip(numbers(counts))
        .map(|(ends, count)| {
            let word = words.get(ends[0]..ends[1])?;
            let count = u64::try_from(count).ok()?;
            (!word.is_empty() && u32::try_from(word.len()).is_ok() && count > 0)
                .then_some((word, count))
        })
        .collect()
}

fn numbers(column: &[u8]) -> impl Iterator<Item = i64> {
    let numbers = column.as_chunks().0.iter();
    numbers.map(|bytes| i64::from_le_bytes(*bytes))
}

/// Divide the words into buckets by hash; each bucket keeps their order.
pub fn buckets(counts: &Counts, number: usize) -> Vec<Counts> {
    let mut buckets = vec![Counts::default(); number];
    for (word, count) in counts.iter() {
        let bits = (hash(word) >> BUCKET_SHIFT) & BUCKET_MASK;
        buckets[bits as usize % number].push(word, count);
    }
    buckets
}
