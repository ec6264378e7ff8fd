//! Where token ids go: a list, a packed wire field, or only a count.

use crate::cache::{Entry, MOST_IDS};
use crate::rank_table::RankTable;
use crate::split::BATCH;

/// Takes the ids of a text in order.
pub trait Sink {
    fn push(&mut self, id: u32);

    /// Make room for `count` calls of the next two.
    fn reserve(&mut self, _count: usize) {}

    /// As `push`, where there is room.
    #[inline(always)]
    fn push_reserved(&mut self, id: u32) {
        self.push(id);
    }

    /// The ids of an entry of the cache, where there is room.
    #[inline(always)]
    fn put_entry(&mut self, entry: &Entry) {
        for &id in &entry.ids[..entry.count as usize] {
            self.push(id);
        }
    }

    fn extend(&mut self, ids: &[u32]) {
        ids.iter().for_each(|&id| self.push(id));
    }

    /// The id of a special token, which its spelling at `start` became.
    fn push_special(&mut self, id: u32, _start: usize, _end: usize) {
        self.push(id);
    }

    /// Whether further ids change nothing.
    fn is_full(&self) -> bool {
        false
    }
}

/// All ids, one after the other.
#[derive(Default)]
pub struct List {
    /// Zeros past `len`, so that an entry's ids are written at once whatever their number.
    ids: Vec<u32>,
    len: usize,
}

impl List {
    /// A list with room for what a text of so many bytes usually becomes.
    pub fn for_bytes(bytes: usize) -> Self {
        let mut list = List::default();
        list.reserve(bytes / (4 * MOST_IDS));
        list
    }

    pub fn into_vec(mut self) -> Vec<u32> {
        self.ids.truncate(self.len);
        self.ids
    }
}

impl Sink for List {
    fn push(&mut self, id: u32) {
        self.extend(&[id]);
    }

    fn reserve(&mut self, count: usize) {
        let needed = self.len + MOST_IDS * (count + 1);
        if needed > self.ids.len() {
            // Growing by half wastes less of a large buffer than doubling.
            self.ids.resize(needed.max(self.ids.len() * 3 / 2), 0);
        }
    }

    #[inline(always)]
    fn push_reserved(&mut self, id: u32) {
        self.ids[self.len] = id;
        self.len += 1;
    }

    #[inline(always)]
    fn put_entry(&mut self, entry: &Entry) {
        self.ids[self.len..self.len + MOST_IDS].copy_from_slice(&entry.ids);
        self.len += entry.count as usize;
    }

    fn extend(&mut self, ids: &[u32]) {
        // What is left of the batch still finds the room that it was promised.
        self.reserve(ids.len().div_ceil(MOST_IDS) + BATCH);
        self.ids[self.len..self.len + ids.len()].copy_from_slice(ids);
        self.len += ids.len();
    }
}

/// All ids, to be looked at between two of them.
#[derive(Default)]
pub struct Ids(pub Vec<u32>);

impl Sink for Ids {
    fn push(&mut self, id: u32) {
        self.0.push(id);
    }
}

/// Ids, and the byte where each token starts.
pub struct Located<'a> {
    table: &'a RankTable,
    pub ids: Vec<u32>,
    pub starts: Vec<usize>,
    at: usize,
}

impl<'a> Located<'a> {
    pub fn new(table: &'a RankTable) -> Self {
        Located {
            table,
            ids: Vec::new(),
            starts: Vec::new(),
            at: 0,
        }
    }
}

impl Sink for Located<'_> {
    fn push(&mut self, id: u32) {
        self.ids.push(id);
        self.starts.push(self.at);
        self.at += self.table.token(id).map_or(0, <[u8]>::len);
    }

    fn push_special(&mut self, id: u32, start: usize, end: usize) {
        self.ids.push(id);
        self.starts.push(start);
        self.at = end;
    }
}

/// Counts ids, up to one more than a limit.
pub struct Count {
    count: usize,
    limit: usize,
}

impl Count {
    /// `usize::MAX` for no limit.
    pub fn new(limit: usize) -> Self {
        Count { count: 0, limit }
    }

    /// The count, or the limit + 1 when there were more.
    pub fn result(&self) -> usize {
        self.count.min(self.limit.saturating_add(1))
    }
}

impl Sink for Count {
    fn push(&mut self, _id: u32) {
        self.count += 1;
    }

    #[inline(always)]
    fn put_entry(&mut self, entry: &Entry) {
        self.count += entry.count as usize;
    }

    fn extend(&mut self, ids: &[u32]) {
        self.count += ids.len();
    }

    fn is_full(&self) -> bool {
        self.count > self.limit
    }
}

/// Base-128 varints one after the other: a packed `repeated uint32`.
#[derive(Default)]
pub struct Packed(pub Vec<u8>);

impl Sink for Packed {
    fn push(&mut self, id: u32) {
        let mut rest = id;
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_piece_leaves_room_for_the_rest_of_its_batch() {
        let mut list = List::default();
        list.reserve(BATCH);
        let long: Vec<u32> = (0..5000).collect();
        list.extend(&long);
        for id in 0..BATCH as u32 {
            list.push_reserved(id);
        }
        let ids = list.into_vec();
        assert_eq!(ids[..5000], long);
        assert_eq!(ids.len(), 5000 + BATCH);
    }

    #[test]
    fn a_count_stops_one_past_its_limit() {
        for (pushed, limit, expected) in [(0, 0, 0), (3, 2, 3), (9, 2, 3), (2, 2, 2)] {
            let mut count = Count::new(limit);
            (0..pushed).for_each(|id| count.push(id));
            assert_eq!(count.result(), expected);
        }
    }
}
