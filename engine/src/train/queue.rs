//! A priority queue of pairs by count: a bucket for each small count, and a heap for large ones.
//!
//! Most pairs occur a few times and are never merged, so insertion must be cheap. Only the current
//! bucket is sorted. Counts become stale: the caller of `pop` compares an item with the current
//! count, and pushes it again if it has changed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Counts of this size or more are in the heap.
const BUCKETS: usize = 1 << 14;

/// A pair with its count at the time of insertion. The greatest comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    pub count: i64,
    /// The order among equal counts, the lowest first.
    pub key: Reverse<u64>,
    pub slot: Reverse<u32>,
}

/// Items by count, descending, then by key, ascending.
pub struct Queue {
    /// The items with a count of BUCKETS or more, and those of the bucket `level`.
    heap: BinaryHeap<Item>,
    /// Slots by count; their keys are computed when the bucket is moved to the heap.
    buckets: Vec<Vec<u32>>,
    /// The bucket that was moved to the heap; those of higher counts are empty.
    level: usize,
}

impl Queue {
    pub fn new() -> Self {
        Queue {
            heap: BinaryHeap::new(),
            buckets: vec![Vec::new(); BUCKETS],
            level: BUCKETS,
        }
    }

    /// Insert an item with a count of at least 1.
    pub fn push(&mut self, item: Item) {
        let count = usize::try_from(item.count).unwrap_or(0);
        if count < self.level {
            self.buckets[count].push(item.slot.0);
        } else {
            self.heap.push(item);
        }
    }

    /// Remove the first item if its count was at least `least`, which is at least 1.
    pub fn pop(&mut self, least: i64, key: impl Fn(u32) -> u64) -> Option<Item> {
        loop {
            if let Some(item) = self.heap.pop() {
                return (item.count >= least).then_some(item);
            }
            if self.level <= 1 || (self.level as i64) <= least {
                return None;
            }
            self.level -= 1;
            let count = self.level as i64;
            let bucket = std::mem::take(&mut self.buckets[self.level]);
            self.heap = bucket
                .into_iter()
                .map(|slot| Item {
                    count,
                    key: Reverse(key(slot)),
                    slot: Reverse(slot),
                })
                .collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    #[test]
    fn items_come_by_count_and_then_by_key() {
        let mut random = Rng::with_seed(8);
        let mut queue = Queue::new();
        let mut all = Vec::new();
        for slot in 0..3000 {
            let count = 1 + random.usize(..if slot % 3 == 0 { 40 } else { 3 * BUCKETS }) as i64;
            let item = Item {
                count,
                key: Reverse(u64::from(slot) ^ 1),
                slot: Reverse(slot),
            };
            all.push(item);
            queue.push(item);
        }
        let mut taken = Vec::new();
        while let Some(item) = queue.pop(1, |slot| u64::from(slot) ^ 1) {
            taken.push(item);
            // Items may be inserted meanwhile.
            if random.usize(..50) == 0 {
                queue.push(item);
                all.push(item);
            }
        }
        all.sort_unstable_by(|left, right| right.cmp(left));
        assert_eq!(taken, all);
    }
}
