//! Keys of at most 15 bytes, and a hash table for most of them: one cache line for most lookups.

use std::sync::Arc;

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

    /// The key of the `len` bytes, 1 to 8, from `start`.
    #[inline(always)]
    pub fn of_few(text: &[u8], start: usize, len: usize) -> Self {
        let mut word = [0; 8];
        word.copy_from_slice(&text[start..start + 8]);
        Key {
            low: u64::from_le_bytes(word) & (!0 >> (64 - 8 * len)),
            high: (len as u64) << 56,
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

    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        (self.high >> 56) as usize
    }

    /// The bytes, and something after them.
    pub fn bytes(self) -> [u8; 16] {
        ((self.high as u128) << 64 | self.low as u128).to_le_bytes()
    }
}

/// Prefetch a place into the processor's cache.
#[inline(always)]
pub fn fetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of every x86-64, and a prefetch is a hint: it never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// From keys of at most 12 bytes to ids: open addressing, at most three quarters full, never changed
/// after it is built. Longer tokens are few, and half of the room for each of the others is half of
/// the memory that a text is looked up in: most of what a lookup costs is waiting for it. That is also
/// why it is so full.
#[derive(Clone, Debug)]
pub struct ShortTable {
    entries: Arc<[Entry]>,
    /// The longest key that may be here, 0 where an id does not fit.
    longest: usize,
}

/// How many tokens are placed at once, so that waiting for memory is shared.
const BATCH: usize = 32;

impl ShortTable {
    /// Of tokens and ids; those that come first are found fastest. Also the position of the first
    /// that repeats an earlier one.
    pub fn of<'t>(tokens: impl Iterator<Item = (&'t [u8], u32)> + Clone) -> (Self, Option<usize>) {
        let fits = tokens.clone().all(|(_, id)| id <= Entry::MOST);
        let longest = if fits { Entry::LONGEST } else { 0 };
        let tokens = tokens.enumerate();
        let mut tokens = tokens.filter(|(_, (token, _))| token.len() <= longest);
        let least = (tokens.clone().count() * 4).div_ceil(3);
        let capacity = least.next_power_of_two().max(2);
        let mut table = ShortTable {
            entries: std::iter::repeat_n(Entry::default(), capacity).collect(),
            longest,
        };
        let mut repeated = None;
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            batch.extend(tokens.by_ref().take(BATCH).map(|(position, (token, id))| {
                let key = Key::of(token, 0, token.len());
                table.fetch(key.hash());
                (position, key, id)
            }));
            if batch.is_empty() {
                return (table, repeated);
            }
            let entries = Arc::make_mut(&mut table.entries);
            for (position, key, id) in batch.drain(..) {
                let mut at = key.hash() as usize & (capacity - 1);
                while entries[at].len_and_id != 0 && entries[at].id_of(key).is_none() {
                    at = (at + 1) & (capacity - 1);
                }
                if entries[at].len_and_id != 0 {
                    repeated.get_or_insert(position);
                    continue;
                }
                entries[at] = Entry {
                    low: key.low,
                    high: key.high as u32,
                    len_and_id: (key.len() as u32) << 28 | id,
                };
            }
        }
    }

    /// Whether all tokens of this length are here.
    #[inline(always)]
    pub fn has_all_of(&self, len: usize) -> bool {
        len <= self.longest
    }

    /// The id of a key that may be here.
    #[inline(always)]
    pub fn find(&self, key: Key, hash: u64) -> Option<u32> {
        let mask = self.entries.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let entry = &self.entries[at];
            if let Some(id) = entry.id_of(key) {
                return Some(id);
            }
            if entry.len_and_id == 0 {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    /// Ask for the memory that `find` will need.
    #[inline(always)]
    pub fn fetch(&self, hash: u64) {
        fetch(&self.entries[hash as usize & (self.entries.len() - 1)]);
    }
}

/// A key and its id, its length in the upper bits of the id; or nothing.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C, align(16))]
struct Entry {
    low: u64,
    high: u32,
    len_and_id: u32,
}

impl Entry {
    const LONGEST: usize = 12;
    /// The greatest id.
    const MOST: u32 = (1 << 28) - 1;

    /// The id, if it is of this key.
    #[inline(always)]
    fn id_of(&self, key: Key) -> Option<u32> {
        let id = self.len_and_id ^ (key.len() as u32) << 28;
        let is_same = self.low == key.low && self.high == key.high as u32 && id <= Entry::MOST;
        is_same.then_some(id)
    }
}
