//! Merging of adjacent symbols by a table of pairs with priorities.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::cancel;
use crate::vocabulary::hash::hash_number;

/// A symbol that is not part of any pair.
pub const NO_SYMBOL: u32 = u32::MAX;

/// Maximum number of symbols for which scanning for the best pair at each step is faster than a
/// heap.
const FEW: usize = 40;

/// Number of steps between two checks for cancellation.
const ASK_EVERY: u64 = 4096;

/// No pair; larger than every priority.
const NONE: u64 = u64::MAX;

#[derive(Clone, Copy)]
struct Entry {
    pair: u64,
    /// The priority in the upper half, the result in the lower one.
    merge: u64,
}

/// Pairs of symbols with priorities, the lowest first, and results.
///
/// A hash table with open addressing, at most half full.
pub struct Pairs {
    entries: Box<[Entry]>,
}

impl Pairs {
    /// Build a table of (left, right, priority, result); the first of duplicate pairs is used.
    pub fn new(pairs: &[(u32, u32, u32, u32)]) -> Self {
        let capacity = (pairs.len() * 2).next_power_of_two().max(2);
        let free = Entry {
            pair: NONE,
            merge: NONE,
        };
        let mut entries = vec![free; capacity].into_boxed_slice();
        for &(left, right, priority, result) in pairs {
            let pair = u64::from(left) << 32 | u64::from(right);
            let at = place(&entries, pair);
            if entries[at].pair == NONE {
                let merge = u64::from(priority) << 32 | u64::from(result);
                entries[at] = Entry { pair, merge };
            }
        }
        Pairs { entries }
    }

    /// The priority and the result of a pair, or `NONE`.
    #[inline(always)]
    fn merge(&self, left: u32, right: u32) -> u64 {
        if left == NO_SYMBOL || right == NO_SYMBOL {
            return NONE;
        }
        let pair = u64::from(left) << 32 | u64::from(right);
        self.entries[place(&self.entries, pair)].merge
    }
}

/// The place of a pair, or the free one where it would be.
#[inline(always)]
fn place(entries: &[Entry], pair: u64) -> usize {
    let mask = entries.len() - 1;
    let mut at = hash_number(pair) as usize & mask;
    while entries[at].pair != pair && entries[at].pair != NONE {
        at = (at + 1) & mask;
    }
    at
}

/// A symbol during merging, with the byte offset of its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub symbol: u32,
    pub start: u32,
}

/// Merges the best adjacent pair, the leftmost of several, until no pair can merge.
#[derive(Default)]
pub struct PairMerger {
    merges: Vec<u64>,
    next: Vec<u32>,
    previous: Vec<u32>,
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    /// Number of merges and heap operations so far, the measure of work.
    pub steps: u64,
}

const END: u32 = u32::MAX;

impl PairMerger {
    /// Merge `parts` in place, in O(n log n) time for n parts: each merge removes one part and adds
    /// at most two pairs to the heap.
    pub fn merge(&mut self, pairs: &Pairs, parts: &mut Vec<Part>) {
        if parts.len() <= FEW {
            self.merge_few(pairs, parts);
        } else {
            self.merge_many(pairs, parts);
        }
    }

    fn merge_few(&mut self, pairs: &Pairs, parts: &mut Vec<Part>) {
        let of = |parts: &[Part], at: usize| match parts.get(at..at + 2) {
            Some(two) => pairs.merge(two[0].symbol, two[1].symbol),
            None => NONE,
        };
        self.merges.clear();
        self.merges.extend((0..parts.len()).map(|at| of(parts, at)));
        loop {
            let (mut best, mut at) = (NONE, 0);
            for (i, &merge) in self.merges.iter().enumerate() {
                // Compare only priorities; the first of equal ones is kept.
                if merge >> 32 < best >> 32 {
                    (best, at) = (merge, i);
                }
            }
            self.steps += 1;
            if best == NONE {
                return;
            }
            parts[at].symbol = best as u32;
            parts.remove(at + 1);
            self.merges.remove(at + 1);
            self.merges[at] = of(parts, at);
            if at > 0 {
                self.merges[at - 1] = of(parts, at - 1);
            }
        }
    }

