//! The ids of recent short pre-tokens. They are looked up first, and most pre-tokens are found.
//!
//! A pre-token's length, and whether it is one token or was merged, make no difference here. So one
//! branch decides most pre-tokens, and it is well predicted. The entries that a text uses are close
//! together in memory and not spread over the vocabulary: most of the cost of a lookup is waiting
//! for memory.

use std::hint::select_unpredictable;

use crate::huge::Huge;
use crate::vocabulary::rank_table::RankTable;
use crate::vocabulary::short_table::{Key, fetch};

/// Maximum number of ids in a slot.
pub const FEW: usize = 7;

/// Maximum number of ids in a slot that are not packed.
pub const PLAIN: usize = 4;

/// Bits of a packed id: seven are in the words of four.
const ID_BITS: usize = 18;

/// Maximum number of sets, whatever the size of the cache: they fill two huge pages. Twice as
/// many are no faster, and a fork's child copies them.
const MAX_SETS: usize = 1 << 16;

/// The bit of a slot that was made of an entry of the cache.
const IN_CACHE: u64 = 1 << 60;

/// A pre-token and its ids.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
pub struct Slot {
    low: u64,
    /// The upper half of the key. Its free upper four bits hold the number of ids, which is 0 in a
    /// free slot, and below it `IN_CACHE`.
    high: u64,
    /// The ids; more than `PLAIN` are packed in the bits of all words.
    ids: [u32; PLAIN],
}

impl Slot {
    /// Makes a slot; None if there are too many ids, or more than `PLAIN` and one is too great.
    pub fn new(key: Key, few: &[u32]) -> Option<Self> {
        let mut ids = [0; PLAIN];
        if let Some(plain) = ids.get_mut(..few.len()) {
            plain.copy_from_slice(few);
        } else if few.len() <= FEW && few.iter().all(|&id| id >> ID_BITS == 0) {
            let pack = |all: u128, &id: &u32| all << ID_BITS | id as u128;
            let all = few.iter().rev().fold(0, pack);
            ids = std::array::from_fn(|i| (all >> (32 * i)) as u32);
        } else {
            return None;
        }
        Some(Slot {
            low: key.low,
            high: key.high | (few.len() as u64) << 61,
            ids,
        })
    }

    /// Marks the slot as made of an entry of the cache.
    pub fn in_cache(mut self) -> Self {
        self.high |= IN_CACHE;
        self
    }

    /// Returns whether the cache should have an entry of the slot: it has several ids and none yet.
    pub fn should_be_cached(&self) -> bool {
        self.count() > 1 && self.high & IN_CACHE == 0
    }

    #[inline(always)]
    fn is_of(&self, key: Key) -> bool {
        (self.low ^ key.low) | (self.high ^ key.high) << 4 == 0
    }

    pub fn key(&self) -> Key {
        let (low, high) = (self.low, self.high << 4 >> 4);
        Key { low, high }
    }

    /// Returns the number of ids.
    #[inline(always)]
    pub fn count(&self) -> usize {
        (self.high >> 61) as usize
    }

    /// Returns the ids if they are not packed, followed by unused places.
    #[inline(always)]
    pub fn plain(&self) -> &[u32; PLAIN] {
        &self.ids
    }

    /// Returns the ids, followed by unused places.
    #[inline(always)]
    pub fn ids(&self) -> [u32; FEW] {
        if self.count() <= PLAIN {
            let [a, b, c, d] = self.ids;
            return [a, b, c, d, 0, 0, 0];
        }
        let join = |all: u128, &word: &u32| all << 32 | word as u128;
        let all = self.ids.iter().rev().fold(0, join);
        std::array::from_fn(|i| (all >> (ID_BITS * i)) as u32 & ((1 << ID_BITS) - 1))
    }
}

/// The two slots of a key: one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct Set([Slot; 2]);

/// A table of a fixed size. Each set keeps the two slots that were inserted last.
#[derive(Debug)]
pub struct Recent {
    sets: Huge<Set>,
}

