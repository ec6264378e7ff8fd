//! How a piece becomes ids: step 5 of docs/formats.md.

use std::collections::HashMap;

use super::char_table::CharTable;
use super::cuts::Joined;
use super::pairs::{NO_SYMBOL, PairMerger, Pairs, Part};
use super::rule::{Rule, rank_pairs, score_pairs, single_characters};
use super::tokens::Tokens;
use crate::cache::{Cache, Entry, LONGEST_PIECE, long_hash};
use crate::cancel;
use crate::short_table::{Key, LONGEST};
use crate::sink::Sink;

/// What a piece starts as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Units {
    Bytes,
    Characters,
}

/// The parts of a model; `pipeline/form.py` says what each means.
pub struct Parts {
    pub tokens: Vec<(Vec<u8>, u32)>,
    pub rule: Rule,
    pub units: Units,
    pub whole_first: bool,
    pub byte_tokens: Vec<(u8, u32)>,
    pub unknown: Option<u32>,
    pub fuse_unknown: bool,
    pub prefix: String,
    pub suffix: String,
}

/// A model, ready.
pub struct Model {
    tokens: Tokens,
    pairs: Pairs,
    units: Units,
    whole_first: bool,
    byte_tokens: [Option<u32>; 256],
    unknown: Option<u32>,
    fuse_unknown: bool,
    /// Whether a cut must have a token on each side: see the function.
    needs_known: bool,
    prefix: Vec<u8>,
    suffix: Vec<u8>,
    /// Under scores: the symbol of each string that can merge, and what is taken apart.
    strings: Option<Strings>,
    /// Symbols of characters: their ids, or under scores what merging calls them.
    symbols: CharTable,
    /// Ids of the characters that are tokens, when they stand alone.
    alone: CharTable,
    joined: Option<Joined>,
}

struct Strings {
    taken_apart: HashMap<u32, [Vec<u8>; 2]>,
}

/// What one call works with.
#[derive(Default)]
pub struct Merging {
    merger: PairMerger,
    parts: Vec<Part>,
    ids: Vec<u32>,
    /// Parts so far.
    count: usize,
}

/// Whether the work was cancelled is asked once in so many parts.
const ASK_EVERY: usize = 1024;

impl Merging {
    /// Whether nobody waits for the rest.
    pub fn is_cancelled(&mut self) -> bool {
        self.count += 1;
        self.count.is_multiple_of(ASK_EVERY) && cancel::is_set()
    }
}

impl Model {
    pub fn new(parts: Parts) -> Self {
        let tokens = Tokens::new(&parts.tokens);
        let mut byte_tokens = [None; 256];
        for &(byte, id) in &parts.byte_tokens {
            byte_tokens[byte as usize] = Some(id);
        }
        let joined = joined(&parts);
        let needs_known = needs_known(&parts);
        let (pairs, characters, strings) = match parts.rule {
            Rule::Ranks => {
                let pairs = rank_pairs(&parts.tokens, &tokens);
                (pairs, single_characters(&parts.tokens), None)
            }
            Rule::Merges(pairs) => (pairs, single_characters(&parts.tokens), None),
            Rule::Scores(scores, taken_apart) => {
                let (pairs, characters) = score_pairs(&parts.tokens, &scores);
                (pairs, characters, Some(Strings { taken_apart }))
            }
        };
        // What stands for text without spelling it may merge with any neighbour.
        let is_stand_in =
            |id: u32| Some(id) == parts.unknown || parts.byte_tokens.iter().any(|b| b.1 == id);
        let joined = joined.filter(|_| {
            strings.is_some()
                || !pairs
                    .iter()
                    .any(|&(left, right, _, _)| is_stand_in(left) || is_stand_in(right))
        });
        let pairs = Pairs::new(&pairs);
        let alone = single_characters(&parts.tokens)
            .into_iter()
            .filter(|(_, id)| match &strings {
                Some(strings) => !strings.taken_apart.contains_key(id),
                None => true,
            });
        let alone = CharTable::new(alone);
        let symbols = CharTable::new(characters);
        Model {
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
            strings,
            symbols,
            alone,
            joined,
        }
    }