    /// Merge with a heap of mergeable pairs. A pair is added when it becomes adjacent, and skipped
    /// if one of its parts has merged since.
    fn merge_many(&mut self, pairs: &Pairs, parts: &mut Vec<Part>) {
        let count = parts.len() as u32;
        self.next.clear();
        self.next.extend((1..count).chain([END]));
        self.previous.clear();
        self.previous.extend([END].into_iter().chain(0..count - 1));
        self.merges.clear();
        self.merges.resize(parts.len(), NONE);
        self.heap.clear();
        for at in 0..count {
            self.consider(pairs, parts, at);
        }
        let before = self.steps;
        while let Some(Reverse((key, merge))) = self.heap.pop() {
            self.steps += 1;
            // Counted per piece: a short piece, which is cached, is never left incomplete.
            if (self.steps - before).is_multiple_of(ASK_EVERY) && cancel::is_set() {
                break;
            }
            let at = key as u32;
            if self.merges[at as usize] != merge {
                continue;
            }
            let gone = self.next[at as usize];
            parts[at as usize].symbol = merge as u32;
            parts[gone as usize].symbol = NO_SYMBOL;
            self.merges[gone as usize] = NONE;
            let after = self.next[gone as usize];
            self.next[at as usize] = after;
            self.next[gone as usize] = gone;
            if after != END {
                self.previous[after as usize] = at;
            }
            self.consider(pairs, parts, at);
            if self.previous[at as usize] != END {
                self.consider(pairs, parts, self.previous[at as usize]);
            }
        }
        let next = &self.next;
        let mut at = 0;
        parts.retain(|_| {
            at += 1;
            next[at - 1] != (at - 1) as u32
        });
    }

    /// Add the pair that starts at `at` to the heap if it can merge.
    fn consider(&mut self, pairs: &Pairs, parts: &[Part], at: u32) {
        let next = self.next[at as usize];
        let merge = if next == END {
            NONE
        } else {
            pairs.merge(parts[at as usize].symbol, parts[next as usize].symbol)
        };
        self.merges[at as usize] = merge;
        if merge != NONE {
            let key = merge >> 32 << 32 | u64::from(at);
            self.heap.push(Reverse((key, merge)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// The definition of merging: scan all pairs at each step.
    fn merged(pairs: &Pairs, parts: &[Part]) -> Vec<Part> {
        let mut parts = parts.to_vec();
        loop {
            let candidates = parts.windows(2).enumerate();
            let candidates = candidates.map(|(at, two)| {
                let merge = pairs.merge(two[0].symbol, two[1].symbol);
                (merge >> 32, at, merge)
            });
            match candidates.min() {
                Some((_, at, merge)) if merge != NONE => {
                    parts[at].symbol = merge as u32;
                    parts.remove(at + 1);
                }
                _ => return parts,
            }
        }
    }

    #[test]
    fn short_and_long_pieces_merge_as_defined() {
        let mut random = Rng::with_seed(20_261_121);
        for round in 0..if cfg!(miri) { 10 } else { 400 } {
            let symbols_in_use = 2 + random.usize(..5) as u32;
            let table: Vec<_> = (0..random.usize(..30))
                .map(|i| {
                    let mut any = || random.usize(..symbols_in_use as usize + i) as u32;
                    // Includes equal priorities: then the leftmost pair merges.
                    (any(), any(), any() / 2, symbols_in_use + i as u32)
                })
                .collect();
            let pairs = Pairs::new(&table);
            let parts: Vec<Part> = (0..random.usize(..if round % 4 == 0 { 300 } else { 60 }))
                .map(|start| Part {
                    symbol: match random.usize(..12) {
                        0 => NO_SYMBOL,
                        _ => random.usize(..symbols_in_use as usize) as u32,
                    },
                    start: start as u32,
                })
                .collect();
            let expected = merged(&pairs, &parts);
            let mut merger = PairMerger::default();
            for work in [PairMerger::merge_few, PairMerger::merge_many] {
                let mut found = parts.clone();
                if !found.is_empty() {
                    work(&mut merger, &pairs, &mut found);
                }
                assert_eq!(found, expected, "round {round}");
            }
        }
    }

    /// Cached pieces are short, and must be correct even if the call that merged them is cancelled.
    #[test]
    fn a_short_piece_is_merged_to_the_end_even_when_cancelled() {
        let pairs = Pairs::new(&[(0, 0, 0, 1), (1, 1, 1, 2)]);
        let parts: Vec<Part> = (0..200).map(|start| Part { symbol: 0, start }).collect();
        let expected = merged(&pairs, &parts);
        let flag = cancel::Flag::default();
        flag.set();
        cancel::work_under(Some(flag));
        let mut merger = PairMerger::default();
        for round in 0..100 {
            let mut found = parts.clone();
            merger.merge(&pairs, &mut found);
            assert_eq!(found, expected, "round {round}");
        }
        cancel::work_under(None);
    }

    #[test]
    fn one_letter_without_end_merges_in_few_steps() {
        let pairs = Pairs::new(&[(0, 0, 0, 1), (1, 1, 1, 2), (2, 2, 2, 3)]);
        for count in [1000, 100_000] {
            let one = |start| Part { symbol: 0, start };
            let mut parts: Vec<Part> = (0..count).map(one).collect();
            let mut merger = PairMerger::default();
            merger.merge(&pairs, &mut parts);
            assert_eq!(parts.len(), count as usize / 8);
            assert_eq!(parts[0].symbol, 3);
            assert!(merger.steps <= 3 * u64::from(count));
        }
    }
}
