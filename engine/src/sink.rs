//! Where token ids go: a list, a packed wire field, or only a count.

use crate::rank_table::RankTable;

/// Takes the ids of a text in order.
pub trait Sink {
    fn push(&mut self, id: u32);

    /// The id of a special token, which its spelling at `start` became.
    fn push_special(&mut self, id: u32, _start: usize, _end: usize) {
        self.push(id);
    }

    /// How much it holds, for `rewind`.
    fn mark(&self) -> usize;

    /// Forget what came after `mark` returned this.
    fn rewind(&mut self, mark: usize);

    /// Whether further ids change nothing.
    fn is_full(&self) -> bool {
        false
    }
}

impl Sink for Vec<u32> {
    fn push(&mut self, id: u32) {
        Vec::push(self, id);
    }

    fn mark(&self) -> usize {
        self.len()
    }

    fn rewind(&mut self, mark: usize) {
        self.truncate(mark);
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

    fn mark(&self) -> usize {
        self.ids.len()
    }

    fn rewind(&mut self, mark: usize) {
        self.at = self.starts.get(mark).copied().unwrap_or(self.at);
        self.ids.truncate(mark);
        self.starts.truncate(mark);
    }
}

/// Counts ids, up to one more than a limit.
pub struct Count {
    count: usize,
    limit: usize,
}

impl Count {
    pub fn new(limit: Option<usize>) -> Self {
        Count {
            count: 0,
            limit: limit.unwrap_or(usize::MAX),
        }
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

    fn mark(&self) -> usize {
        self.count
    }

    fn rewind(&mut self, mark: usize) {
        self.count = mark;
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

    fn mark(&self) -> usize {
        self.0.len()
    }

    fn rewind(&mut self, mark: usize) {
        self.0.truncate(mark);
    }
}
