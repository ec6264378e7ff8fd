//! What pre-tokens became, remembered: bounded, and owned by one thread at a time.

use crate::hash::hash;
use crate::short_table::{Entry, Ids, Key};

/// How many neighbouring entries a short key may be in.
const WAYS: usize = 4;

/// Entries of a table when it is first needed.
const FIRST_ENTRIES: usize = 1 << 10;

/// The longest piece that is remembered, in bytes.
pub const LONGEST_PIECE: usize = 255;

/// Ids of pre-tokens that are not one token.
#[derive(Debug)]
pub struct Cache {
    short: Vec<Entry>,
    short_used: usize,
    most_short: usize,
    long: LongCache,
}

impl Cache {
    /// A cache that never takes more than about `bytes`; 0 for one that remembers nothing.
    pub fn new(bytes: usize) -> Self {
        let half = bytes / 2;
        let most_short = match half / size_of::<Entry>() {
            0..FIRST_ENTRIES => 0,
            // The greatest power of two that fits.
            entries => 1 << entries.ilog2(),
        };
        Cache {
            short: Vec::new(),
            short_used: 0,
            most_short,
            long: LongCache::new(half),
        }
    }

    #[inline(always)]
    pub fn find_short(&self, key: Key, hash: u64) -> Option<Ids> {
        if self.short.is_empty() {
            return None;
        }
        let mask = self.short.len() - 1;
        let first = (hash >> 32) as usize;
        (0..WAYS)
            .map(|way| &self.short[(first + way) & mask])
            .find(|entry| entry.key == key)
            .map(|entry| entry.ids)
    }

    /// Remember a key that was not found; it may take the place of another.
    pub fn insert_short(&mut self, key: Key, hash: u64, ids: Ids) {
        if self.short_used * 2 >= self.short.len() && self.short.len() < self.most_short {
            self.grow_short();
        }
        if self.short.is_empty() {
            return;
        }
        let mask = self.short.len() - 1;
        let first = (hash >> 32) as usize;
        let free = (0..WAYS).find(|way| self.short[(first + way) & mask].key == Key::default());
        // Which one goes is as good as random: the ids of the newcomer decide.
        let way = free.unwrap_or(ids.slots()[0] as usize % WAYS);
        self.short_used += free.is_some() as usize;
        self.short[(first + way) & mask] = Entry { key, ids };
    }

    fn grow_short(&mut self) {
        let capacity = (self.short.len() * 2).max(FIRST_ENTRIES);
        let old = std::mem::replace(&mut self.short, vec![Entry::default(); capacity]);
        self.short_used = 0;
        for entry in old.into_iter().filter(|entry| entry.key != Key::default()) {
            self.insert_short(entry.key, entry.key.hash(), entry.ids);
        }
    }

    /// The ids of a piece of 16 to `LONGEST_PIECE` bytes, or of a short one with many ids.
    #[inline]
    pub fn find_long(&self, piece: &[u8], hash: u64) -> Option<&[u32]> {
        self.long.find(piece, hash)
    }

    /// Remember a piece that was not found.
    pub fn insert_long(&mut self, piece: &[u8], hash: u64, ids: &[u32]) {
        self.long.insert(piece, hash, ids);
    }
}

/// The hash that long pieces are looked up by.
pub fn long_hash(piece: &[u8]) -> u64 {
    hash(piece)
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    tag: u32,
    /// Where its bytes and ids start.
    bytes_at: u32,
    ids_at: u32,
    len: u8,
    ids: u8,
}

/// Open addressing over two arenas; when they are full all is forgotten at once, which costs
/// less than knowing what was used last.
#[derive(Debug)]
struct LongCache {
    slots: Vec<Slot>,
    used: usize,
    bytes: Vec<u8>,
    ids: Vec<u32>,
    most: usize,
}

impl LongCache {
    fn new(most: usize) -> Self {
        LongCache {
            slots: Vec::new(),
            used: 0,
            bytes: Vec::new(),
            ids: Vec::new(),
            most,
        }
    }

    fn find(&self, piece: &[u8], hash: u64) -> Option<&[u32]> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.len == 0 {
                return None;
            }
            if slot.tag == (hash >> 32) as u32 && slot.len as usize == piece.len() {
                let start = slot.bytes_at as usize;
                if &self.bytes[start..start + piece.len()] == piece {
                    let start = slot.ids_at as usize;
                    return Some(&self.ids[start..start + slot.ids as usize]);
                }
            }
            at = (at + 1) & mask;
        }
    }

    fn insert(&mut self, piece: &[u8], hash: u64, ids: &[u32]) {
        if self.used * 2 >= self.slots.len() {
            self.grow();
        }
        // A vector that grows takes up to twice what it holds, and the old one meanwhile.
        let taken = 3 * (self.bytes.len() + 4 * self.ids.len()) + self.slot_bytes();
        if taken + 3 * (piece.len() + 4 * ids.len()) > self.most {
            self.slots.fill(Slot::default());
            self.used = 0;
            self.bytes.clear();
            self.ids.clear();
        }
        if self.used * 2 >= self.slots.len() || piece.len() > LONGEST_PIECE {
            return;
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].len != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = Slot {
            tag: (hash >> 32) as u32,
            bytes_at: self.bytes.len() as u32,
            ids_at: self.ids.len() as u32,
            len: piece.len() as u8,
            ids: ids.len() as u8,
        };
        self.used += 1;
        self.bytes.extend_from_slice(piece);
        self.ids.extend_from_slice(ids);
    }

    fn slot_bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot>()
    }

    fn grow(&mut self) {
        let capacity = (self.slots.len() * 2).max(FIRST_ENTRIES);
        // Slots take a quarter at the most, counting the old ones while they are copied.
        if capacity * size_of::<Slot>() * 6 > self.most {
            return;
        }
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); capacity]);
        let mask = capacity - 1;
        for slot in old.into_iter().filter(|slot| slot.len != 0) {
            let start = slot.bytes_at as usize;
            let hash = hash(&self.bytes[start..start + slot.len as usize]);
            let mut at = hash as usize & mask;
            while self.slots[at].len != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
    }
}
