//! Converts a piece to ids: step 5 of docs/formats.md.

use super::char_table::CharTable;
use super::model_parts::Parts;
use super::pair_merge::{NO_SYMBOL, PairMerger, Pairs, Part};
use super::rule::{
    Pair, Rule, TakenApart, TooManyPairs, rank_pairs, score_pairs, single_characters,
};
use super::split_points::Joined;
use super::tokens::Tokens;
use super::units::{LookedUp, Unit, Units};
use crate::cache::{Cache, Entry, MAX_PIECE_BYTES};
use crate::cancel;
use crate::output::{Ids, Sink};
use crate::vocabulary::hash::hash;
use crate::vocabulary::lengths::Lengths;
use crate::vocabulary::short_table::{Key, LONGEST};

/// A compiled model.
pub struct Model {
    pub(super) tokens: Tokens,
    pub(super) pairs: Pairs,
    pub(super) units: Units,
    pub(super) whole_first: bool,
    pub(super) byte_tokens: [Option<u32>; 256],
    pub(super) unknown: Option<u32>,
    pub(super) fuse_unknown: bool,
    /// Whether split points must be between two tokens; see `Parts::needs_known`.
    needs_known: bool,
    prefix: Vec<u8>,
    suffix: Vec<u8>,
    /// For a model with scores: the strings that ids are taken apart to.
    pub(super) taken_apart: Option<TakenApart>,
    /// The symbols of characters for merging: ids, except for a model with scores.
    symbols: CharTable,
    /// The ids of single characters that are tokens.
    alone: CharTable,
    joined: Option<Joined>,
    /// The number of bytes of a piece for each id; 0 if the id does not determine it.
    lengths: Box<[u32]>,
    /// The lengths of the tokens.
    pub(super) spans: Lengths,
}

/// The buffers of one call.
#[derive(Default)]
pub struct Merging {
    merger: PairMerger,
    /// The result of the last piece, with the start of each part.
    parts: Vec<Part>,
    units: Vec<Part>,
    ids: Vec<u32>,
    /// Number of parts so far.
    count: usize,
}

/// Number of parts between two checks for cancellation.
const ASK_EVERY: usize = 1024;

impl Merging {
    /// Whether the call was cancelled; checked at intervals.
    pub fn is_cancelled(&mut self) -> bool {
        self.count += 1;
        self.count.is_multiple_of(ASK_EVERY) && cancel::is_set()
    }
}

impl Model {
    pub fn new(parts: Parts) -> Result<Self, TooManyPairs> {
        let tokens = Tokens::new(&parts.tokens);
        let mut byte_tokens = [None; 256];
        for &(byte, id) in &parts.byte_tokens {
            byte_tokens[byte as usize] = Some(id);
        }
        let joined = parts.joined();
        let lengths = parts.lengths();
        let spans = Lengths::of(parts.tokens.iter().map(|(token, _)| token.as_slice()));
        let needs_known = parts.needs_known();
        let alone = single_characters(&parts.tokens);
        let (pairs, characters, taken_apart) = match parts.rule {
            Rule::Ranks => (rank_pairs(&parts.tokens)?, alone.clone(), None),
            Rule::Merges(pairs) => (pairs, alone.clone(), None),
            Rule::Scores(scores, taken_apart) => {
                let (pairs, characters) = score_pairs(&parts.tokens, &scores)?;
                (pairs, characters, Some(taken_apart))
            }
        };
        // An id that replaces text without a token may merge with any adjacent token.
        let is_stand_in =
            |id: u32| Some(id) == parts.unknown || parts.byte_tokens.iter().any(|b| b.1 == id);
        let merges_one = |&(left, right, ..): &Pair| is_stand_in(left) || is_stand_in(right);
        let joined = joined.filter(|_| taken_apart.is_some() || !pairs.iter().any(merges_one));
        let pairs = Pairs::new(&pairs);
        let apart = taken_apart.as_ref();
        let is_whole = |&(_, id): &(char, u32)| apart.is_none_or(|apart| !apart.contains_key(&id));
        let alone = CharTable::new(alone.into_iter().filter(is_whole));
        let symbols = CharTable::new(characters);
        Ok(Model {
            tokens,
            pairs,
            units: parts.units,
            whole_first: parts.whole_first,
            byte_tokens,
            unknown: parts.unknown,
            fuse_unknown: parts.fuse_unknown,
            needs_known,
            prefix: parts.prefix.into_bytes(),
            suffix: parts.suffix.into_bytes(),
            taken_apart,
            symbols,
            alone,
            joined,
            lengths,
            spans,
        })
    }

