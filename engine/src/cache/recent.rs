//! The ids of recent short pre-tokens: looked up first, and mostly found.
//!
//! Whether a pre-token is a token or was merged from several, and how long it is, makes no
//! difference here, so that one branch decides most pre-tokens, and always the same way. And
//! what a text uses lies close together, not spread over all of the vocabulary: waiting for
//! memory is most of what a lookup costs.

use std::hint::select_unpredictable;

use crate::vocabulary::short_table::{Key, fetch};

/// The most ids that are kept of a pre-token.
pub const FEW: usize = 4;

/// Sets of a table when it is first needed.
const FIRST_SETS: usize = 1 << 9;

/// Sets of the largest table, however large the cache may be: a hit outside the processor's own
/// cache costs as much as a lookup in the vocabulary.
const MOST_SETS: usize = 1 << 16;

/// A pre-token and its ids.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
pub struct Slot {
    low: u64,
    /// The upper half of the key, and in its free upper four bits the number of ids: 0 in a slot
    /// that is free.
    high: u64,
    ids: [u32; FEW],
}

impl Slot {
    /// None for too many ids.
    pub fn new(key: Key, few: &[u32]) -> Option<Self> {
        let mut ids = [0; FEW];
        ids.get_mut(..few.len())?.copy_from_slice(few);
        Some(Slot {
            low: key.low(),
            high: key.high() | (few.len() as u64) << 60,
            ids,
        })
    }

    #[inline(always)]
    fn is_of(&self, key: Key) -> bool {
        (self.low ^ key.low()) | (self.high ^ key.high()) << 4 == 0
    }

    pub fn key(&self) -> Key {
        Key::from_halves(self.low, self.high << 4 >> 4)
    }

    /// How many of the ids count.
    #[inline(always)]
    pub fn count(&self) -> usize {
        (self.high >> 60) as usize
    }

    /// The ids, and anything after them.
    #[inline(always)]
    pub fn ids(&self) -> &[u32; FEW] {
        &self.ids
    }
}

/// The two places of a key: one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct Set([Slot; 2]);

/// Bounded; what was used last stays.
#[derive(Debug)]
pub struct Recent {
    sets: Vec<Set>,
    used: usize,
    most_sets: usize,
}

impl Recent {
    /// A table that never takes more than about `bytes`; 0 for one that remembers nothing.
    pub fn new(bytes: usize) -> Self {
        let most_sets = match bytes / size_of::<Set>() {
            0..FIRST_SETS => 0,
            sets => (1 << sets.ilog2()).min(MOST_SETS),
        };
        Recent {
            sets: vec![Set::default()],
            used: 0,
            most_sets,
        }
    }

    /// How many bytes it takes at most.
    pub fn most_bytes(&self) -> usize {
        self.most_sets * size_of::<Set>()
    }

    /// Prefetch what `find` will read.
    #[inline(always)]
    pub fn fetch(&self, hash: u64) {
        fetch(&self.sets[hash as usize & (self.sets.len() - 1)]);
    }

    /// What the pre-token became, if that is known.
    #[inline(always)]
    pub fn find(&self, key: Key, hash: u64) -> Option<&Slot> {
        let Set([newer, older]) = &self.sets[hash as usize & (self.sets.len() - 1)];
        // Which of the two is nothing that could be guessed: one is taken without a branch.
        let slot = select_unpredictable(older.is_of(key), older, newer);
        slot.is_of(key).then_some(slot)
    }

    /// Insert a slot that was not found; returns the older slot of its set, which is evicted.
    pub fn insert(&mut self, slot: Slot, hash: u64) -> Slot {
        if self.used >= self.sets.len() && self.sets.len() < self.most_sets {
            self.grow();
        }
        if self.most_sets == 0 {
            return slot;
        }
        self.put(slot, hash)
    }

    fn put(&mut self, slot: Slot, hash: u64) -> Slot {
        let at = hash as usize & (self.sets.len() - 1);
        let Set(slots) = &mut self.sets[at];
        let [newer, older] = *slots;
        self.used += (older.count() == 0) as usize;
        *slots = [slot, newer];
        older
    }

    /// Memory for the largest table is reserved at first use, and the table grows within it: to
    /// write to new memory costs more than to look something up.
    #[cold]
    fn grow(&mut self) {
        let old = self.sets.len();
        if self.sets.try_reserve_exact(self.most_sets - old).is_err() {
            // Out of memory: keep the table as it is, rather than end the process.
            self.most_sets = old;
            return;
        }
        self.sets.resize((old * 2).max(FIRST_SETS), Set::default());
        self.used = 0;
        for i in 0..old {
            // To where they are, or to what is new. The older one first, as it was.
            let Set([newer, older]) = std::mem::take(&mut self.sets[i]);
            for slot in [older, newer].into_iter().filter(|slot| slot.count() > 0) {
                self.put(slot, slot.key().hash());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn what_is_found_is_what_was_put_in_and_memory_is_bounded() {
        let mut random = Random::new(20_261_121);
        for bytes in [0, 100_000, 400_000] {
            let mut recent = Recent::new(bytes);
            let mut found = 0;
            for _ in 0..if cfg!(miri) { 300 } else { 60_000 } {
                let len = 1 + random.below(15);
                let piece: Vec<u8> = (0..len).map(|_| random.below(3) as u8).collect();
                let key = Key::of(&piece, 0, len);
                let ids: Vec<u32> = (0..=len as u32 % 5)
                    .map(|i| key.hash() as u32 ^ i)
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
            assert_eq!(found > 0, bytes > 0);
            assert!(recent.sets.capacity() * size_of::<Set>() <= bytes.max(64));
        }
    }

    #[test]
    fn a_pre_token_without_a_key_is_never_found() {
        let recent = Recent::new(0);
        let text = [0; 40];
        for len in [16, 17, 40] {
            let key = Key::or_none(&text, 0, len);
            assert!(recent.find(key, key.hash()).is_none(), "{len}");
        }
    }
}
