//! One encoding: a vocabulary, a splitter and special tokens.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use crate::cache::scratch::{Pool, Scratch};
use crate::decode::Joined;
use crate::decode::short_tokens::ShortTokens;
use crate::output::offsets::{self, OffsetUnit};
use crate::output::{Count, List, Located, Sink};
use crate::parallel::chunks::{self, Chunks};
use crate::parallel::{self, Sharing};
use crate::split::{PatternFault, Splitter};
use crate::vocabulary::Vocabulary;
use crate::vocabulary::fingerprint::fingerprint;
use crate::vocabulary::lengths::Lengths;
use crate::vocabulary::rank_table::RankTable;
use crate::vocabulary::special::SpecialSet;

/// An encoding. Immutable; every method may be called from many threads.
pub struct Bpe {
    vocabulary: Vocabulary,
    /// Made on first use, because most processes never decode.
    short_tokens: OnceLock<ShortTokens>,
    lengths: OnceLock<Lengths>,
    splitter: Splitter,
    pool: Pool,
    sharing: Sharing,
    specials: HashMap<String, u32>,
    special_bytes: HashMap<u32, Box<[u8]>>,
    pattern: String,
    /// Made on first use: hashing the tokens is a tenth of loading them.
    fingerprint: OnceLock<String>,
}

/// The error for text that contains a disallowed special token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecialFound {
    pub token: String,
    pub byte_offset: usize,
}

/// The error for an id that has no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownId {
    pub index: usize,
}

/// An upper estimate of the bytes per token of most texts.
const BYTES_OF_A_TOKEN: usize = 8;

/// Returns an error if `text` contains a disallowed special token.
pub(crate) fn reject(text: &str, disallowed: &SpecialSet) -> Result<(), SpecialFound> {
    match disallowed.first(text) {
        Some((token, byte_offset)) => Err(SpecialFound {
            token: token.to_owned(),
            byte_offset,
        }),
        None => Ok(()),
    }
}

/// Returns what is in a place; makes it on first use. Two threads may both make it: if one waited
/// for the other, a child that is forked meanwhile would wait without end.
pub(crate) fn made<T>(place: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    if let Some(found) = place.get() {
        return found;
    }
    let made = make();
    place.get_or_init(|| made)
}

impl Bpe {
    pub fn new(
        table: Arc<RankTable>,
        pattern: &str,
        specials: HashMap<String, u32>,
        cache_bytes: usize,
        sharing: Sharing,
    ) -> Result<Self, PatternFault> {
        let splitter = Splitter::for_pattern(pattern)?;
        // If several special tokens share an id, it decodes to the first of them in sorted order.
        // `collect` keeps the last entry of an id.
        let mut sorted: Vec<_> = specials.iter().collect();
        sorted.sort();
        let bytes = |(name, id): (&String, &u32)| (*id, name.as_bytes().into());
        let special_bytes = sorted.into_iter().rev().map(bytes).collect();
        let tokens = table.clone();
        Ok(Bpe {
            vocabulary: Vocabulary::new(table),
            short_tokens: OnceLock::new(),
            lengths: OnceLock::new(),
            splitter,
            pool: Pool::new(cache_bytes, move |bytes| Scratch::new(bytes, &tokens)),
            sharing,
            specials,
            special_bytes,
            pattern: pattern.to_owned(),
            fingerprint: OnceLock::new(),
        })
    }

    pub fn fingerprint(&self) -> &str {
        let make = || fingerprint(self.table(), &self.pattern, &self.specials);
        made::<String>(&self.fingerprint, make)
    }

    pub fn table(&self) -> &RankTable {
        self.vocabulary.table()
    }

