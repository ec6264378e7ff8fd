//! The distinct pre-tokens as tokens in one array, and merging in place.
//!
//! Each byte has a slot. The first and the last slot of a token hold its id, so adjacent tokens are
//! found without pointers: the previous one by the slot before, the next one by the token's length.
//! Starts of tokens are only removed, and the slot of a removed start is set to INVALID. So a
//! position that was the start of a token still is if and only if its slot holds that token.

use std::iter::once;

use super::counts::Counts;
use super::pairs::{List, Pairs};

const INVALID: u32 = u32::MAX;
/// The separator between words.
const SEPARATOR: u32 = u32::MAX - 1;

#[derive(Clone, Copy)]
struct Slot {
    id: u32,
    word: u32,
}

/// The words with their counts.
pub struct Words {
    slots: Vec<Slot>,
    weights: Vec<i64>,
}

/// The tokens on one side of the merged pairs.
#[derive(Default)]
pub struct Side {
    /// By id: number of occurrences, weighted by the counts of their words.
    weight: Vec<i64>,
    /// By id: number of occurrences; then the index for the next of them.
    number: Vec<u32>,
    /// The ids that occurred.
    ids: Vec<u32>,
    /// The occurrences: the id, and the start of the new pair.
    found: Vec<(u32, u32)>,
}

impl Side {
    fn clear(&mut self, tokens: usize) {
        for &id in &self.ids {
            self.weight[id as usize] = 0;
            self.number[id as usize] = 0;
        }
        self.ids.clear();
        self.found.clear();
        self.weight.resize(tokens, 0);
        self.number.resize(tokens, 0);
    }

    #[inline]
    fn note(&mut self, id: u32, at: u32, weight: i64) {
        let number = &mut self.number[id as usize];
        if *number == 0 {
            self.ids.push(id);
        }
        *number += 1;
        self.weight[id as usize] += weight;
        self.found.push((id, at));
    }

    /// Store the positions grouped by id. Returns each id with its weight and its list.
    pub fn grouped(&mut self, pairs: &mut Pairs) -> Vec<(u32, i64, List)> {
        let mut start = 0;
        let mut spans = Vec::with_capacity(self.ids.len());
        for &id in &self.ids {
            let number = std::mem::replace(&mut self.number[id as usize], start);
            spans.push((id, start as usize, number as usize));
            start += number;
        }
        let mut positions = vec![0; self.found.len()];
        for &(id, at) in &self.found {
            let next = &mut self.number[id as usize];
            positions[*next as usize] = at;
            *next += 1;
        }
        let chunk = pairs.keep(positions.into());
        let spans = spans.into_iter();
        spans
            .map(|(id, start, len)| (id, self.weight[id as usize], List::new(chunk, start, len)))
            .collect()
    }
}

/// The effects of one merge.
#[derive(Default)]
pub struct Sides {
    pub left: Side,
    pub right: Side,
    /// Positions where this merge made the new token follow itself.
    pub runs: Vec<u32>,
    pub run_weight: i64,
    /// Number of tokens by which the text became shorter.
    pub merged: i64,
}

/// A merge: the two tokens with their lengths, and the resulting token.
#[derive(Clone, Copy)]
pub struct Rewrite {
    pub left: u32,
    pub right: u32,
    pub token: u32,
    pub left_len: usize,
    pub right_len: usize,
}

impl Words {
    /// Lay out all words of two or more bytes, with each byte as a token.
    ///
    /// None if there are more bytes than positions.
    pub fn new(counts: &Counts, byte_ids: &[u32; 256]) -> Option<Self> {
        let long = || counts.iter().filter(|(word, _)| word.len() > 1);
        let slots = 1 + long().map(|(word, _)| word.len() + 1).sum::<usize>();
        if slots > INVALID as usize {
            return None;
        }
        let mut words = Words {
            slots: Vec::with_capacity(slots),
            weights: Vec::with_capacity(counts.len()),
        };
        for (word, count) in long() {
            let number = words.weights.len() as u32;
            words.weights.push(count as i64);
            let tokens = word.iter().map(|&byte| byte_ids[byte as usize]);
            let ids = once(SEPARATOR).chain(tokens);
            words.slots.extend(ids.map(|id| Slot { id, word: number }));
        }
        words.slots.push(Slot {
            id: SEPARATOR,
            word: 0,
        });
        Some(words)
    }

    /// Add all pairs of adjacent bytes.
    pub fn add_byte_pairs(&self, pairs: &mut Pairs) {
        let adjacent = || {
            self.slots.windows(2).enumerate().filter_map(|(at, two)| {
                let (left, right) = (two[0].id, two[1].id);
                let is_pair = left < SEPARATOR && right < SEPARATOR;
                is_pair.then(|| ((left << 8 | right) as usize, at, two[0].word))
            })
        };
        let (mut weight, mut number) = (vec![0_i64; 1 << 16], vec![0_usize; 1 << 16]);
        for (pair, _, word) in adjacent() {
            weight[pair] += self.weights[word as usize];
            number[pair] += 1;
        }
        let mut next = Vec::with_capacity(1 << 16);
        let mut start = 0;
        for &number in &number {
            next.push(start);
            start += number;
        }
        let mut positions = vec![0; start];
        for (pair, at, _) in adjacent() {
            positions[next[pair]] = at as u32;
            next[pair] += 1;
        }
        let chunk = pairs.keep(positions.into());
        for pair in (0..1 << 16).filter(|&pair| number[pair] > 0) {
            let list = List::new(chunk, next[pair] - number[pair], number[pair]);
            pairs.add(pair as u32 >> 8, pair as u32 & 0xff, weight[pair], list);
        }
    }

    /// Whether a position of the pair is still valid.
    #[inline]
    pub fn stands(&self, at: u32, rewrite: &Rewrite) -> bool {
        let at = at as usize;
        self.slots[at].id == rewrite.left && self.slots[at + rewrite.left_len].id == rewrite.right
    }

    /// Merge a pair at all valid `positions`, which are ascending.
    pub fn merge(&mut self, rewrite: &Rewrite, positions: &[u32], lens: &[u32], sides: &mut Sides) {
        let token = rewrite.token;
        sides.left.clear(lens.len());
        sides.right.clear(lens.len());
        sides.runs.clear();
        (sides.run_weight, sides.merged) = (0, 0);
        for &position in positions {
            if !self.stands(position, rewrite) {
                continue;
            }
            let at = position as usize;
            let middle = at + rewrite.left_len;
            let end = middle + rewrite.right_len;
            let weight = self.weights[self.slots[at].word as usize];
            self.slots[at].id = token;
            self.slots[middle].id = INVALID;
            self.slots[end - 1].id = token;
            sides.merged += weight;
            let (before, after) = (self.slots[at - 1].id, self.slots[end].id);
            if before == token {
                sides.runs.push((at - lens[token as usize] as usize) as u32);
                sides.run_weight += weight;
            } else if before != SEPARATOR {
                let start = at - lens[before as usize] as usize;
                sides.left.note(before, start as u32, weight);
            }
            if after != SEPARATOR {
                sides.right.note(after, position, weight);
            }
        }
    }
}
