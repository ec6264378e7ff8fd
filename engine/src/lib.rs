//! The core of bytepair-engine: text to token ids and back, exactly and fast.
//!
//! A text walks through `special` (cut out allowed special tokens), `split` (cut the rest
//! into pre-tokens) and `bpe` (look each pre-token up, or merge it) into a `sink`. The Python
//! reference in `reference.py` is the definition that all of it is held to.

pub mod bpe;
mod cache;
pub mod cancel;
mod characters;
mod fingerprint;
pub mod form;
pub mod general;
mod hash;
mod heap_merge;
mod joined;
mod lookup;
mod merge;
pub mod offsets;
pub mod parallel;
mod parts;
mod pool;
#[cfg(feature = "panic-probe")]
mod probe;
#[cfg(feature = "python")]
mod python;
#[cfg(test)]
mod random;
pub mod rank_table;
mod recent;
mod short_merge;
mod short_table;
mod short_tokens;
pub mod sink;
pub mod special;
pub mod split;
mod token_index;
pub mod train;
pub mod varint;
mod vocabulary;
