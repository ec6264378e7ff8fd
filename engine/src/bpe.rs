//! One encoding: a vocabulary, what splits its text, and its special tokens.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::fingerprint::fingerprint;
use crate::joined::Joined;
use crate::lookup::Lookup;
use crate::offsets::{self, OffsetUnit};
use crate::pool::{Pool, Room};
use crate::rank_table::RankTable;
use crate::short_tokens::ShortTokens;
use crate::sink::{Count, List, Located, Packed, Sink};
use crate::special::SpecialSet;
use crate::split::{PatternFault, Splitter};
use crate::vocabulary::Vocabulary;

/// Immutable; every method may be called from many threads.
pub struct Bpe {
    vocabulary: Vocabulary,
    /// Made when first needed: most processes never decode.
    short_tokens: OnceLock<ShortTokens>,
    splitter: Splitter,
    pool: Pool,
    specials: HashMap<String, u32>,
    special_bytes: HashMap<u32, Box<[u8]>>,
    fingerprint: String,
}

/// The text spells a special token that is disallowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecialFound {
    pub token: String,
    pub byte_offset: usize,
}

/// No token has this id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownId {
    pub index: usize,
}

impl Bpe {
    pub fn new(
        table: Arc<RankTable>,
        pattern: &str,
        mut specials: Vec<(String, u32)>,
        cache_bytes: usize,
    ) -> Result<Self, PatternFault> {
        let splitter = Splitter::for_pattern(pattern)?;
        let fingerprint = fingerprint(&table, pattern, &specials);
        // Where several special tokens share an id, it decodes to the first by spelling: the
        // last one that is collected.
        specials.sort();
        let special_bytes = specials
            .iter()
            .rev()
            .map(|(name, id)| (*id, name.as_bytes().into()))
            .collect();
        let specials = specials.into_iter().collect();
        Ok(Bpe {
            vocabulary: Vocabulary::new(table),
            short_tokens: OnceLock::new(),
            splitter,
            pool: Pool::new(cache_bytes),
            specials,
            special_bytes,
            fingerprint,
        })
    }

    pub fn splitter(&self) -> &'static str {
        self.splitter.name()
    }

    /// The pre-tokens of ordinary text.
    pub fn split<'t>(&self, text: &'t str) -> Vec<&'t str> {
        self.splitter.pieces(text)
    }

    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    pub fn table(&self) -> &RankTable {
        self.vocabulary.table()
    }

    /// Ids of the tokens that merging their own bytes does not give, in id order.
    pub fn unreachable_ids(&self) -> Vec<u32> {
        self.vocabulary.unreachable_ids()
    }

    pub fn special_set(&self, names: Vec<String>) -> SpecialSet {
        SpecialSet::new(names, |name| self.specials.get(name).copied())
    }

    pub fn encode(
        &self,
        text: &str,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> Result<Vec<u32>, SpecialFound> {
        let mut list = List::for_bytes(text.len());
        self.encode_into(text, allowed, disallowed, &mut list)?;
        Ok(list.into_vec())
    }

    pub fn encode_packed(
        &self,
        text: &str,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> Result<Vec<u8>, SpecialFound> {
        let mut packed = Packed(Vec::with_capacity(text.len() / 2 + 1));
        self.encode_into(text, allowed, disallowed, &mut packed)?;
        Ok(packed.0)
    }

    /// The number of ids, or `limit` + 1 when there are more.
    pub fn count(
        &self,
        text: &str,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
        limit: Option<usize>,
    ) -> Result<usize, SpecialFound> {
        let mut count = Count::new(limit);
        self.encode_into(text, allowed, disallowed, &mut count)?;
        Ok(count.result())
    }

    fn encode_into<S: Sink>(
        &self,
        text: &str,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
        sink: &mut S,
    ) -> Result<(), SpecialFound> {
        if let Some((token, byte_offset)) = disallowed.first(text) {
            return Err(SpecialFound {
                token: token.to_owned(),
                byte_offset,
            });
        }
        self.pool
            .with(|room| self.encode_allowing(text, allowed, room, sink));
        Ok(())
    }

    fn encode_allowing<S: Sink>(
        &self,
        text: &str,
        allowed: &SpecialSet,
        room: &mut Room,
        sink: &mut S,
    ) {
        let mut at = 0;
        while !sink.is_full() {
            let Some((found, id)) = allowed.next_known(text, at) else {
                self.encode_ordinary(&text[at..], room, sink);
                break;
            };
            self.encode_ordinary(&text[at..found.start], room, sink);
            sink.push_special(id, found.start, found.end);
            at = found.end;
        }
    }

    fn encode_ordinary<S: Sink>(&self, text: &str, room: &mut Room, sink: &mut S) {
        let mut at = 0;
        while at < text.len() && !sink.is_full() {
            self.splitter.fill(text, at, &mut room.ends);
            let Room {
                ends,
                merger,
                cache,
                prepared,
            } = room;
            let lookup = Lookup {
                vocabulary: &self.vocabulary,
                merger,
                cache,
            };
            let ends = ends.as_slice();
            lookup.encode_pieces(text.as_bytes(), at, ends, &mut prepared[..], sink);
            at = ends.last().copied().unwrap_or(text.len());
        }
    }

    /// Ids, and where each starts in the text; a token that starts inside a character has the
    /// offset of that character.
    pub fn encode_with_offsets(
        &self,
        text: &str,
        unit: OffsetUnit,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> Result<(Vec<u32>, Vec<usize>), SpecialFound> {
        let mut located = Located::new(self.table());
        self.encode_into(text, allowed, disallowed, &mut located)?;
        let Located { ids, starts, .. } = located;
        Ok((ids, offsets::in_units(text, starts, unit)))
    }

    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.table()
            .token(id)
            .or_else(|| self.special_bytes.get(&id).map(|bytes| &bytes[..]))
    }

    /// The greatest id, of special tokens too; 0 where there is none.
    pub fn max_id(&self) -> u32 {
        let special = self.special_bytes.keys().copied().max();
        self.table().max_id().max(special).unwrap_or(0)
    }

    /// The bytes of the tokens, joined.
    pub fn decode_bytes(&self, ids: &[u32]) -> Result<Vec<u8>, UnknownId> {
        let short_tokens = self
            .short_tokens
            .get_or_init(|| ShortTokens::of(self.table()));
        let mut joined = Joined::for_tokens(ids.len());
        let mut index = 0;
        loop {
            index += joined.push_short(short_tokens, &ids[index..]);
            let Some(&id) = ids.get(index) else {
                return Ok(joined.into_vec());
            };
            joined.push(self.token_bytes(id).ok_or(UnknownId { index })?);
            index += 1;
        }
    }
}
