//! Training: from texts to a merge table.
//!
//! Texts walk through `counter` (the splitter cuts them into pre-tokens, `table` counts those,
//! `spill` writes what is too much for memory) into `counts`. `trainer` then merges: `words`
//! holds every pre-token once, `pairs` knows how often and where each pair stands, and `queue`
//! gives the most frequent one. `columns` is how counts go from one process to another. docs/training.md has the mathematics; `training/reference.py` is
//! the definition.

mod columns;
mod counter;
mod counts;
mod pairs;
mod queue;
mod spill;
mod trainer;
mod word_table;
mod words;

pub use columns::{Columns, buckets, read};
pub use counter::{Counter, Spill};
pub use counts::Counts;
pub use trainer::{Merge, Stop, Ties, TooLarge, Trainer};