    /// Push the ids of a piece to the sink. With units of characters, the piece is UTF-8.
    pub fn encode<S: Sink>(
        &self,
        piece: &[u8],
        merging: &mut Merging,
        cache: &mut Cache,
        sink: &mut S,
    ) {
        if self.whole_first
            && let Some(id) = self.tokens.get(piece)
        {
            sink.push(id);
            return;
        }
        self.each_part(piece, |_, part, single| {
            match single {
                Some(character) => self.encode_character(character, part, merging, cache, sink),
                None => self.encode_part(part, merging, cache, sink),
            }
            !(sink.is_full() || merging.is_cancelled())
        });
    }

    /// Call `give` with each id of a piece and the byte offset of its start.
    pub fn locate(
        &self,
        piece: &[u8],
        merging: &mut Merging,
        cache: &mut Cache,
        mut give: impl FnMut(u32, usize),
    ) {
        if self.whole_first
            && let Some(id) = self.tokens.get(piece)
        {
            give(id, 0);
            return;
        }
        let mut found = Ids::default();
        self.each_part(piece, |at, part, _| {
            found.0.clear();
            self.encode_part(part, merging, cache, &mut found);
            let ids = &found.0;
            let length = |&id: &u32| self.lengths.get(id as usize).copied().unwrap_or(0) as usize;
            let lengths_add_up = ids.iter().all(|id| length(id) > 0)
                && ids.iter().map(length).sum::<usize>() == part.len();
            if lengths_add_up {
                let mut start = at;
                for id in ids {
                    give(*id, start);
                    start += length(id);
                }
            } else {
                self.merge(part, merging);
                for part in &merging.parts {
                    give(part.symbol, at + part.start as usize);
                }
            }
            !merging.is_cancelled()
        });
    }

    /// Call `work` with the start and the bytes of each part of a piece that merges independently,
    /// until it returns false. A part with one character, except the last part, is also passed as a
    /// `char`.
    #[inline]
    fn each_part(&self, piece: &[u8], mut work: impl FnMut(usize, &[u8], Option<char>) -> bool) {
        let (Some(joined), Ok(text)) = (&self.joined, std::str::from_utf8(piece)) else {
            work(0, piece, None);
            return;
        };
        let mut start = 0;
        let mut before = None;
        for (at, character) in text.char_indices() {
            if let Some(before) = before
                && !joined.has(before, character)
                && (!self.needs_known || (self.is_token(before) && self.is_token(character)))
            {
                let part = &piece[start..at];
                let single = (part.len() == before.len_utf8()).then_some(before);
                if !work(start, part, single) {
                    return;
                }
                start = at;
            }
            before = Some(character);
        }
        work(start, &piece[start..], None);
    }

    /// Encode a part with one character: the fast path for tokens, and for byte tokens.
    #[inline]
    fn encode_character<S: Sink>(
        &self,
        character: char,
        part: &[u8],
        merging: &mut Merging,
        cache: &mut Cache,
        sink: &mut S,
    ) {
        let id = self.alone.get(character);
        if id != NO_SYMBOL {
            sink.push(id);
            return;
        }
        let mut spelled = [0; 4];
        for (id, &byte) in spelled.iter_mut().zip(part) {
            match self.byte_tokens[byte as usize] {
                Some(token) => *id = token,
                None => return self.encode_part(part, merging, cache, sink),
            }
        }
        let apart = self.taken_apart.as_ref();
        if apart.is_some_and(|apart| !apart.is_empty()) {
            return self.encode_part(part, merging, cache, sink);
        }
        sink.extend(&spelled[..part.len()]);
    }

