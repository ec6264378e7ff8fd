//! Pipelines, which docs/formats.md defines; `pipeline/backend.py` is the reference.
//!
//! A text passes through `added` (find added tokens), `normalise`, `added` again, `pre_tokenise`
//! (split the rest into pieces) and `model` (merge each piece) into a sink.

mod added;
mod by_rank;
mod char_table;
mod charsmap;
mod concatenations;
mod decoder;
mod double_array;
mod growing;
mod located;
mod merge_list;
mod model;
mod model_parts;
mod normalise;
mod origins;
mod pair_merge;
mod pre_tokenise;
mod rule;
mod search;
mod spacing;
mod split_points;
mod starts;
mod tokens;
mod unicode;
mod units;
mod walk;

pub use added::{AddedToken, AddedTokens};
pub use by_rank::merges_by_rank;
pub use charsmap::CharsMap;
pub use decoder::{Decoder, Middle};
pub use merge_list::merges_of;
pub use model::Model;
pub use model_parts::Parts;
pub use normalise::{Normaliser, Normalisers};
pub use pre_tokenise::{Behaviour, PreTokenizer};
pub use rule::{MAX_PAIRS, Rule};
pub use search::Search;
pub use spacing::{Pad, Spacing};
pub use unicode::UnicodeForm;
pub use units::Units;

use crate::bpe::{SpecialFound, UnknownId, reject};
use crate::cache::Cache;
use crate::cache::scratch::Pool;
use crate::output::{Count, List, Sink};
use crate::vocabulary::special::SpecialSet;
use model::Merging;
use walk::Found;

/// A compiled pipeline.
pub struct Pipeline {
    pub model: Model,
    pub normalisers: Normalisers,
    pub pre_tokenizers: Vec<PreTokenizer>,
    pub as_it_came: AddedTokens,
    pub normalised: AddedTokens,
    pub decoder: Decoder,
    pub pool: Pool<PipelineScratch>,
}

/// The buffers of one call.
pub struct PipelineScratch {
    merging: Merging,
    cache: Cache,
    bytes: Vec<u8>,
}

impl PipelineScratch {
    /// Makes buffers with a cache of at most `cache_bytes` bytes.
    pub fn new(cache_bytes: usize) -> Self {
        PipelineScratch {
            merging: Merging::default(),
            cache: Cache::new(cache_bytes),
            bytes: Vec::new(),
        }
    }
}

impl Pipeline {
    pub fn decode_bytes(&self, ids: &[u32]) -> Result<Vec<u8>, UnknownId> {
        self.decoder.decode(ids)
    }

    pub fn encode(
        &self,
        text: &str,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> Result<Vec<u32>, SpecialFound> {
        let mut ids = List::for_bytes(text.len());
        self.encode_into(text, allowed, disallowed, &mut ids)?;
        Ok(ids.into_vec())
    }

    /// The number of ids, or `limit` + 1 if it exceeds `limit`.
    pub fn count(
        &self,
        text: &str,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
        limit: Option<usize>,
    ) -> Result<usize, SpecialFound> {
        let mut count = Count::new(limit.unwrap_or(usize::MAX));
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
        reject(text, disallowed)?;
        let (is_traced, is_written) = (self.needs_origins(), self.has_byte_alphabet());
        let found = self.pool.with(|scratch| {
            let (merging, cache) = (&mut scratch.merging, &mut scratch.cache);
            let mut encode = |found: Found<'_>| {
                match found {
                    Found::Token(id, ..) => sink.push(id),
                    Found::Piece(piece, _) => {
                        let bytes = pre_tokenise::bytes_of(piece, is_written, &mut scratch.bytes);
                        self.model.encode(bytes, merging, cache, sink);
                    }
                }
                !(sink.is_full() || merging.is_cancelled())
            };
            self.walk(text, allowed, disallowed, is_traced, &mut encode)
        });
        // Only tracing finds its position in the original.
        found.or_else(|found| match is_traced {
            true => Err(found),
            false => self.walk(text, allowed, disallowed, true, &mut |_| true),
        })
    }

    /// Whether a step depends on the origin of a piece, and a step before it changes the text.
    fn needs_origins(&self) -> bool {
        use PreTokenizer::{ByteAlphabet, Prefix};
        let asks = |step: &PreTokenizer| match step {
            Prefix { first_only, .. } => *first_only,
            _ => false,
        };
        let Some(at) = self.pre_tokenizers.iter().rposition(asks) else {
            return false;
        };
        let changes = |step: &PreTokenizer| matches!(step, Prefix { .. } | ByteAlphabet);
        !self.normalisers.steps.is_empty() || self.pre_tokenizers[..at].iter().any(changes)
    }

    fn has_byte_alphabet(&self) -> bool {
        let is_one = |step: &PreTokenizer| matches!(step, PreTokenizer::ByteAlphabet);
        self.pre_tokenizers.iter().any(is_one)
    }
}
