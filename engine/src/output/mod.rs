//! Sinks for token ids: a list, or a count.

pub mod offsets;
pub mod varint;

use crate::cache::recent::{FEW, PLAIN, Slot};
use crate::vocabulary::rank_table::RankTable;

/// Maximum number of recent pre-tokens in a call of `put_recent`.
pub const MAX_RECENT: usize = 32;

/// Receives the ids of a text in order.
pub trait Sink {
    fn extend(&mut self, ids: &[u32]);

    fn push(&mut self, id: u32) {
        self.extend(&[id]);
    }

    /// Adds the ids of recent pre-tokens, at most `MAX_RECENT`. Returns the number of pre-tokens.
    #[inline(always)]
    fn put_recent<'s>(&mut self, slots: impl Iterator<Item = &'s Slot>) -> usize {
        let mut count = 0;
        for slot in slots {
            self.extend(&slot.ids()[..slot.count()]);
            self.end_piece();
            count += 1;
        }
        count
    }

    /// Adds the first `count` of three ids.
    #[inline(always)]
    fn push_some(&mut self, ids: [u32; 3], count: usize) {
        self.extend(&ids[..count]);
    }

    /// Adds the id of a special token that is spelled from `start` to `end` of the text, in bytes.
    fn push_special(&mut self, id: u32, _start: usize, _end: usize) {
        self.push(id);
    }

    /// Ends a pre-token, whose ids have all been added.
    #[inline(always)]
    fn end_piece(&mut self) {}

    /// Returns whether further ids make no difference.
    fn is_full(&self) -> bool {
        false
    }
}

/// A sink that makes a list.
#[derive(Default)]
pub struct List {
    /// The ids, followed by zeros from `len` on, so that an entry's ids are written at once
    /// whatever their number.
    ids: Vec<u32>,
    len: usize,
}

impl List {
    /// Reserves capacity for the usual number of ids of a text of `bytes` bytes.
    pub fn for_bytes(bytes: usize) -> Self {
        List {
            ids: vec![0; bytes / 3 + MAX_RECENT * FEW],
            len: 0,
        }
    }

    pub fn into_vec(mut self) -> Vec<u32> {
        self.ids.truncate(self.len);
        self.ids
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, more: usize) {
        // Growing by half wastes less of a large buffer than doubling.
        let len = (self.len + more).max(self.ids.len() * 3 / 2);
        self.ids.resize(len, 0);
    }
}

impl Sink for List {
    /// Keeps the length in a register, because each position depends on it.
    #[inline(always)]
    fn put_recent<'s>(&mut self, slots: impl Iterator<Item = &'s Slot>) -> usize {
        if self.ids.len() - self.len < MAX_RECENT * FEW {
            self.grow(MAX_RECENT * FEW);
        }
        let (ids, mut len, mut count) = (&mut self.ids[..], self.len, 0);
        for slot in slots {
            ids[len..len + PLAIN].copy_from_slice(slot.plain());
            if slot.count() > PLAIN {
                ids[len..len + FEW].copy_from_slice(&slot.ids());
            }
            len += slot.count();
            count += 1;
        }
        self.len = len;
        count
    }

    #[inline(always)]
    fn push_some(&mut self, ids: [u32; 3], count: usize) {
        self.extend(&ids);
        self.len -= 3 - count;
    }

    fn extend(&mut self, ids: &[u32]) {
        if self.ids.len() - self.len < ids.len() {
            self.grow(ids.len() + FEW);
        }
        self.ids[self.len..self.len + ids.len()].copy_from_slice(ids);
        self.len += ids.len();
    }
}

/// A sink whose ids can be read between two pushes.
#[derive(Default)]
pub struct Ids(pub Vec<u32>);

impl Sink for Ids {
    fn extend(&mut self, ids: &[u32]) {
        self.0.extend_from_slice(ids);
    }
}

/// A sink that collects ids and the start of each token, in bytes.
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
    fn extend(&mut self, ids: &[u32]) {
        for &id in ids {
            self.ids.push(id);
            self.starts.push(self.at);
            self.at += self.table.token(id).map_or(0, <[u8]>::len);
        }
    }

    fn push_special(&mut self, id: u32, start: usize, end: usize) {
        self.ids.push(id);
        self.starts.push(start);
        self.at = end;
    }
}

/// A sink that counts ids, up to one more than a limit.
pub struct Count {
    count: usize,
    limit: usize,
}

impl Count {
    /// Makes a count. `usize::MAX` is no limit.
    pub fn new(limit: usize) -> Self {
        Count { count: 0, limit }
    }

    /// Returns the count, or the limit + 1 if there were more.
    pub fn result(&self) -> usize {
        self.count.min(self.limit.saturating_add(1))
    }
}

impl Sink for Count {
    #[inline(always)]
    fn put_recent<'s>(&mut self, slots: impl Iterator<Item = &'s Slot>) -> usize {
        let (mut ids, mut count) = (0, 0);
        for slot in slots {
            ids += slot.count();
            count += 1;
        }
        self.count += ids;
        count
    }

    fn extend(&mut self, ids: &[u32]) {
        self.count += ids.len();
    }

    fn is_full(&self) -> bool {
        self.count > self.limit
    }
}

/// A sink that records the number of ids at the end of each pre-token.
#[derive(Default)]
pub struct Sums {
    pub sums: Vec<usize>,
    pub count: usize,
}

impl Sink for Sums {
    fn extend(&mut self, ids: &[u32]) {
        self.count += ids.len();
    }

    #[inline(always)]
    fn end_piece(&mut self) {
        self.sums.push(self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::recent::Recent;
    use crate::vocabulary::short_table::Key;

    #[test]
    fn a_list_grows_with_every_kind_of_push() {
        let mut list = List::for_bytes(0);
        let mut recent = Recent::new(1 << 20);
        let key = Key::of(b"abc", 0, 3);
        let few = [1 << 17, 8, 9, 10, 11, 12];
        recent.insert(Slot::new(key, &few).expect("few"), key.hash());
        let mut expected = Vec::new();
        for round in 0..200u32 {
            let ids: Vec<u32> = (0..round % 7).collect();
            list.extend(&ids);
            expected.extend(ids);
            list.put_recent(recent.find(key, key.hash()).into_iter());
            expected.extend(few);
            list.push_some([round, 7, 8], 1 + round as usize % 3);
            expected.extend(&[round, 7, 8][..1 + round as usize % 3]);
            list.push(round);
            expected.push(round);
        }
        assert_eq!(list.into_vec(), expected);
    }
}