    /// Returns the ids of tokens that merging their own bytes does not produce, in id order.
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
        reject(text, disallowed)?;
        let encode = |text: &str| {
            let mut ids = List::for_bytes(text.len());
            self.encode_into(text, allowed, &mut ids);
            ids.into_vec()
        };
        let threads = self.threads_for(text.len());
        if threads == 1 {
            return Ok(encode(text));
        }
        let parts = Chunks::new(text, allowed, self.sharing.part_for(text.len()));
        let parts = parallel::map(threads, parts, |part| encode(&text[part]));
        let mut all = Vec::with_capacity(parts.iter().map(Vec::len).sum());
        // One part at a time, so that each is freed before the next is copied.
        parts
            .into_iter()
            .for_each(|part| all.extend_from_slice(&part));
        Ok(all)
    }

    /// Returns the number of ids, or `limit` + 1 if there are more.
    pub fn count(
        &self,
        text: &str,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
        limit: Option<usize>,
    ) -> Result<usize, SpecialFound> {
        reject(text, disallowed)?;
        let limit = limit.unwrap_or(usize::MAX);
        let count = |text: &str, limit: usize| {
            let mut count = Count::new(limit);
            self.encode_into(text, allowed, &mut count);
            count.result()
        };
        // The part of the text that is likely to be encoded before the limit is reached.
        let bytes = text.len().min(limit.saturating_mul(BYTES_OF_A_TOKEN));
        let threads = self.threads_for(bytes);
        if threads == 1 {
            return Ok(count(text, limit));
        }
        let total = AtomicUsize::new(0);
        let rest = || limit.checked_sub(total.load(Relaxed));
        let parts = Chunks::new(text, allowed, self.sharing.part_for(bytes));
        parallel::map(
            threads,
            parts.map_while(|part| Some((part, rest()?))),
            |(part, rest)| {
                total.fetch_add(count(&text[part], rest), Relaxed);
            },
        );
        Ok(total.into_inner().min(limit.saturating_add(1)))
    }

    /// Applies `work` to each text, and returns the results in order, or the error of the first
    /// text that fails.
    ///
    /// Many small texts are shared between threads as one large text is. If one of them is large,
    /// `work` shares it itself.
    pub fn on_each<R: Send>(
        &self,
        texts: &[&str],
        work: impl Fn(&str) -> Result<R, SpecialFound> + Sync,
    ) -> Result<Vec<R>, SpecialFound> {
        let all = |texts: &[&str]| texts.iter().map(|text| work(text)).collect();
        let largest = texts.iter().map(|text| text.len()).max().unwrap_or(0);
        let bytes = texts.iter().map(|text| text.len()).sum();
        let threads = self.sharing.threads_for(bytes);
        if threads == 1 || self.threads_for(largest) > 1 {
            return all(texts);
        }
        let groups = chunks::groups(texts, self.sharing.part_for(bytes));
        let groups: Vec<Vec<R>> = parallel::map(threads, groups, all)
            .into_iter()
            .collect::<Result<_, _>>()?;
        Ok(groups.into_iter().flatten().collect())
    }

    fn threads_for(&self, bytes: usize) -> usize {
        if self.splitter.has_split_points() {
            self.sharing.threads_for(bytes)
        } else {
            1
        }
    }

    fn encode_into<S: Sink>(&self, text: &str, allowed: &SpecialSet, sink: &mut S) {
        self.pool.with(|scratch| {
            let mut at = 0;
            while let Some((found, id)) = allowed.next_known(text, at)
                && !sink.is_full()
                && !scratch.is_cancelled()
            {
                self.encode_ordinary(&text[at..found.start], scratch, sink);
                sink.push_special(id, found.start, found.end);
                scratch.unchecked += found.end - found.start;
                at = found.end;
            }
            self.encode_ordinary(&text[at..], scratch, sink);
        });
    }

    fn encode_ordinary<S: Sink>(&self, text: &str, scratch: &mut Scratch, sink: &mut S) {
        #[cfg(feature = "panic-probe")]
        crate::probe::check(text.as_bytes());
        let mut at = 0;
        while at < text.len() && !sink.is_full() && !scratch.is_cancelled() {
            let start = at;
            self.splitter.fill(text, at, &mut scratch.ends);
            let (ends, lookup) = scratch.lookup(&self.vocabulary);
            lookup.encode_pieces(text.as_bytes(), at, ends, sink);
            at = ends.last().copied().unwrap_or(text.len());
            scratch.unchecked += at - start;
        }
    }

    pub(crate) fn splitter(&self) -> &Splitter {
        &self.splitter
    }

    pub(crate) fn lengths(&self) -> &Lengths {
        made(&self.lengths, || {
            Lengths::of(self.table().iter().map(|(token, _)| token))
        })
    }

    /// Passes the ids of ordinary text to `sink`.
    pub(crate) fn give_text<S: Sink>(&self, text: &str, sink: &mut S) {
        self.pool
            .with(|scratch| self.encode_ordinary(text, scratch, sink));
    }

    /// Passes the ids of consecutive pre-tokens to `sink`. The first one starts at `start`.
    pub(crate) fn give_pieces<S: Sink>(
        &self,
        text: &[u8],
        start: usize,
        ends: &[usize],
        sink: &mut S,
    ) {
        self.pool.with(|scratch| {
            let (_, lookup) = scratch.lookup(&self.vocabulary);
            lookup.encode_pieces(text, start, ends, sink);
        });
    }

    /// Returns the ids and the start of each token in the text. A token that starts inside a
    /// character has the offset of that character.
    pub fn encode_with_offsets(
        &self,
        text: &str,
        unit: OffsetUnit,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> Result<(Vec<u32>, Vec<usize>), SpecialFound> {
        reject(text, disallowed)?;
        let mut located = Located::new(self.table());
        self.encode_into(text, allowed, &mut located);
        let Located { ids, starts, .. } = located;
        Ok((ids, offsets::in_units(text, starts, unit)))
    }

    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.table()
            .token(id)
            .or_else(|| self.special_bytes.get(&id).map(|bytes| &bytes[..]))
    }

    /// Returns the joined bytes of the tokens.
    pub fn decode_bytes(&self, ids: &[u32]) -> Result<Vec<u8>, UnknownId> {
        #[cfg(feature = "panic-probe")]
        ids.iter()
            .filter_map(|&id| self.token_bytes(id))
            .for_each(crate::probe::check);
        let short_tokens = made(&self.short_tokens, || ShortTokens::of(self.table()));
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
