//! Text that must fit a number of tokens: where it can be cut, and how many tokens its parts have.
//! `bytepair_engine/context/` uses it, and finds the same without it.

pub mod boundaries;
pub mod breaks;
pub mod chunker;
mod concatenated;
pub mod fit;
pub mod fit_end;
mod prefixes;
mod scan;
mod suffixes;
