//! Vocabularies of other formats at work: a *form*, as docs/formats.md defines it and
//! `pipeline/backend.py` says it in plain Python.
//!
//! A text walks through `added` (cut out added tokens), `normalise`, `added` again, `pre_tokenise`
//! (cut the rest into pieces) and `model` (merge each piece) into a sink.

mod added;
mod char_table;
mod cuts;
mod decode;
mod double_array;
mod model;
mod normalise;
mod pairs;
mod pre_tokenise;
mod rule;
mod search;
mod spacing;
mod tokens;
mod unicode;

use std::collections::HashSet;

pub use added::{AddedToken, AddedTokens};
pub use decode::{Decoder, Middle};
pub use model::{Model, Parts, Units};
pub use normalise::{Normaliser, Normalisers};
pub use pre_tokenise::{Behaviour, PreTokenizer};
pub use rule::Rule;
pub use search::Search;
pub use spacing::{Pad, Spacing};
pub use unicode::UnicodeForm;

use crate::bpe::SpecialFound;
use crate::cache::Cache;
use crate::general::CharSet;
use crate::pool::{Pool, Workroom};
use crate::sink::{Count, List, Packed, Sink};
use crate::special::SpecialSet;
use model::Merging;

/// Special tokens of a request: their names, and the same ready to be found in text.
pub struct NameSet {
    pub names: HashSet<String>,
    pub spelled: SpecialSet,
}

impl NameSet {
    pub fn new(names: Vec<String>) -> Self {
        NameSet {
            spelled: SpecialSet::new(names.clone(), |_| None),
            names: names.into_iter().collect(),
        }
    }
}

/// Why a text has no ids.
pub enum Refusal {
    /// It spells a special token that is disallowed.
    Spelled(SpecialFound),
    /// It spells one once it is normalised.
    Normalised,
}

/// What a form consists of.
pub struct Form {
    pub model: Model,
    pub normalisers: Normalisers,
    pub pre_tokenizers: Vec<PreTokenizer>,
    pub as_it_came: AddedTokens,
    pub normalised: AddedTokens,
    pub decoder: Decoder,
    pub pool: Pool<FormRoom>,
}

/// What one call works with.
pub struct FormRoom {
    merging: Merging,
    cache: Cache,
    bytes: Vec<u8>,
}

impl Workroom for FormRoom {
    fn new(cache_bytes: usize) -> Self {
        FormRoom {
            merging: Merging::default(),
            cache: Cache::new(cache_bytes),
            bytes: Vec::new(),
        }
    }
}

impl Form {
    pub fn encode(
        &self,
        text: &str,
        allowed: &NameSet,
        disallowed: &NameSet,
    ) -> Result<Vec<u32>, Refusal> {
        let mut list = List::for_bytes(text.len());
        self.encode_into(text, allowed, disallowed, &mut list)?;
        Ok(list.into_vec())
    }

    pub fn encode_packed(
        &self,
        text: &str,
        allowed: &NameSet,
        disallowed: &NameSet,
    ) -> Result<Vec<u8>, Refusal> {
        let mut packed = Packed(Vec::with_capacity(text.len() / 2 + 1));
        self.encode_into(text, allowed, disallowed, &mut packed)?;
        Ok(packed.0)
    }

    /// The number of ids, or `limit` + 1 when there are more.
    pub fn count(
        &self,
        text: &str,
        allowed: &NameSet,
        disallowed: &NameSet,
        limit: Option<usize>,
    ) -> Result<usize, Refusal> {
        let mut count = Count::new(limit.unwrap_or(usize::MAX));
        self.encode_into(text, allowed, disallowed, &mut count)?;
        Ok(count.result())
    }

    fn encode_into<S: Sink>(
        &self,
        text: &str,
        allowed: &NameSet,
        disallowed: &NameSet,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        if let Some((token, byte_offset)) = disallowed.spelled.first(text) {
            return Err(Refusal::Spelled(SpecialFound {
                token: token.to_owned(),
                byte_offset,
            }));
        }
        self.pool.with(|room| {
            let mut refused = Ok(());
            let found = self.as_it_came.each_part(
                text,
                &allowed.names,
                &disallowed.names,
                |part, token| {
                    if let Some(id) = token {
                        sink.push(id);
                    } else {
                        let at_start = part.start == 0;
                        refused =
                            self.stretch(&text[part], at_start, allowed, disallowed, room, sink);
                    }
                    // What is disallowed is an error wherever it stands, even past a limit.
                    refused.is_ok() && !(sink.is_full() && disallowed.names.is_empty())
                },
            );
            refused?;
            found.map_err(|_| Refusal::Normalised)
        })
    }

    fn stretch<S: Sink>(
        &self,
        stretch: &str,
        at_start: bool,
        allowed: &NameSet,
        disallowed: &NameSet,
        room: &mut FormRoom,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        let text = self.normalisers.apply(stretch);
        let (allowed, disallowed) = (&allowed.names, &disallowed.names);
        let found = self
            .normalised
            .each_part(&text, allowed, disallowed, |part, token| {
                match token {
                    Some(id) => sink.push(id),
                    None if sink.is_full() => {}
                    None => {
                        let at_start = at_start && part.start == 0;
                        self.pieces(&text[part], at_start, room, sink);
                    }
                }
                !(sink.is_full() && disallowed.is_empty())
            });
        found.map_err(|_| Refusal::Normalised)
    }

    fn pieces<S: Sink>(&self, text: &str, at_start: bool, room: &mut FormRoom, sink: &mut S) {
        let FormRoom {
            merging,
            cache,
            bytes,
        } = room;
        let written = self
            .pre_tokenizers
            .iter()
            .any(|step| matches!(step, PreTokenizer::ByteAlphabet));
        pre_tokenise::each_piece(&self.pre_tokenizers, text, at_start, &mut |piece| {
            if written {
                pre_tokenise::read(piece, bytes);
                self.model.encode(bytes, merging, cache, sink);
            } else {
                self.model.encode(piece.as_bytes(), merging, cache, sink);
            }
            !(sink.is_full() || merging.is_cancelled())
        });
    }
}

/// A set of the characters of these ranges, both ends included.
pub fn characters(ranges: &[(u32, u32)]) -> CharSet {
    CharSet::of_ranges(ranges)
}
