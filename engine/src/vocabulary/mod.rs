//! A vocabulary prepared for encoding: ranks of byte strings, and lookup of pre-tokens that are one
//! token.

pub mod fingerprint;
pub mod hash;
mod index;
pub mod lengths;
pub mod rank_table;
pub mod short_table;
pub mod special;

use std::sync::Arc;

use crate::merge::initial::{Characters, Opening};
use crate::merge::segments::Crossings;
use crate::merge::{Merger, NO_RANK};
use crate::output::Sink;
use crate::vocabulary::hash::hash;
use crate::vocabulary::rank_table::RankTable;
use crate::vocabulary::short_table::{Key, LONGEST};

#[derive(Debug)]
pub struct Vocabulary {
    table: Arc<RankTable>,
    /// Ranks of all single bytes.
    bytes: Box<[u32; 256]>,
    /// The initial parts for merging.
    characters: Characters,
    crossings: Crossings,
    /// Ranks of all strings of two bytes.
    pairs: Box<[u32]>,
    /// A Bloom filter of all tokens. Most strings that merging looks up are not tokens, and the
    /// filter is small enough to stay in the processor's cache.
    filter: Box<[u64]>,
}

impl Vocabulary {
    pub fn new(table: Arc<RankTable>) -> Self {
        let pairs = pair_ranks(&table);
        let wide: Vec<(&[u8], u32)> = table.wide().collect();
        Vocabulary {
            bytes: byte_ranks(&table),
            characters: Characters::of(&table, &wide, &pairs),
            crossings: Crossings::of(&wide, &pairs),
            pairs,
            filter: filter(&table),
            table,
        }
    }

    pub fn table(&self) -> &RankTable {
        &self.table
    }

    /// Returns the rank of the `len` bytes from `start`; `NO_RANK` if they are no token.
    #[inline(always)]
    pub fn rank(&self, text: &[u8], start: usize, len: usize) -> u32 {
        if len == 2 {
            return self.pairs[(text[start] as usize) << 8 | text[start + 1] as usize];
        }
        if len > LONGEST {
            let token = &text[start..start + len];
            return self.whole_long(token, hash(token)).unwrap_or(NO_RANK);
        }
        let key = Key::of(text, start, len);
        self.whole_short(key, key.hash()).unwrap_or(NO_RANK)
    }

    /// Returns the ranks of a new part joined with the part before it and with the part after it:
    /// `text[first..end]` and `text[start..last]`. The two cache misses overlap.
    #[inline]
    pub fn ranks(&self, text: &[u8], [first, start, end, last]: [usize; 4]) -> [u32; 2] {
        let pairs = [(first, end - first), (start, last - start)];
        if pairs.iter().any(|&(_, len)| len > LONGEST) {
            return pairs.map(|(start, len)| self.rank(text, start, len));
        }
        let keys = pairs.map(|(start, len)| Key::of(text, start, len));
        let hashes = keys.map(Key::hash);
        let maybe = hashes.map(|hash| self.fetch(hash));
        std::array::from_fn(|i| match maybe[i] {
            true => self.find_short(keys[i], hashes[i]).unwrap_or(NO_RANK),
            false => NO_RANK,
        })
    }

    /// Returns the initial parts of the text at `start`, which merging may begin with.
    #[inline(always)]
    pub fn opening(&self, text: &[u8], start: usize) -> Opening {
        self.characters.opening(&self.pairs, text, start)
    }

    /// Returns the id of an initial part: a byte, two bytes or a character.
    #[inline(always)]
    pub fn part_id(&self, text: &[u8], start: usize, len: usize) -> u32 {
        match len {
            1 => self.bytes[text[start] as usize],
            2 => self.rank(text, start, len),
            _ => self.characters.id(text, start),
        }
    }

    /// Where tokens may cross from one character to the next.
    pub fn crossings(&self) -> &Crossings {
        &self.crossings
    }

    /// Passes the tokens that the bytes of one character of at most three bytes merge to.
    #[inline(always)]
    pub fn push_character<S: Sink>(&self, bytes: &[u8], point: u32, sink: &mut S) {
        let id = |byte: u8| self.bytes[byte as usize];
        match *bytes {
            [_, _, _] if self.crossings.is_one_token(point) => {
                sink.push(self.characters.rank_of(point));
            }
            [first, second, third] => {
                let left = self.rank(bytes, 0, 2);
                let right = self.rank(bytes, 1, 2);
                if left == NO_RANK && right == NO_RANK {
                    sink.extend(&[id(first), id(second), id(third)]);
                } else if left <= right {
                    sink.extend(&[left, id(third)]);
                } else {
                    sink.extend(&[id(first), right]);
                }
            }
            [_, _] if self.rank(bytes, 0, 2) != NO_RANK => sink.push(self.rank(bytes, 0, 2)),
            _ => bytes.iter().for_each(|&byte| sink.push(id(byte))),
        }
    }

    /// Returns the id of a pre-token of at most 15 bytes that is one token; None if it is not.
    #[inline(always)]
    pub fn whole_short(&self, key: Key, hash: u64) -> Option<u32> {
        let maybe = self.fetch(hash).then_some(key);
        maybe.and_then(|key| self.find_short(key, hash))
    }

    #[inline(always)]
    pub fn find_short(&self, key: Key, hash: u64) -> Option<u32> {
        if self.table.short().has_all_of(key.len()) {
            return self.table.short().find(key, hash);
        }
        self.table.id_of(&key.bytes()[..key.len()])
    }

    /// Returns whether a key of this hash may be a token, and prefetches the memory that `find_short`
    /// reads. It does not wait for the filter: most keys of new text are tokens.
    #[inline(always)]
    pub fn fetch(&self, hash: u64) -> bool {
        self.table.short().fetch(hash);
        self.may_have(hash)
    }

    /// Returns whether a key of this hash may be a token.
    #[inline(always)]
    fn may_have(&self, hash: u64) -> bool {
        let (word, bits) = filter_place(hash, self.filter.len());
        self.filter[word] & bits == bits
    }

    /// Returns the id of a longer pre-token that is one token, by its `hash`; None if it is
    /// not.
    pub fn whole_long(&self, piece: &[u8], hash: u64) -> Option<u32> {
        let maybe = self.may_have(hash).then_some(piece);
        maybe.and_then(|piece| self.table.id_of_long(piece, hash))
    }

    /// Returns the ids of tokens that merging their own bytes does not produce, in id order. They
    /// are produced only for a whole pre-token.
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

/// Makes the filter of all tokens: at least eight bits per token, two of which it sets.
fn filter(table: &RankTable) -> Box<[u64]> {
    let words = (table.len() / 8).next_power_of_two();
    let mut filter = vec![0; words].into_boxed_slice();
    for hash in table.hashes() {
        let (word, bits) = filter_place(hash, words);
        filter[word] |= bits;
    }
    filter
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

/// Returns the word of a key in the filter, and its two bits there.
#[inline(always)]
fn filter_place(hash: u64, words: usize) -> (usize, u64) {
    let bits = 1 << (hash >> 58) | 1 << (hash >> 52 & 63);
    ((hash >> 32) as usize & (words - 1), bits)
}
