//! Hash tables for byte strings of at most 15 bytes: one cache line for most lookups.

use crate::vocabulary::hash::fold;

/// The longest string that has a key.
pub const LONGEST: usize = 15;

/// At most 15 bytes, padded with zeros, and their number in the last byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Key {
    low: u64,
    high: u64,
}

/// What of the two halves of 16 bytes belongs to a string, by its length.
const MASKS: [[u64; 2]; LONGEST + 1] = {
    let mut masks = [[0; 2]; LONGEST + 1];
    let mut len = 1;
    while len <= LONGEST {
        let mask: u128 = (1 << (8 * len)) - 1;
        masks[len] = [mask as u64, (mask >> 64) as u64];
        len += 1;
    }
    masks
};

impl Key {
    /// The key of the `len` bytes, 1 to 15, from `start`.
    #[inline(always)]
    pub fn of(text: &[u8], start: usize, len: usize) -> Self {
        Key::masked(text, start, len)
    }

    /// The same for any length: for more than 15 bytes a key that no string has.
    #[inline(always)]
    pub fn or_none(text: &[u8], start: usize, len: usize) -> Self {
        let short = if len <= LONGEST { len } else { 0 };
        let key = Key::masked(text, start, short);
        Key {
            low: key.low,
            // Text in a string of no bytes.
            high: key.high | (short == 0) as u64,
        }
    }

    #[inline(always)]
    fn masked(text: &[u8], start: usize, len: usize) -> Self {
        let halves = |bytes: &[u8; 16]| {
            let bytes = u128::from_le_bytes(*bytes);
            [bytes as u64, (bytes >> 64) as u64]
        };
        let [low, high] = match text[start..].first_chunk() {
            Some(window) => halves(window),
            None => {
                let mut bytes = [0; 16];
                bytes[..len].copy_from_slice(&text[start..start + len]);
                halves(&bytes)
            }
        };
        let mask = MASKS[len];
        Key {
            low: low & mask[0],
            high: high & mask[1] | (len as u64) << 56,
        }
    }

    pub fn from_halves(low: u64, high: u64) -> Self {
        Key { low, high }
    }

    #[inline(always)]
    pub fn low(self) -> u64 {
        self.low
    }

    /// Its upper half, of which the upper four bits are free.
    #[inline(always)]
    pub fn high(self) -> u64 {
        self.high
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

    #[inline(always)]
    fn len(self) -> usize {
        (self.high >> 56) as usize
    }
}

/// From keys to ids. Two tables, because half of the room for nearly all keys is half of the
/// memory that a text is looked up in: most of what a lookup costs is waiting for it.
#[derive(Debug)]
pub struct ShortTable {
    narrow: Table<Narrow>,
    /// The longest key that is in the narrow table, 0 where an id does not fit into it.
    longest_narrow: usize,
    wide: Table<Wide>,
}

impl ShortTable {
    /// A table with room for keys of these lengths and ids.
    pub fn with_room(keys: impl Iterator<Item = (usize, u32)> + Clone) -> Self {
        let fits = keys.clone().all(|(_, id)| id <= Narrow::MOST);
        let longest_narrow = if fits { Narrow::LONGEST } else { 0 };
        let (mut narrow, mut wide) = (0, 0);
        for (len, _) in keys {
            *if len <= longest_narrow {
                &mut narrow
            } else {
                &mut wide
            } += 1;
        }
        ShortTable {
            narrow: Table::with_room(narrow),
            longest_narrow,
            wide: Table::with_room(wide),
        }
    }

    /// Add a key that is not there yet; those that come first are found fastest.
    pub fn insert(&mut self, key: Key, hash: u64, id: u32) {
        if key.len() <= self.longest_narrow {
            self.narrow.insert(key, hash, id);
        } else {
            self.wide.insert(key, hash, id);
        }
    }

    #[inline(always)]
    pub fn find(&self, key: Key, hash: u64) -> Option<u32> {
        if key.len() <= self.longest_narrow {
            self.narrow.find(key, hash)
        } else {
            self.wide.find(key, hash)
        }
    }
}

/// What a table holds: a key and its id, or nothing.
trait Entry: Copy + Default {
    fn new(key: Key, id: u32) -> Self;
    /// The id, if the key is this one.
    fn id(&self, key: Key) -> Option<u32>;
    fn is_free(&self) -> bool;
}

/// A key of at most 12 bytes, its length in the upper bits of the id.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C, align(16))]
struct Narrow {
    low: u64,
    high: u32,
    len_and_id: u32,
}

impl Narrow {
    const LONGEST: usize = 12;
    /// The greatest id.
    const MOST: u32 = (1 << 28) - 1;
}

impl Entry for Narrow {
    fn new(key: Key, id: u32) -> Self {
        Narrow {
            low: key.low,
            high: key.high as u32,
            len_and_id: (key.len() as u32) << 28 | id,
        }
    }

    #[inline(always)]
    fn id(&self, key: Key) -> Option<u32> {
        let id = self.len_and_id ^ (key.len() as u32) << 28;
        let same = self.low == key.low && self.high == key.high as u32 && id <= Narrow::MOST;
        same.then_some(id)
    }

    #[inline(always)]
    fn is_free(&self) -> bool {
        self.len_and_id == 0
    }
}

#[derive(Clone, Copy, Default, Debug)]
#[repr(C, align(32))]
struct Wide {
    key: Key,
    id: u32,
}

impl Entry for Wide {
    fn new(key: Key, id: u32) -> Self {
        Wide { key, id }
    }

    #[inline(always)]
    fn id(&self, key: Key) -> Option<u32> {
        (self.key == key).then_some(self.id)
    }

    #[inline(always)]
    fn is_free(&self) -> bool {
        self.key.is_free()
    }
}

/// Open addressing, at most half full, never changed after it is built.
#[derive(Debug)]
struct Table<E> {
    entries: Box<[E]>,
}

impl<E: Entry> Table<E> {
    fn with_room(count: usize) -> Self {
        let capacity = (count * 2).next_power_of_two().max(2);
        Table {
            entries: vec![E::default(); capacity].into_boxed_slice(),
        }
    }

    fn insert(&mut self, key: Key, hash: u64, id: u32) {
        let mask = self.entries.len() - 1;
        let mut at = hash as usize & mask;
        while !self.entries[at].is_free() {
            at = (at + 1) & mask;
        }
        self.entries[at] = E::new(key, id);
    }

    #[inline(always)]
    fn find(&self, key: Key, hash: u64) -> Option<u32> {
        let mask = self.entries.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let entry = &self.entries[at];
            if let Some(id) = entry.id(key) {
                return Some(id);
            }
            if entry.is_free() {
                return None;
            }
            at = (at + 1) & mask;
        }
    }
}
