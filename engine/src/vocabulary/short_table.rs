//! Keys of at most 15 bytes, and a hash table for most of them. Most lookups read one cache line.

use crate::huge::Huge;
use crate::vocabulary::hash::{K0, K1, fold};
use crate::vocabulary::regions::Regions;

/// Maximum length in bytes of a string with a key.
pub const LONGEST: usize = 15;

/// Up to 15 bytes, padded with zeros, with their number in the last byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Key {
    pub low: u64,
    /// The upper four bits are free.
    pub high: u64,
}

/// By length: the masks of a string's bytes in the two halves of 16 bytes, and what the upper half
/// has besides. A key of length 0, which stands for any other length, has a bit set in the string.
const MASKS: [[u64; 3]; LONGEST + 2] = {
    let mut masks = [[0, 0, 1]; LONGEST + 2];
    let mut len = 1;
    while len <= LONGEST {
        let mask: u128 = (1 << (8 * len)) - 1;
        masks[len] = [mask as u64, (mask >> 64) as u64, (len as u64) << 56];
        len += 1;
    }
    masks
};

impl Key {
    /// Makes the key of the `len` bytes from `start`. For 0 or more than 15 bytes it is a key that
    /// no string has.
    #[inline(always)]
    pub fn of(text: &[u8], start: usize, len: usize) -> Self {
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
        let [low_mask, high_mask, more] = MASKS[len.min(LONGEST + 1)];
        Key {
            low: low & low_mask,
            high: high & high_mask | more,
        }
    }

    #[inline(always)]
    pub fn hash(self) -> u64 {
        fold(self.low ^ K0, self.high ^ K1)
    }

    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        (self.high >> 56) as usize
    }

    /// Returns the bytes of the string, followed by other bytes.
    pub fn bytes(self) -> [u8; 16] {
        ((self.high as u128) << 64 | self.low as u128).to_le_bytes()
    }
}

/// Returns the first bytes of a string that has no key, as a key has them.
#[inline(always)]
pub fn first_bytes(long: &[u8]) -> u64 {
    long.first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Prefetches memory into the processor's cache.
#[inline(always)]
pub fn fetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of every x86-64, and a prefetch is a hint that never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// An immutable hash table from keys of at most 12 bytes to ids: open addressing, at most three
/// quarters full.
///
/// Lookups mostly wait for memory, so the table is small and full. Longer tokens are few. Without
/// them an entry takes half the space. Tokens that begin alike share a region, so that text of one
/// script reads few lines of the table.
#[derive(Debug)]
pub struct ShortTable {
    entries: Huge<Entry>,
    /// Probing may go on into the next region.
    regions: Regions<REGIONS>,
    /// Maximum length of a key in the table; 0 if the ids do not fit.
    longest: usize,
}

/// Number of regions: one for each second byte of a string and upper three bits of its first byte.
pub const REGIONS: usize = 1 << 11;

/// Returns the region of a string, by its first bytes.
#[inline(always)]
pub fn region(first_bytes: u64) -> usize {
    (first_bytes >> 5) as usize & (REGIONS - 1)
}

impl ShortTable {
    /// Makes a table of the keys of tokens and their ids. The first tokens are found fastest. Also
    /// returns the first position that repeats an earlier token.
    pub fn of(tokens: impl Iterator<Item = (Key, u32)> + Clone) -> (Self, Option<usize>) {
        let fits = tokens.clone().all(|(_, id)| id <= Entry::MOST);
        let longest = if fits { Entry::LONGEST } else { 0 };
        let tokens = tokens.enumerate();
        let tokens = tokens.filter(|(_, (key, _))| (1..=longest).contains(&key.len()));
        let mut counts = [0u32; REGIONS];
        for (_, (key, _)) in tokens.clone() {
            counts[region(key.low)] += 1;
        }
        let sizes = counts.map(|count| (count * 4).div_ceil(3).max(1));
        let (regions, places) = Regions::of(sizes);
        // A table of almost a huge page, which cl100k_base has, is in one.
        let capacity = places.next_multiple_of(1 << 12);
        let mut table = ShortTable {
            entries: Huge::filled(capacity, Entry::default()),
            regions,
            longest,
        };
        let mut repeated = None;
        for (position, (key, id)) in tokens {
            let at = table.probe(key, key.hash());
            if table.entries[at].len_and_id != 0 {
                repeated.get_or_insert(position);
                continue;
            }
            table.entries[at] = Entry {
                low: key.low,
                high: key.high as u32,
                len_and_id: (key.len() as u32) << 28 | id,
            };
        }
        (table, repeated)
    }

    /// Returns whether the table has all tokens of this length.
    #[inline(always)]
    pub fn has_all_of(&self, len: usize) -> bool {
        len <= self.longest
    }

    /// Returns the number of places.
    pub fn places(&self) -> usize {
        self.entries.len()
    }

    /// Returns where probing for a string begins, by its first bytes and its hash.
    #[inline(always)]
    pub fn place(&self, first_bytes: u64, hash: u64) -> usize {
        self.regions.place(region(first_bytes), (hash >> 32) as u32)
    }

    /// Returns the place of a key, or the free one for it.
    #[inline(always)]
    fn probe(&self, key: Key, hash: u64) -> usize {
        let mut at = self.place(key.low, hash);
        loop {
            let entry = &self.entries[at];
            if entry.len_and_id == 0 || entry.id_of(key).is_some() {
                return at;
            }
            at = if at + 1 == self.places() { 0 } else { at + 1 };
        }
    }

    /// Returns the id of a key; None if the table does not have it.
    #[inline(always)]
    pub fn find(&self, key: Key, hash: u64) -> Option<u32> {
        self.entries[self.probe(key, hash)].id_of(key)
    }

    /// Prefetches the memory that `find` reads. Returns its place.
    #[inline(always)]
    pub fn fetch(&self, key: Key, hash: u64) -> usize {
        let place = self.place(key.low, hash);
        fetch(&self.entries[place]);
        place
    }
}

/// A key and its id, with the key's length in the upper four bits of the id. All zeros is a free
/// entry.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C, align(16))]
struct Entry {
    low: u64,
    high: u32,
    len_and_id: u32,
}

impl Entry {
    const LONGEST: usize = 12;
    /// The greatest id that fits.
    const MOST: u32 = (1 << 28) - 1;

    /// Returns the id if the entry has this key.
    #[inline(always)]
    fn id_of(&self, key: Key) -> Option<u32> {
        let id = self.len_and_id ^ (key.len() as u32) << 28;
        let is_same = self.low == key.low && self.high == key.high as u32 && id <= Entry::MOST;
        is_same.then_some(id)
    }
}
