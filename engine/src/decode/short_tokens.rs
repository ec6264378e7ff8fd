//! Short tokens by id, in slots of a fixed size, so that decoding is mostly one load and one store.

use crate::vocabulary::rank_table::RankTable;

/// Size of a slot in bytes. The last byte is the token's length.
pub const SLOT: usize = 16;

/// Maximum length of a token with a slot.
const LONGEST: usize = SLOT - 1;

/// A token and its length; the length 0 is no token.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
pub struct ShortToken {
    pub bytes: [u8; SLOT],
}

impl ShortToken {
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.bytes[LONGEST] as usize
    }
}

/// Slots by id, from 0, as far as the vocabulary is dense.
#[derive(Debug)]
pub struct ShortTokens(Box<[ShortToken]>);

impl ShortTokens {
    pub fn of(table: &RankTable) -> Self {
        // Bounds the memory by the number of tokens, whatever their ids are.
        let most = 2 * table.len();
        let count = table.max_id().map_or(0, |id| (id as usize + 1).min(most));
        let mut slots = vec![ShortToken::default(); count].into_boxed_slice();
        for (token, id) in table.iter() {
            if let Some(slot) = slots.get_mut(id as usize)
                && token.len() <= LONGEST
            {
                slot.bytes[..token.len()].copy_from_slice(token);
                slot.bytes[LONGEST] = token.len() as u8;
            }
        }
        ShortTokens(slots)
    }

    /// Returns the token; None if the id is unknown or its token is long.
    #[inline(always)]
    pub fn get(&self, id: u32) -> Option<&ShortToken> {
        let slot = self.0.get(id as usize)?;
        (slot.len() != 0).then_some(slot)
    }
}
