//! A vocabulary prepared for encoding: ranks of byte strings, and lookup of pre-tokens that are one
//! token.

pub mod fingerprint;
pub mod hash;
mod index;
pub mod lengths;
pub mod rank_table;
pub mod regions;
pub mod short_table;
pub mod special;

use std::collections::HashSet;
use std::sync::Arc;

use crate::merge::initial::{Characters, Opening, character};
use crate::merge::segments::{Crossings, starts_wide};
use crate::merge::{Merger, NO_RANK};
use crate::output::Sink;
use crate::vocabulary::hash::hash;
use crate::vocabulary::lengths::pair;
use crate::vocabulary::rank_table::RankTable;
use crate::vocabulary::short_table::{Key, LONGEST, first_bytes};

/// The greatest length of a string of spaces whose rank is at hand.
const MOST_SPACES: usize = 128;

/// The ranks of all strings of two bytes.
pub type Pairs = [u32; 1 << 16];

#[derive(Debug)]
pub struct Vocabulary {
    table: Arc<RankTable>,
    /// Ranks of all single bytes.
    bytes: Box<[u32; 256]>,
    /// The initial parts for merging.
    characters: Characters,
    crossings: Crossings,
    pairs: Box<Pairs>,
    /// A Bloom filter of all tokens: a word for each `PLACES` places of the short table. Most
    /// strings that merging looks up are not tokens, and the filter is small enough to stay in the
    /// processor's cache.
    filter: Box<[u64]>,
    /// Ranks of strings of spaces, by length.
    spaces: [u32; MOST_SPACES + 1],
    /// Those tokens that start wide and that merging their own bytes does not produce.
    unreachable: HashSet<Box<[u8]>>,
}

impl Vocabulary {
    pub fn new(table: Arc<RankTable>) -> Self {
        let pairs = pair_ranks(&table);
        let wide: Vec<(&[u8], u32)> = table.wide().collect();
        let rank = |token: &[u8]| table.id_of(token).unwrap_or(NO_RANK);
        let mut vocabulary = Vocabulary {
            bytes: Box::new(std::array::from_fn(|byte| rank(&[byte as u8]))),
            characters: Characters::of(&table, &wide, &pairs),
            crossings: Crossings::of(&wide, &pairs),
            pairs,
            filter: filter(&table),
            spaces: std::array::from_fn(|len| rank(&[b' '; MOST_SPACES][..len])),
            unreachable: HashSet::new(),
            table: Arc::clone(&table),
        };
        let wide = wide.into_iter().filter(|(token, _)| starts_wide(token));
        let unreachable = vocabulary.unreachable(wide);
        vocabulary.unreachable = unreachable.map(|(token, _)| token.into()).collect();
        vocabulary
    }

    pub fn table(&self) -> &RankTable {
        &self.table
    }

    /// Returns the rank of the `len` bytes from `start`; `NO_RANK` if they are no token.
    #[inline(always)]
    pub fn rank(&self, text: &[u8], start: usize, len: usize) -> u32 {
        if len == 2 {
            return self.pairs[pair([text[start], text[start + 1]])];
        }
        if len > LONGEST {
            let token = &text[start..start + len];
            return self.whole_long(token, hash(token)).unwrap_or(NO_RANK);
        }
        let key = Key::of(text, start, len);
        self.whole_short(key, key.hash()).unwrap_or(NO_RANK)
    }