impl Recent {
    /// Makes a table of at most `bytes` bytes, but at least one set. Without enough memory it has
    /// one set, instead of aborting the process.
    pub fn new(bytes: usize) -> Self {
        let sets = match bytes / size_of::<Set>() {
            0 => 1,
            sets => (1 << sets.ilog2()).min(MAX_SETS),
        };
        Recent {
            sets: Huge::try_filled(sets, Set::default())
                .unwrap_or_else(|| Huge::filled(1, Set::default())),
        }
    }

    /// Inserts the first tokens, the most frequent ones in most texts: in new text, looking them up
    /// in the vocabulary costs more.
    pub fn fill(&mut self, table: &RankTable) {
        for (key, id) in table.keys(self.sets.len() * 3 / 2) {
            if let Some(slot) = Slot::new(key, &[id]) {
                self.insert(slot, key.hash());
            }
        }
    }

    /// Makes the table one of this process alone.
    pub fn unshare(&mut self) {
        self.sets.unshare();
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.sets)
    }

    /// Returns the place of the set that `find` reads, by the hash of a key, and prefetches it.
    #[inline(always)]
    pub fn fetch(&self, hash: u64) -> usize {
        let place = hash as usize & (self.sets.len() - 1);
        fetch(self.sets.as_ptr().wrapping_add(place));
        place
    }

    /// Returns a function that returns the slot of a pre-token, by its key and place; None if it is
    /// not recent. The function has the address of the sets: read from `self` it would be read
    /// again after each write of ids.
    #[inline(always)]
    pub fn finder<'r>(&'r self) -> impl Fn(Key, usize) -> Option<&'r Slot> {
        let sets = &*self.sets;
        move |key, place| {
            let Set([newer, older]) = &sets[place];
            // The slot is selected without a branch, which would be unpredictable.
            let slot = select_unpredictable(older.is_of(key), older, newer);
            slot.is_of(key).then_some(slot)
        }
    }

    /// Returns the slot of a pre-token, by its key and its hash; None if it is not recent.
    #[inline(always)]
    pub fn find(&self, key: Key, hash: u64) -> Option<&Slot> {
        self.finder()(key, hash as usize & (self.sets.len() - 1))
    }

    /// Inserts a slot that was not found. Returns the older slot of its set, which is evicted.
    pub fn insert(&mut self, slot: Slot, hash: u64) -> Slot {
        let at = hash as usize & (self.sets.len() - 1);
        let Set(slots) = &mut self.sets[at];
        let [newer, older] = *slots;
        *slots = [slot, newer];
        older
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    #[test]
    fn found_ids_are_the_inserted_ones_and_memory_is_bounded() {
        let mut random = Rng::with_seed(20_261_121);
        for bytes in [0, 100_000, 4_000_000] {
            let mut recent = Recent::new(bytes);
            let mut found = 0;
            for _ in 0..if cfg!(miri) { 300 } else { 60_000 } {
                let len = 1 + random.usize(..15);
                let piece: Vec<u8> = (0..len).map(|_| random.usize(..3) as u8).collect();
                let key = Key::of(&piece, 0, len);
                // Ids of 32 bits are too great to be packed, those of 18 are not.
                let shift = key.hash() % 2 * 14;
                let ids: Vec<u32> = (0..=len as u32 % 8)
                    .map(|i| (key.hash() as u32 ^ i) >> shift)
                    .collect();
                match recent.find(key, key.hash()) {
                    Some(slot) => {
                        assert_eq!(slot.ids()[..slot.count()], ids, "{piece:?}");
                        found += 1;
                    }
                    None => {
                        if let Some(slot) = Slot::new(key, &ids) {
                            recent.insert(slot, key.hash());
                        }
                    }
                }
            }
            assert!(found > 0);
            assert!(recent.bytes() <= bytes.max(64));
        }
    }

    #[test]
    fn a_pre_token_without_a_key_is_never_found() {
        let recent = Recent::new(0);
        let text = [0; 40];
        for len in [16, 17, 40] {
            let key = Key::of(&text, 0, len);
            assert!(recent.find(key, key.hash()).is_none(), "{len}");
        }
    }
}
