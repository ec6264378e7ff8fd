//! A hash table for byte strings of at most 15 bytes: one cache line for most lookups.

use crate::hash::fold;

/// The longest string that has a key.
pub const LONGEST: usize = 15;

/// At most 15 bytes, padded with zeros, and their number in the last byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Key {
    low: u64,
    high: u64,
}

impl Key {
    /// The key of the `len` bytes, 1 to 15, from `start`.
    #[inline(always)]
    pub fn of(text: &[u8], start: usize, len: usize) -> Self {
        let bytes = match text.get(start..start + 16) {
            Some(window) => {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(window);
                u128::from_le_bytes(bytes) & ((1 << (8 * len)) - 1)
            }
            None => {
                let mut bytes = [0; 16];
                bytes[..len].copy_from_slice(&text[start..start + len]);
                u128::from_le_bytes(bytes)
            }
        };
        let whole = bytes | (len as u128) << 120;
        Key {
            low: whole as u64,
            high: (whole >> 64) as u64,
        }
    }

    #[inline(always)]
    pub fn hash(self) -> u64 {
        fold(
            self.low ^ 0x9e37_79b9_7f4a_7c15,
            self.high ^ 0xd1b5_4a32_d192_ed03,
        )
    }

    fn is_free(self) -> bool {
        self.high == 0
    }
}

#[derive(Clone, Copy, Default, Debug)]
#[repr(C, align(32))]
struct Entry {
    key: Key,
    id: u32,
}

/// Open addressing, at most half full, never changed after it is built.
#[derive(Debug)]
pub struct ShortTable {
    entries: Box<[Entry]>,
}

impl ShortTable {
    /// A table with room for `count` keys.
    pub fn with_room(count: usize) -> Self {
        let capacity = (count * 2).next_power_of_two().max(2);
        ShortTable {
            entries: vec![Entry::default(); capacity].into_boxed_slice(),
        }
    }

    /// Add a key that is not there yet.
    pub fn insert(&mut self, key: Key, id: u32) {
        let mask = self.entries.len() - 1;
        let mut at = key.hash() as usize & mask;
        while !self.entries[at].key.is_free() {
            at = (at + 1) & mask;
        }
        self.entries[at] = Entry { key, id };
    }

    #[inline(always)]
    pub fn find(&self, key: Key, hash: u64) -> Option<u32> {
        let mask = self.entries.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let entry = &self.entries[at];
            if entry.key == key {
                return Some(entry.id);
            }
            if entry.key.is_free() {
                return None;
            }
            at = (at + 1) & mask;
        }
    }
}
