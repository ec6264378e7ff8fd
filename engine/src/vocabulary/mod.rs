//! A vocabulary made ready: ranks of byte strings, and which pre-tokens are one token.

pub mod fingerprint;
pub mod hash;
mod index;
pub mod rank_table;
pub mod short_table;
pub mod special;

use std::sync::Arc;

use crate::merge::initial::{Characters, Opening};
use crate::merge::{Merger, NO_RANK};
use crate::vocabulary::rank_table::RankTable;
use crate::vocabulary::short_table::{Key, LONGEST, ShortTable};

#[derive(Debug)]
pub struct Vocabulary {
    table: Arc<RankTable>,
    /// Tokens of at most 15 bytes.
    short: ShortTable,
    /// Ranks of all bytes.
    bytes: Box<[u32; 256]>,
    /// With what merging begins.
    characters: Characters,
    /// Ranks of all strings of two bytes.
    pairs: Box<[u32]>,
    /// The longest token that begins with each two bytes, up to 255.
    longest: Box<[u8]>,
    /// Bits by hash: a key whose bit is clear is no token of at most 15 bytes. Most strings
    /// that merging asks for are none, and this is small enough to stay in the cache.
    filter: Box<[u64]>,
}

impl Vocabulary {
    pub fn new(table: Arc<RankTable>) -> Self {
        let pairs = pair_ranks(&table);
        let (short, filter) = short_table(&table);
        Vocabulary {
            short,
            bytes: byte_ranks(&table),
            characters: Characters::of(&table, &pairs),
            pairs,
            longest: longest_by_start(&table),
            filter,
            table,
        }
    }

    pub fn table(&self) -> &RankTable {
        &self.table
    }

    /// The rank of the `len` bytes from `start`, or `NO_RANK`.
    #[inline]
    pub fn rank(&self, text: &[u8], start: usize, len: usize) -> u32 {
        if len == 2 {
            return self.pairs[(text[start] as usize) << 8 | text[start + 1] as usize];
        }
        if len > LONGEST {
            return self.long_rank(text, start, len);
        }
        let key = Key::of(text, start, len);
        let hash = key.hash();
        let (word, bit) = filter_place(hash, self.filter.len());
        if self.filter[word] & bit == 0 {
            return NO_RANK;
        }
        self.short.find(key, hash).unwrap_or(NO_RANK)
    }

    #[inline(never)]
    fn long_rank(&self, text: &[u8], start: usize, len: usize) -> u32 {
        if len > self.longest_from(text, start) {
            return NO_RANK;
        }
        self.table
            .id_of(&text[start..start + len])
            .unwrap_or(NO_RANK)
    }

    /// With what merging of the text may begin at `start`: parts, and nothing between them.
    #[inline(always)]
    pub fn opening(&self, text: &[u8], start: usize) -> Opening {
        self.characters.opening(&self.pairs, text, start)
    }

    /// The id of a part of an opening: a byte, two, or a character.
    #[inline(always)]
    pub fn part_id(&self, text: &[u8], start: usize, len: usize) -> u32 {
        match len {
            1 => self.bytes[text[start] as usize],
            2 => self.rank(text, start, len),
            _ => self.characters.id(text, start),
        }
    }

    /// No token that begins as `text[start..]` does, by two bytes at least, is longer.
    #[inline(always)]
    fn longest_from(&self, text: &[u8], start: usize) -> usize {
        match text.get(start..start + 2) {
            Some(&[first, second]) => match self.longest[(first as usize) << 8 | second as usize] {
                u8::MAX => usize::MAX,
                longest => longest as usize,
            },
            _ => 1,
        }
    }

    /// The id of a pre-token of at most 15 bytes that is one token.
    #[inline(always)]
    pub fn whole_short(&self, key: Key, hash: u64) -> Option<u32> {
        self.short.find(key, hash)
    }

    /// The id of a longer pre-token that is one token.
    pub fn whole_long(&self, piece: &[u8]) -> Option<u32> {
        if piece.len() > self.longest_from(piece, 0) {
            return None;
        }
        self.table.id_of(piece)
    }

    /// Ids of the tokens that merging their own bytes does not give, in id order: they are given
    /// for a whole pre-token alone.
    pub fn unreachable_ids(&self) -> Vec<u32> {
        let mut merger = Merger::default();
        let mut merges_to = |token: &[u8], id| merger.merge(self, token) == [id];
        let tokens = self.table.iter().filter(|(token, _)| token.len() > 1);
        tokens
            .filter(|&(token, id)| !merges_to(token, id))
            .map(|(_, id)| id)
            .collect()
    }
}

/// The tokens of at most 15 bytes, and their filter: sixteen bits or more for each token.
fn short_table(table: &RankTable) -> (ShortTable, Box<[u64]>) {
    let tokens = table.iter().filter(|(token, _)| token.len() <= LONGEST);
    let mut short = ShortTable::with_room(tokens.clone().map(|(token, id)| (token.len(), id)));
    let words = (table.len() / 4).next_power_of_two();
    let mut filter = vec![0; words].into_boxed_slice();
    for (token, id) in tokens {
        let key = Key::of(token, 0, token.len());
        let hash = key.hash();
        short.insert(key, hash, id);
        let (word, bit) = filter_place(hash, words);
        filter[word] |= bit;
    }
    (short, filter)
}

fn byte_ranks(table: &RankTable) -> Box<[u32; 256]> {
    let rank = |byte| table.id_of(&[byte]).unwrap_or(NO_RANK);
    Box::new(std::array::from_fn(|byte| rank(byte as u8)))
}

fn pair_ranks(table: &RankTable) -> Box<[u32]> {
    let mut pairs = vec![NO_RANK; 1 << 16].into_boxed_slice();
    for (token, id) in table.iter() {
        if let &[first, second] = token {
            pairs[(first as usize) << 8 | second as usize] = id;
        }
    }
    pairs
}

fn longest_by_start(table: &RankTable) -> Box<[u8]> {
    let mut longest = vec![1; 1 << 16].into_boxed_slice();
    for (token, _) in table.iter() {
        if let &[first, second, ..] = token {
            let entry: &mut u8 = &mut longest[(first as usize) << 8 | second as usize];
            *entry = (*entry).max(u8::try_from(token.len()).unwrap_or(u8::MAX));
        }
    }
    longest
}

#[inline(always)]
fn filter_place(hash: u64, words: usize) -> (usize, u64) {
    ((hash >> 32) as usize & (words - 1), 1 << (hash >> 58))
}
