//! Hash index from a long token's bytes to its position: open addressing over positions.

use crate::vocabulary::hash::hash;
use crate::vocabulary::rank_table::Tokens;

/// An index over `Tokens`, which it does not own.
#[derive(Debug)]
pub struct TokenIndex {
    /// The upper half of the hash and, in the lower half, the position + 1. 0 is a free slot.
    slots: Vec<u64>,
}

impl TokenIndex {
    /// Indexes the tokens at `positions`. Also returns the first position that repeats an earlier
    /// token.
    pub fn of(tokens: &Tokens, positions: &[usize]) -> (Self, Option<usize>) {
        let capacity = (positions.len() * 2).next_power_of_two().max(2);
        let mut index = TokenIndex {
            slots: vec![0; capacity],
        };
        let mut repeated = None;
        for &position in positions {
            let token = tokens.get(position);
            let hash = hash(token);
            match index.probe(token, hash, tokens) {
                Ok(_) => {
                    repeated.get_or_insert(position);
                }
                Err(free) => {
                    index.slots[free] = tag(hash) | (position as u64 + 1);
                }
            }
        }
        (index, repeated)
    }

    /// Returns the position of the token with this `hash`.
    pub fn find(&self, token: &[u8], hash: u64, tokens: &Tokens) -> Option<usize> {
        self.probe(token, hash, tokens).ok()
    }

    /// Returns the position of the token, or the free slot for it.
    fn probe(&self, token: &[u8], hash: u64, tokens: &Tokens) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Err(at);
            }
            let position = (slot as u32 - 1) as usize;
            if tag(slot) == tag(hash) && tokens.get(position) == token {
                return Ok(position);
            }
            at = (at + 1) & mask;
        }
    }
}

/// Returns the part of a hash, or of a slot, that is compared first.
fn tag(hash: u64) -> u64 {
    hash & 0xffff_ffff << 32
}