    /// The symbol of a unit, without prefix and suffix.
    pub(super) fn symbol(&self, unit: Unit) -> u32 {
        match unit {
            Unit::Character(character) => self.symbols.get(character),
            Unit::Byte(byte) => self.tokens.get(&[byte]).unwrap_or(NO_SYMBOL),
        }
    }

    fn is_token(&self, character: char) -> bool {
        self.alone.get(character) != NO_SYMBOL
    }

    /// Encode a piece, or a part of one that merges independently, with the cache.
    fn encode_part<S: Sink>(
        &self,
        part: &[u8],
        merging: &mut Merging,
        cache: &mut Cache,
        sink: &mut S,
    ) {
        if part.is_empty() {
            return;
        }
        let key = (part.len() <= LONGEST).then(|| Key::of(part, 0, part.len()));
        if let Some(key) = key
            && let Some(entry) = cache.find_short(key, key.hash())
        {
            sink.extend(entry.ids());
            return;
        }
        if part.len() > MAX_PIECE_BYTES {
            self.merge(part, merging);
            sink.extend(&merging.ids);
            return;
        }
        let long = hash(part);
        if let Some(ids) = cache.long.find(part, long) {
            sink.extend(ids);
            return;
        }
        self.merge(part, merging);
        match key.and_then(|key| Some((key, Entry::new(key, &merging.ids)?))) {
            Some((key, entry)) => cache.insert_short(key.hash(), entry),
            None if merging.ids.len() <= part.len() => {
                cache.long.insert(part, long, &merging.ids);
            }
            None => {}
        }
        sink.extend(&merging.ids);
    }

    /// Merge a piece into `merging.ids`, with the starts in `merging.parts`.
    fn merge(&self, piece: &[u8], merging: &mut Merging) {
        let (parts, units) = (&mut merging.parts, &mut merging.units);
        if let Some(taken_apart) = &self.taken_apart {
            units.clear();
            self.units.each(piece, |start, unit| {
                units.push(Part {
                    symbol: self.symbol(unit),
                    start: start as u32,
                });
            });
            merging.merger.merge(&self.pairs, units);
            let mut found = LookedUp::into(self, parts);
            for (i, unit) in units.iter().enumerate() {
                let end = units.get(i + 1).map_or(piece.len(), |p| p.start as usize);
                found.push_apart(&piece[unit.start as usize..end], unit.start, taken_apart);
            }
            found.finish();
        } else {
            let mut found = LookedUp::into(self, parts);
            self.units.each(piece, |start, unit| {
                self.look_up(piece, start, unit, &mut found)
            });
            found.finish();
            merging.merger.merge(&self.pairs, parts);
        }
        merging.ids.clear();
        merging.ids.extend(parts.iter().map(|part| part.symbol));
    }

    #[inline]
    fn look_up(&self, piece: &[u8], start: usize, unit: Unit, found: &mut LookedUp<'_>) {
        let mut buffer = [0; 4];
        if self.prefix.is_empty() && self.suffix.is_empty() {
            match unit {
                Unit::Character(c) if self.symbols.get(c) != NO_SYMBOL => {
                    found.known(self.symbols.get(c), start as u32);
                }
                _ => found.push(unit.bytes(&mut buffer), start as u32),
            }
            return;
        }
        let bytes = unit.bytes(&mut buffer);
        let mut affixed = Vec::new();
        if start > 0 {
            affixed.extend_from_slice(&self.prefix);
        }
        affixed.extend_from_slice(bytes);
        if start + bytes.len() == piece.len() {
            affixed.extend_from_slice(&self.suffix);
        }
        found.push(&affixed, start as u32);
    }
}