    /// Give the ids of a piece to the sink. In units of characters the piece is UTF-8.
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
        let text = match (&self.joined, std::str::from_utf8(piece)) {
            (Some(joined), Ok(text)) => (joined, text),
            _ => return self.encode_part(piece, merging, cache, sink),
        };
        let (joined, text) = text;
        let mut start = 0;
        let mut before = None;
        for (at, character) in text.char_indices() {
            if let Some(before) = before
                && !joined.has(before, character)
                && (!self.needs_known || (self.is_token(before) && self.is_token(character)))
            {
                let part = &piece[start..at];
                if part.len() == before.len_utf8() {
                    self.encode_character(before, part, merging, cache, sink);
                } else {
                    self.encode_part(part, merging, cache, sink);
                }
                start = at;
                if sink.is_full() || merging.is_cancelled() {
                    return;
                }
            }
            before = Some(character);
        }
        self.encode_part(&piece[start..], merging, cache, sink);
    }

    /// As `encode_part`, for one character: most that are merged with nothing are tokens, or
    /// spelled in bytes.
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
        if self.has_taken_apart() {
            return self.encode_part(part, merging, cache, sink);
        }
        sink.extend(&spelled[..part.len()]);
    }

    fn is_token(&self, character: char) -> bool {
        self.alone.get(character) != NO_SYMBOL
    }

    fn has_taken_apart(&self) -> bool {
        self.strings
            .as_ref()
            .is_some_and(|strings| !strings.taken_apart.is_empty())
    }

    /// As `encode`, for a piece or a part of one that is merged by itself.
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
        sink.reserve(1);
        let key = (part.len() <= LONGEST).then(|| Key::of(part, 0, part.len()));
        if let Some(key) = key
            && let Some(entry) = cache.find_short(key, key.hash())
        {
            sink.put_entry(entry);
            return;
        }
        if part.len() > LONGEST_PIECE {
            self.merge(part, merging);
            sink.extend(&merging.ids);
            return;
        }
        let long = long_hash(part);
        if let Some(ids) = cache.find_long(part, long) {
            sink.extend(ids);
            return;
        }
        self.merge(part, merging);
        match key.and_then(|key| Some((key, Entry::new(key, &merging.ids)?))) {
            Some((key, entry)) => cache.insert_short(key.hash(), entry),
            None if merging.ids.len() <= part.len() => {
                cache.insert_long(part, long, &merging.ids);
            }
            None => {}
        }
        sink.extend(&merging.ids);
    }

    /// The ids of a piece, in `merging.ids`.
    fn merge(&self, piece: &[u8], merging: &mut Merging) {
        let Merging {
            merger, parts, ids, ..
        } = merging;
        parts.clear();
        ids.clear();
        let mut out = Out {
            model: self,
            ids,
            pending: false,
        };
        if let Some(strings) = &self.strings {
            self.each_unit(piece, |start, unit| {
                let symbol = match unit {
                    Unit::Character(c) => self.symbols.get(c),
                    Unit::Byte(_) => NO_SYMBOL,
                };
                parts.push(Part {
                    symbol,
                    start: start as u32,
                });
            });
            merger.merge(&self.pairs, parts);
            for (i, part) in parts.iter().enumerate() {
                let end = parts.get(i + 1).map_or(piece.len(), |p| p.start as usize);
                out.push_apart(&piece[part.start as usize..end], strings);
            }
            out.finish();
            return;
        }
        let plain = self.prefix.is_empty() && self.suffix.is_empty();
        let mut affixed = Vec::new();
        self.each_unit(piece, |start, unit| {
            let mut buffer = [0; 4];
            let bytes: &[u8] = match unit {
                Unit::Character(c) => c.encode_utf8(&mut buffer).as_bytes(),
                Unit::Byte(byte) => {
                    buffer[0] = byte;
                    &buffer[..1]
                }
            };
            if plain {
                match unit {
                    Unit::Character(c) if self.symbols.get(c) != NO_SYMBOL => {
                        out.known(self.symbols.get(c));
                    }
                    _ => out.push(bytes),
                }
                return;
            }
            affixed.clear();
            if start > 0 {
                affixed.extend_from_slice(&self.prefix);
            }
            affixed.extend_from_slice(bytes);
            if start + bytes.len() == piece.len() {
                affixed.extend_from_slice(&self.suffix);
            }
            out.push(&affixed);
        });
        out.finish();
        parts.extend(ids.iter().map(|&symbol| Part { symbol, start: 0 }));
        merger.merge(&self.pairs, parts);
        ids.clear();
        ids.extend(parts.iter().map(|part| part.symbol));
    }

    fn each_unit(&self, piece: &[u8], mut work: impl FnMut(usize, Unit)) {
        match (self.units, std::str::from_utf8(piece)) {
            (Units::Characters, Ok(text)) => {
                for (start, character) in text.char_indices() {
                    work(start, Unit::Character(character));
                }
            }
            _ => {
                for (start, &byte) in piece.iter().enumerate() {
                    work(start, Unit::Byte(byte));
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Unit {
    Byte(u8),
    Character(char),
}

/// Ids of units that are looked up one after the other.
struct Out<'a> {
    model: &'a Model,
    ids: &'a mut Vec<u32>,
    /// Whether there is an unknown part that is not given yet.
    pending: bool,
}

impl Out<'_> {
    fn push(&mut self, unit: &[u8]) {
        let model = self.model;
        if let Some(id) = model.tokens.get(unit) {
            self.known(id);
            return;
        }
        let spelled = unit.iter().map(|&byte| model.byte_tokens[byte as usize]);
        if spelled.clone().all(|id| id.is_some()) {
            self.ids.extend(spelled.flatten());
            return;
        }
        if !(self.pending && model.fuse_unknown) {
            self.flush();
        }
        self.pending = true;
    }

    fn known(&mut self, id: u32) {
        self.flush();
        self.ids.push(id);
    }

    fn push_apart(&mut self, part: &[u8], strings: &Strings) {
        let id = self.model.tokens.get(part);
        match id.and_then(|id| strings.taken_apart.get(&id)) {
            Some([left, right]) => {
                self.push_apart(left, strings);
                self.push_apart(right, strings);
            }
            None => self.push(part),
        }
    }

    fn flush(&mut self) {
        if self.pending {
            self.ids.extend(self.model.unknown);
        }
        self.pending = false;
    }

    fn finish(&mut self) {
        self.flush();
    }
}

/// Whether what becomes of a character that is no token depends on what is beside it: it may
/// vanish, so that its neighbours meet; join an unknown one before it; or wait, unknown, past
/// others that are spelled in bytes.
fn needs_known(parts: &Parts) -> bool {
    parts.byte_tokens.len() < 256
        && (parts.unknown.is_none() || parts.fuse_unknown || !parts.byte_tokens.is_empty())
}

/// Where pieces can be cut; None where a part's ids may depend on what is beside it.
fn joined(parts: &Parts) -> Option<Joined> {
    let apart = matches!(&parts.rule, Rule::Scores(_, apart) if !apart.is_empty());
    let affixed = !parts.prefix.is_empty() || !parts.suffix.is_empty();
    if parts.units == Units::Bytes || affixed || (apart && needs_known(parts)) {
        return None;
    }
    Some(Joined::of(
        parts.tokens.iter().map(|(token, _)| token.as_slice()),
    ))
}
