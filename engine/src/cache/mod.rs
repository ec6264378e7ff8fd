//! The cache of pre-tokens and their ids: bounded, and used by one thread at a time.

pub mod lookup;
pub mod recent;
pub mod scratch;
mod segments;

use std::hint::select_unpredictable;

use crate::vocabulary::short_table::Key;

/// Number of entries of short keys in a set.
const WAYS: usize = 4;

/// Number of sets after the first insertion.
const FIRST_SETS: usize = 1 << 6;

/// Maximum number of slots of the long cache in one search. The hash function is public, so a text
/// can have many pieces with equal hashes.
const MAX_PROBES: usize = 16;

/// Number of slots of the long cache after the first insertion.
const FIRST_ENTRIES: usize = 1 << 10;

/// Maximum length of a cached piece, in bytes.
pub const MAX_PIECE_BYTES: usize = 255;

/// Maximum number of ids in an entry of a short key, which makes it one cache line.
pub const MAX_IDS: usize = 11;

/// A short piece and its ids.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Entry {
    key: Key,
    ids: [u32; MAX_IDS],
    count: u32,
}

impl Entry {
    /// Makes an entry; None if there are too many ids.
    pub fn new(key: Key, ids: &[u32]) -> Option<Self> {
        let mut entry = Entry {
            key,
            ids: [0; MAX_IDS],
            count: ids.len() as u32,
        };
        entry.ids.get_mut(..ids.len())?.copy_from_slice(ids);
        Some(entry)
    }

    pub fn ids(&self) -> &[u32] {
        &self.ids[..self.count as usize]
    }
}

/// The upper half of a key's hash, and the index of its entry; 0 for none.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    tag: u32,
    at: u32,
}

/// The places of a short key. Half a cache line, so that a miss costs no more.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
struct Set([Place; WAYS]);

/// A cache of the ids of pre-tokens that are not one token.
#[derive(Debug)]
pub struct Cache {
    sets: Vec<Set>,
    max_sets: usize,
    /// The entries in the order of insertion, after an unused one. The capacity is reserved at
    /// first use, as for `LongCache::arena`.
    entries: Vec<Entry>,
    pub long: LongCache,
}

impl Cache {
    /// Makes a cache of at most about `bytes` bytes. With 0 it caches nothing.
    pub fn new(bytes: usize) -> Self {
        let max_sets = match bytes / 2 / size_of::<[Entry; WAYS]>() {
            0..FIRST_SETS => 0,
            // The greatest power of two that fits.
            sets => 1 << sets.ilog2(),
        };
        // The old sets exist while they are copied, and the first entry is unused.
        let set_bytes = size_of::<[Entry; WAYS]>() + size_of::<Set>() * 2;
        Cache {
            sets: Vec::new(),
            max_sets,
            entries: Vec::new(),
            long: LongCache::new(bytes - max_sets * set_bytes),
        }
    }

    #[inline(always)]
    pub fn find_short(&self, key: Key, hash: u64) -> Option<&Entry> {
        let tag = (hash >> 32) as u32;
        let mask = self.sets.len().wrapping_sub(1);
        let Set(places) = self.sets.get(tag as usize & mask)?;
        // Selected without branches, which would be unpredictable. The unused entry has no key.
        let tagged = |place: &Place| select_unpredictable(place.tag == tag, place.at, 0);
        let at = places.iter().map(tagged).fold(0, u32::max);
        let entry = &self.entries[at as usize];
        (entry.key == key).then_some(entry)
    }

    /// Inserts a key that was not found. It may evict another.
    pub fn insert_short(&mut self, hash: u64, entry: Entry) {
        if self.entries.len() * 2 >= self.sets.len() * WAYS && self.sets.len() < self.max_sets {
            self.grow();
        }
        let tag = (hash >> 32) as u32;
        let mask = self.sets.len().wrapping_sub(1);
        let Some(Set(places)) = self.sets.get_mut(tag as usize & mask) else {
            return;
        };
        match places.iter_mut().find(|place| place.at == 0) {
            Some(place) => {
                let at = self.entries.len() as u32;
                *place = Place { tag, at };
                self.entries.push(entry);
            }
            None => {
                // The choice is as good as random: it depends on the first id of the new entry.
                let place = &mut places[entry.ids[0] as usize % WAYS];
                place.tag = tag;
                self.entries[place.at as usize] = entry;
            }
        }
    }