    /// Returns the ranks of two strings, each by its start and length; `NO_RANK` if it is empty or
    /// no token. The two cache misses overlap.
    #[inline(always)]
    pub fn ranks(&self, text: &[u8], ranges: [(usize, usize); 2]) -> [u32; 2] {
        if ranges.iter().any(|&(_, len)| len > LONGEST) {
            return ranges.map(|(start, len)| match len {
                0 => NO_RANK,
                _ => self.rank(text, start, len),
            });
        }
        let keys = ranges.map(|(start, len)| Key::of(text, start, len));
        let maybe = keys.map(|key| (key, self.fetch(key, key.hash())));
        maybe.map(|(key, maybe)| match maybe {
            true => self.find_short(key, key.hash()).unwrap_or(NO_RANK),
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
            _ => self.characters.rank_of(character(text, start).0 as u32),
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
            // Without branches, which would be unpredictable.
            [first, second, third] => {
                let count = self.crossings.tokens_of(point);
                let (left, right) = (self.rank(bytes, 0, 2), self.rank(bytes, 1, 2));
                let one = [self.characters.rank_of(point), 0];
                let two = [[id(first), right], [left, id(third)]][usize::from(left <= right)];
                let [a, b] = [one, two, [id(first), id(second)]][count - 1];
                sink.push_some([a, b, id(third)], count);
            }
            [_, _] if self.rank(bytes, 0, 2) != NO_RANK => sink.push(self.rank(bytes, 0, 2)),
            _ => bytes.iter().for_each(|&byte| sink.push(id(byte))),
        }
    }

    /// Returns the id of a pre-token of at most 15 bytes that is one token; None if it is not.
    #[inline(always)]
    pub fn whole_short(&self, key: Key, hash: u64) -> Option<u32> {
        self.fetch(key, hash).then(|| self.find_short(key, hash))?
    }

    #[inline(always)]
    pub fn find_short(&self, key: Key, hash: u64) -> Option<u32> {
        if self.table.short().has_all_of(key.len()) {
            return self.table.short().find(key, hash);
        }
        self.table.id_of(&key.bytes()[..key.len()])
    }

    /// Returns whether a key may be a token, and prefetches the memory that `find_short` reads. It
    /// does not wait for the filter: most keys of new text are tokens.
    #[inline(always)]
    pub fn fetch(&self, key: Key, hash: u64) -> bool {
        let place = self.table.short().fetch(key, hash);
        self.may_have(place, hash)
    }

    /// Returns whether a string may be a token.
    #[inline(always)]
    fn may_have(&self, place: usize, hash: u64) -> bool {
        let bits = filter_bits(hash);
        self.filter[place / PLACES] & bits == bits
    }

    /// Returns the id of a longer pre-token that is one token, by its `hash`; None if it is
    /// not.
    pub fn whole_long(&self, piece: &[u8], hash: u64) -> Option<u32> {
        let place = self.table.short().place(first_bytes(piece), hash);
        let maybe = self.may_have(place, hash);
        maybe.then(|| self.table.id_of_long(piece, hash))?
    }

    /// Returns the id of a token of at least 16 spaces; None for any other string. Indented text
    /// has many, and this is faster than `whole_long`.
    #[inline(always)]
    pub fn whole_spaces(&self, piece: &[u8]) -> Option<u32> {
        let &id = self.spaces.get(piece.len()).filter(|&&id| id != NO_RANK)?;
        let (chunks, sixteen) = (piece.as_chunks().0, &[b' '; 16]);
        let are_spaces = piece.last_chunk() == Some(sixteen);
        (are_spaces && chunks.iter().all(|chunk| chunk == sixteen)).then_some(id)
    }

    /// Returns whether a segment has the ids that a pre-token of these bytes has. False if the
    /// segment is a token that its bytes do not merge to, and if it does not start wide.
    #[inline(always)]
    pub fn is_like_pre_token(&self, segment: &[u8]) -> bool {
        starts_wide(segment) && (self.unreachable.is_empty() || !self.unreachable.contains(segment))
    }

    /// Returns the ids of tokens that merging their own bytes does not produce, in id order. They
    /// are produced only for a whole pre-token.
    pub fn unreachable_ids(&self) -> Vec<u32> {
        let tokens = self.unreachable(self.table.iter());
        tokens.map(|(_, id)| id).collect()
    }

    /// Iterates over those of these tokens that merging their own bytes does not produce.
    fn unreachable<'a>(
        &self,
        tokens: impl Iterator<Item = (&'a [u8], u32)>,
    ) -> impl Iterator<Item = (&'a [u8], u32)> {
        let mut merger = Merger::default();
        tokens.filter(move |&(token, id)| token.len() > 1 && merger.merge(self, token) != [id])
    }
}

/// Number of places of the short table that share a word of the filter.
const PLACES: usize = 8;

/// Makes the filter of all tokens: about ten bits per token, two of which it sets.
fn filter(table: &RankTable) -> Box<[u64]> {
    let words = table.short().places().div_ceil(PLACES);
    let mut filter = vec![0; words].into_boxed_slice();
    for (place, hash) in table.places() {
        filter[place / PLACES] |= filter_bits(hash);
    }
    filter
}

fn pair_ranks(table: &RankTable) -> Box<Pairs> {
    let mut pairs = Box::new([NO_RANK; 1 << 16]);
    for (token, id) in table.iter() {
        if let Ok(two) = token.try_into() {
            pairs[pair(two)] = id;
        }
    }
    pairs
}

/// Returns the two bits of a hash in its word of the filter.
#[inline(always)]
fn filter_bits(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63)
}
