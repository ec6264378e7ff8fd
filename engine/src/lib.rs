//! The core of bytepair-engine: text to token ids and back, exactly and fast.
//!
//! A text passes through `vocabulary::special` (cut out allowed special tokens), `split` (cut the
//! rest into pre-tokens) and `bpe` (look each pre-token up in `cache` and `vocabulary`, or `merge`
//! it) into an `output`. The Python reference in `backends/reference.py` is the definition, and
//! tests compare the core with it.

pub mod bpe;
mod cache;
pub mod cancel;
pub mod context;
mod decode;
mod huge;
mod merge;
pub mod output;
pub mod parallel;
pub mod pipeline;
#[cfg(feature = "panic-probe")]
mod probe;
#[cfg(feature = "python")]
mod python;
pub mod split;
pub mod train;
pub mod utf8;
pub mod vocabulary;