    fn grow(&mut self) {
        if self.sets.is_empty() {
            let most = 1 + self.max_sets * WAYS;
            if self.entries.try_reserve_exact(most).is_err() {
                // Out of memory: cache nothing, instead of aborting the process.
                self.max_sets = 0;
                return;
            }
            self.entries.push(Entry::default());
        }
        let sets = (self.sets.len() * 2).max(FIRST_SETS);
        let old = std::mem::replace(&mut self.sets, vec![Set::default(); sets]);
        for place in old.into_iter().flat_map(|Set(places)| places) {
            let Set(places) = &mut self.sets[place.tag as usize & (sets - 1)];
            // Places that share a set now shared one before.
            if let Some(free) = places.iter_mut().find(|place| place.at == 0) {
                *free = place;
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct LongSlot {
    /// The upper half of the hash, which also decides the slot.
    tag: u32,
    /// Start of the ids, and then the bytes, in the arena.
    at: u32,
    len: u8,
    ids: u8,
}

/// A hash table with open addressing over one arena. When it is full, all entries are dropped at
/// once, which costs less than tracking their use.
#[derive(Debug)]
pub struct LongCache {
    slots: Vec<LongSlot>,
    used: usize,
    max_slots: usize,
    /// The ids of each piece, and then its bytes, four per word. The capacity is reserved at first
    /// use: pages that are never written use no memory.
    arena: Vec<u32>,
    max_words: usize,
}

impl LongCache {
    fn new(most: usize) -> Self {
        // Slots use at most a quarter of the memory, including the old ones while they are copied.
        let max_slots = match most / 6 / size_of::<LongSlot>() {
            0..FIRST_ENTRIES => 0,
            slots => 1 << slots.ilog2(),
        };
        let max_words = if max_slots == 0 {
            0
        } else {
            most * 3 / 4 / size_of::<u32>()
        };
        LongCache {
            slots: Vec::new(),
            used: 0,
            max_slots,
            arena: Vec::new(),
            max_words,
        }
    }

    /// Returns the ids of a piece of 16 to `MAX_PIECE_BYTES` bytes, or of a shorter one with too
    /// many ids; None if it is not cached.
    pub fn find(&self, piece: &[u8], hash: u64) -> Option<&[u32]> {
        if self.slots.is_empty() {
            return None;
        }
        let tag = (hash >> 32) as u32;
        let mask = self.slots.len() - 1;
        for probe in 0..MAX_PROBES {
            let slot = &self.slots[(tag as usize + probe) & mask];
            if slot.len == 0 {
                return None;
            }
            if slot.tag == tag && slot.len as usize == piece.len() {
                let start = slot.at as usize;
                let bytes = start + slot.ids as usize;
                if same(piece, &self.arena[bytes..]) {
                    return Some(&self.arena[start..bytes]);
                }
            }
        }
        None
    }

    /// Inserts a piece that was not found, unless it is too long.
    pub fn insert(&mut self, piece: &[u8], hash: u64, ids: &[u32]) {
        let needed = ids.len() + piece.len().div_ceil(4);
        if piece.len() > MAX_PIECE_BYTES || needed > self.max_words {
            return;
        }
        if self.used * 2 >= self.slots.len() && self.slots.len() < self.max_slots {
            self.grow();
        }
        let full = self.arena.len() + needed > self.max_words;
        if full || self.used * 2 >= self.slots.len() {
            self.slots.fill(LongSlot::default());
            self.used = 0;
            self.arena.clear();
        }
        if self.arena.capacity() == 0 && self.arena.try_reserve_exact(self.max_words).is_err() {
            // Out of memory: cache nothing more, instead of aborting the process.
            self.max_words = 0;
            return;
        }
        let tag = (hash >> 32) as u32;
        let free = self.free_slot(tag);
        self.slots[free] = LongSlot {
            tag,
            at: self.arena.len() as u32,
            len: piece.len() as u8,
            ids: ids.len() as u8,
        };
        self.used += 1;
        self.arena.extend_from_slice(ids);
        self.arena.extend(words(piece));
    }

    /// Returns the free slot for a tag, or its first one, whose piece is evicted.
    fn free_slot(&self, tag: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut places = (0..MAX_PROBES).map(|probe| (tag as usize + probe) & mask);
        let free = places.find(|&at| self.slots[at].len == 0);
        free.unwrap_or(tag as usize & mask)
    }

    fn grow(&mut self) {
        let capacity = (self.slots.len() * 2).max(FIRST_ENTRIES);
        let old = std::mem::replace(&mut self.slots, vec![LongSlot::default(); capacity]);
        for slot in old.into_iter().filter(|slot| slot.len != 0) {
            let free = self.free_slot(slot.tag);
            self.slots[free] = slot;
        }
    }
}

/// Returns whether `stored` starts with the words of the piece.
fn same(piece: &[u8], stored: &[u32]) -> bool {
    let (fours, rest) = piece.as_chunks::<4>();
    let last = match piece.last_chunk() {
        // Copying fewer bytes costs more.
        Some(last) if !rest.is_empty() => u32::from_le_bytes(*last) >> (32 - 8 * rest.len()),
        _ => words(rest).next().unwrap_or(0),
    };
    fours
        .iter()
        .zip(stored)
        .all(|(four, &word)| u32::from_le_bytes(*four) == word)
        && (rest.is_empty() || stored[fours.len()] == last)
}

/// Returns the bytes as words of four, padded with zeros.
fn words(piece: &[u8]) -> impl Iterator<Item = u32> {
    piece.chunks(4).map(|chunk| {
        let mut four = [0; 4];
        four[..chunk.len()].copy_from_slice(chunk);
        u32::from_le_bytes(four)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::hash::hash;
    use fastrand::Rng;

    /// Ids derived from the piece, so that a wrong result is noticed.
    fn ids_of(piece: &[u8], count: usize) -> Vec<u32> {
        (0..count as u32)
            .map(|i| hash(piece) as u32 >> 1 ^ i)
            .collect()
    }

    #[test]
    fn found_ids_are_the_inserted_ones_and_memory_is_bounded() {
        let mut random = Rng::with_seed(7);
        for bytes in [0, 100_000, 300_000] {
            let mut cache = Cache::new(bytes);
            for round in 0..if cfg!(miri) { 200 } else { 30_000 } {
                let len = 1 + random.usize(..40);
                let piece: Vec<u8> = (0..len).map(|_| random.usize(..3) as u8).collect();
                // Some share a hash, as someone who knows the function can arrange.
                let long = hash(&piece) * u64::from(len & 3 > 0);
                let ids = ids_of(&piece, 1 + len % 9);
                match cache.long.find(&piece, long) {
                    Some(found) => assert_eq!(found, ids, "round {round}"),
                    None => cache.long.insert(&piece, long, &ids),
                }
                if len > 15 {
                    continue;
                }
                let key = Key::of(&piece, 0, len);
                let few = Entry::new(key, &ids_of(&piece, 1 + len % MAX_IDS)).expect("few");
                match cache.find_short(key, key.hash()) {
                    Some(found) => assert_eq!(found.ids, few.ids, "round {round}"),
                    None => cache.insert_short(key.hash(), few),
                }
            }
            let pieces = (16..99).map(|len| vec![9; len]);
            let known = pieces.filter(|piece| {
                cache.long.insert(piece, 0, &ids_of(piece, 1));
                cache.long.find(&[9; 16], 0).is_some()
            });
            assert!(known.count() <= MAX_PROBES, "the search has no bound");
            let long = &cache.long;
            let slots = long.slots.capacity() * size_of::<LongSlot>();
            let sets = cache.sets.capacity() * size_of::<Set>();
            let entries = cache.entries.capacity() * size_of::<Entry>();
            // Includes the old slots and sets of the last growth.
            let taken = entries + (sets + slots) * 3 / 2;
            assert!(taken + long.arena.capacity() * size_of::<u32>() <= bytes);
        }
    }
}
