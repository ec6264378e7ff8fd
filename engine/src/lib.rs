//! The core of bytepair-engine: text to token ids and back, exactly and fast.
//!
//! A text passes through `vocabulary::special` (cut out allowed special tokens), `split` (cut the
//! rest into pre-tokens) and `bpe` (look each pre-token up in `cache` and `vocabulary`, or `merge`
//! it) into an `output`. The Python reference in `backends/reference.py` is the definition, and
//! tests compare the core with it.

mod boundaries;
pub mod bpe;
pub mod breaks;
mod cache;
pub mod cancel;
mod chunker;
mod decode;
pub mod fit;
mod huge;
mod joint;
mod merge;
pub mod output;
pub mod parallel;
pub mod pipeline;
mod prefixes;
#[cfg(feature = "panic-probe")]
mod probe;
#[cfg(feature = "python")]
mod python;
mod scan;
pub mod split;
mod suffixes;
pub mod train;
pub mod vocabulary;
