//! Hash index of long tokens: open addressing, with what a comparison needs in one place.

use crate::vocabulary::hash::hash;
use crate::vocabulary::rank_table::Tokens;
use crate::vocabulary::regions::Regions;
use crate::vocabulary::short_table::{REGIONS, first_bytes, region};

/// An index over `Tokens`, which it does not own. Tokens that begin alike share a region.
#[derive(Debug)]
pub struct TokenIndex {
    slots: Vec<Slot>,
    regions: Regions<REGIONS>,
}

/// A token: a part of its hash, its place in the bytes of all tokens, and its id. The length of a
/// free slot is 0.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    tag: u32,
    start: u32,
    len: u32,
    id: u32,
}

impl TokenIndex {
    /// Indexes the tokens at `positions`. Also returns the first position that repeats an earlier
    /// token.
    pub fn of(tokens: &Tokens, ids: &[u32], positions: &[usize]) -> (Self, Option<usize>) {
        let mut counts = [0u32; REGIONS];
        for &position in positions {
            counts[region(first_bytes(tokens.get(position)))] += 1;
        }
        let (regions, places) = Regions::of(counts.map(|count| (count * 2).max(1)));
        let slots = vec![Slot::default(); places];
        let mut index = TokenIndex { slots, regions };
        let mut repeated = None;
        for &position in positions {
            let token = tokens.get(position);
            let hash = hash(token);
            match index.probe(token, hash, tokens) {
                Ok(_) => {
                    repeated.get_or_insert(position);
                }
                Err(free) => {
                    index.slots[free] = Slot {
                        tag: hash as u32,
                        start: tokens.start(position) as u32,
                        len: token.len() as u32,
                        id: ids[position],
                    };
                }
            }
        }
        (index, repeated)
    }

    /// Returns the id of the token with this `hash`.
    pub fn find(&self, token: &[u8], hash: u64, tokens: &Tokens) -> Option<u32> {
        self.probe(token, hash, tokens).ok()
    }

    /// Returns the id of the token, or the free slot for it.
    fn probe(&self, token: &[u8], hash: u64, tokens: &Tokens) -> Result<u32, usize> {
        let region = region(first_bytes(token));
        let mut at = self.regions.place(region, (hash >> 32) as u32);
        loop {
            let slot = self.slots[at];
            if slot.len == 0 {
                return Err(at);
            }
            if slot.tag == hash as u32 && tokens.bytes(slot.start, slot.len) == token {
                return Ok(slot.id);
            }
            // Probing may go on into the next region.
            at += 1;
            if at == self.slots.len() {
                at = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::vocabulary::rank_table::RankTable;

    #[test]
    fn long_tokens_that_begin_alike_are_found_and_others_are_not() {
        // They are in the last region, so that probing may go on at the first one.
        let tokens: Vec<_> = (0..128u128).map(|i| (!(i << 64)).to_le_bytes()).collect();
        for count in 1..tokens.len() {
            let items = tokens.iter().map(|token| token.to_vec()).zip(0..);
            let table = RankTable::from_items(items.take(count)).expect("no duplicates");
            for (token, id) in tokens.iter().zip(0..) {
                let expected = Some(id).filter(|&id| (id as usize) < count);
                assert_eq!(table.id_of(token), expected, "{token:?}");
            }
        }
    }
}
