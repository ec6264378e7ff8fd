//! Trains merges: repeatedly, the most frequent pair becomes a token.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use super::counts::Counts;
use super::pairs::{List, Pairs, key};
use super::queue::{Item, Queue};
use super::words::{Rewrite, Sides, Words};

/// The rule for pairs with equal counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The pair with the lowest ids, left before right.
    Lowest,
    /// The pair that occurs first in the current text.
    FirstSeen,
}

/// A merge. The first one produces the token 256, each further one the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merge {
    pub left: u32,
    pub right: u32,
    pub count: i64,
}

/// The reason why `step` returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The requested number of tokens was reached.
    Enough,
    /// No pair is frequent enough.
    NoPair,
    /// The time limit was reached.
    Time,
}

/// The pre-tokens exceed the range of positions or counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// The state of a training.
pub struct Trainer {
    ties: Ties,
    words: Words,
    pairs: Pairs,
    queue: Queue,
    sides: Sides,
    /// The tokens in order of ids: the bytes, then the results of merges.
    pub tokens: Vec<Vec<u8>>,
    lens: Vec<u32>,
    pub merges: Vec<Merge>,
    /// Current number of tokens of the text.
    pub length: i64,
}

impl Trainer {
    /// Start with the 256 bytes, which have the ids 0 to 255 in the order of `bytes`.
    pub fn new(counts: &Counts, bytes: &[u8; 256], ties: Ties) -> Result<Self, TooLarge> {
        let mut byte_ids = [0; 256];
        for (id, &byte) in bytes.iter().enumerate() {
            byte_ids[byte as usize] = id as u32;
        }
        let length = i64::try_from(counts.total_bytes()).map_err(|_| TooLarge)?;
        let mut trainer = Trainer {
            ties,
            words: Words::new(counts, &byte_ids).ok_or(TooLarge)?,
            pairs: Pairs::default(),
            queue: Queue::new(),
            sides: Sides::default(),
            tokens: bytes.iter().map(|&byte| vec![byte]).collect(),
            lens: vec![1; 256],
            merges: Vec::new(),
            length,
        };
        trainer.words.add_byte_pairs(&mut trainer.pairs);
        for slot in 0..trainer.pairs.len() {
            trainer.enqueue(slot as u32);
        }
        Ok(trainer)
    }

    /// Merge until there are `target` tokens, no pair occurs at least `least` (at least 1) times,
    /// or the time limit is reached.
    pub fn step(&mut self, target: usize, least: i64, time: Duration) -> Stop {
        let start = Instant::now();
        while self.tokens.len() < target {
            if start.elapsed() >= time {
                return Stop::Time;
            }
            let Some(item) = self.next(least) else {
                return Stop::NoPair;
            };
            self.merge(item);
        }
        Stop::Enough
    }

    /// The order of a pair among those with equal counts.
    fn tie_key(ties: Ties, pairs: &Pairs, slot: u32) -> u64 {
        let pair = pairs.pair(slot);
        match ties {
            Ties::Lowest => key(pair.left, pair.right),
            Ties::FirstSeen => {
                let first = pairs.positions(pair.list).first();
                first.map_or(u64::MAX, |&at| u64::from(at))
            }
        }
    }

    fn enqueue(&mut self, slot: u32) {
        let count = self.pairs.pair(slot).count;
        if count > 0 {
            let key = Reverse(Self::tie_key(self.ties, &self.pairs, slot));
            let slot = Reverse(slot);
            self.queue.push(Item { count, key, slot });
        }
    }

    /// The pair to merge, with its current count. Counts only decrease.
    fn next(&mut self, least: i64) -> Option<Item> {
        loop {
            let (ties, pairs) = (self.ties, &self.pairs);
            let key = |slot| Self::tie_key(ties, pairs, slot);
            let item = self.queue.pop(least, key)?;
            let slot = item.slot.0;
            let has_fallen = self.pairs.pair(slot).count < item.count;
            if has_fallen || ties == Ties::FirstSeen && self.has_moved(slot) {
                self.enqueue(slot);
            } else {
                return Some(item);
            }
        }
    }

    /// Whether the first position of a pair is invalid now; if so, remove such positions from the
    /// start of its list.
    fn has_moved(&mut self, slot: u32) -> bool {
        let rewrite = self.rewrite(slot, 0);
        let list = self.pairs.pair(slot).list;
        let positions = self.pairs.positions(list);
        let gone = positions
            .iter()
            .take_while(|&&at| !self.words.stands(at, &rewrite))
            .count();
        self.pairs.pair_mut(slot).list = list.skip(gone);
        gone > 0
    }

    fn rewrite(&self, slot: u32, token: u32) -> Rewrite {
        let pair = self.pairs.pair(slot);
        let len = |id: u32| self.lens[id as usize] as usize;
        Rewrite {
            left: pair.left,
            right: pair.right,
            token,
            left_len: len(pair.left),
            right_len: len(pair.right),
        }
    }

    fn merge(&mut self, item: Item) {
        let slot = item.slot.0;
        let rewrite = self.rewrite(slot, self.tokens.len() as u32);
        let (left, right) = (rewrite.left, rewrite.right);
        let bytes_of = |id: u32| &self.tokens[id as usize][..];
        let bytes = [bytes_of(left), bytes_of(right)].concat();
        self.lens.push(bytes.len() as u32);
        self.tokens.push(bytes);
        self.merges.push(Merge {
            left,
            right,
            count: item.count,
        });
        let positions = self.pairs.positions(self.pairs.pair(slot).list);
        self.words
            .merge(&rewrite, positions, &self.lens, &mut self.sides);
        self.length -= self.sides.merged;
        self.update(&rewrite);
    }

    /// Update the pairs adjacent to the merged ones.
    fn update(&mut self, rewrite: &Rewrite) {
        let (left, right, token) = (rewrite.left, rewrite.right, rewrite.token);
        let sides = &mut self.sides;
        let first = self.pairs.len();
        for (before, count, list) in sides.left.grouped(&mut self.pairs) {
            self.pairs.adjust(before, left, -count);
            self.pairs.add(before, token, count, list);
        }
        for (after, count, list) in sides.right.grouped(&mut self.pairs) {
            self.pairs.adjust(right, after, -count);
            self.pairs.add(token, after, count, list);
        }
        if !sides.runs.is_empty() {
            // `left` followed the previous token; now the new token does.
            self.pairs.adjust(token, left, -sides.run_weight);
            let runs = self.pairs.keep(sides.runs.as_slice().into());
            let list = List::new(runs, 0, sides.runs.len());
            self.pairs.add(token, token, sides.run_weight, list);
        }
        for slot in first..self.pairs.len() {
            self.enqueue(slot as u32);
        }
    }
}
