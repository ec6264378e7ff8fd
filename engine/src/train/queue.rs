//! Which pair is most frequent: a bucket for each small count, a heap for the large ones.
//!
//! Most pairs stand a few times and are never merged, so putting one in must cost next to
//! nothing. Only the bucket that is emptied is put in order. Counts go stale; who takes an
//! item compares it with the count as it is, and puts it back.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Counts from here on are in the heap.
const BUCKETS: usize = 1 << 14;

/// A pair as it was put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    pub count: i64,
    /// Lower goes first among equal counts.
    pub key: u64,
    pub slot: u32,
}

type Order = (i64, Reverse<u64>, Reverse<u32>);

fn ordered(item: Item) -> Order {
    (item.count, Reverse(item.key), Reverse(item.slot))
}

fn item((count, Reverse(key), Reverse(slot)): Order) -> Item {
    Item { count, key, slot }
}

/// Items by count, descending, then by key, ascending.
pub struct Queue {
    /// The items of counts from BUCKETS on, and those of `level`.
    heap: BinaryHeap<Order>,
    /// By count; the key is computed when the bucket is opened.
    buckets: Vec<Vec<u32>>,
    /// The bucket that is in the heap; every fuller one is empty.
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

    /// Put an item in; its count is at least 1.
    pub fn push(&mut self, item: Item) {
        let count = usize::try_from(item.count).unwrap_or(0);
        if count < self.level {
            self.buckets[count].push(item.slot);
        } else {
            self.heap.push(ordered(item));
        }
    }

    /// Take the first item, of those whose count was at least `least` (from 1).
    pub fn pop(&mut self, least: i64, key: impl Fn(u32) -> u64) -> Option<Item> {
        loop {
            if let Some(top) = self.heap.pop() {
                let found = item(top);
                return (found.count >= least).then_some(found);
            }
            if self.level <= 1 || (self.level as i64) <= least {
                return None;
            }
            self.level -= 1;
            let count = self.level as i64;
            let bucket = std::mem::take(&mut self.buckets[self.level]);
            self.heap = bucket
                .into_iter()
                .map(|slot| {
                    ordered(Item {
                        count,
                        key: key(slot),
                        slot,
                    })
                })
                .collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn items_come_by_count_and_then_by_key() {
        let mut random = Random::new(8);
        let mut queue = Queue::new();
        let mut all = Vec::new();
        for slot in 0..3000 {
            let count = 1 + random.below(if slot % 3 == 0 { 40 } else { 3 * BUCKETS }) as i64;
            all.push((Reverse(count), slot as u64 ^ 1, slot));
            queue.push(Item {
                count,
                key: slot as u64 ^ 1,
                slot,
            });
        }
        all.sort_unstable();
        let mut taken = Vec::new();
        while let Some(item) = queue.pop(1, |slot| u64::from(slot) ^ 1) {
            taken.push((Reverse(item.count), item.key, item.slot));
            // What is put in meanwhile goes its own way, up or down.
            if random.below(50) == 0 {
                queue.push(item);
                all.push((Reverse(item.count), item.key, item.slot));
            }
        }
        all.sort_unstable();
        taken.sort_unstable();
        assert_eq!(taken, all);
    }
}
