//! Joins the bytes of tokens. Most tokens are one copy of a fixed size.

pub mod short_tokens;

use crate::decode::short_tokens::{SLOT, ShortTokens};

/// Number of tokens for which capacity is reserved at once.
const BATCH: usize = 64;

pub struct Joined {
    /// The bytes, followed by unused capacity from `len` on.
    bytes: Vec<u8>,
    len: usize,
}

impl Joined {
    /// Reserves capacity for the usual length of `count` tokens.
    pub fn for_tokens(count: usize) -> Self {
        Joined {
            bytes: vec![0; 5 * count + BATCH * SLOT],
            len: 0,
        }
    }

    /// Adds the tokens of the leading ids, up to the first that is not short. Returns the number
    /// added.
    pub fn push_short(&mut self, known: &ShortTokens, ids: &[u32]) -> usize {
        let mut done = 0;
        for batch in ids.chunks(BATCH) {
            self.reserve(BATCH * SLOT);
            let bytes = &mut self.bytes[..];
            let mut len = self.len;
            let short = batch.iter().map_while(|&id| known.get(id));
            let mut count = 0;
            for token in short {
                bytes[len..len + SLOT].copy_from_slice(&token.bytes);
                len += token.len();
                count += 1;
            }
            self.len = len;
            done += count;
            if count < batch.len() {
                break;
            }
        }
        done
    }

    pub fn push(&mut self, token: &[u8]) {
        self.reserve(token.len());
        self.bytes[self.len..self.len + token.len()].copy_from_slice(token);
        self.len += token.len();
    }

    fn reserve(&mut self, more: usize) {
        let needed = self.len + more;
        if needed > self.bytes.len() {
            self.bytes.resize(needed * 3 / 2, 0);
        }
    }

    pub fn into_vec(mut self) -> Vec<u8> {
        self.bytes.truncate(self.len);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::rank_table::RankTable;

    #[test]
    fn tokens_of_every_length_are_joined_at_every_capacity() {
        let tokens: Vec<Vec<u8>> = (0..40).map(|i| vec![i as u8; i + 1]).collect();
        let far = b"far away".to_vec();
        let items = tokens.iter().zip(0..).chain([(&far, 4_000_000)]);
        let table = RankTable::from_items(items).expect("no duplicates");
        let short = ShortTokens::of(&table);
        assert!(short.get(40).is_none(), "an unknown id");
        assert!(short.get(4_000_000).is_none(), "so large an id has no slot");
        // The longest short token first, so that the capacity is used up within a batch.
        let ids: Vec<u32> = [14; 500].into_iter().chain(0..40).collect();
        let mut joined = Joined::for_tokens(1);
        let at = joined.push_short(&short, &ids);
        assert_eq!(at, 515);
        for &id in &ids[at..] {
            joined.push(&tokens[id as usize]);
        }
        let expected: Vec<u8> = ids
            .iter()
            .flat_map(|&id| tokens[id as usize].clone())
            .collect();
        assert_eq!(joined.into_vec(), expected);
    }
}
