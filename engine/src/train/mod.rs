//! Training of merges on texts.
//!
//! `counter` splits texts into pre-tokens and counts them in a `word_table`; `spill` writes counts
//! that exceed the memory limit to files. The result is `counts`. `trainer` then merges: `words`
//! stores every pre-token once, `pairs` stores the count and the positions of each pair, and
//! `queue` returns the most frequent pair. `columns` is the exchange format of counts between
//! processes. `training/reference.py` is the definition, with the mathematics.
//!
//! **Counting.** A pre-token that occurs n times is stored once, with weight n and the position of
//! its first occurrence. Texts are split by the encoder's splitters. Each thread counts into its
//! own table, divided into sixteen shards by hash. Long documents are split at safe split points
//! (docs/streaming.md).
//!
//! **Merging.** All pre-tokens are in one array with a slot for each byte. The first and the last
//! slot of a token hold its id, so adjacent tokens are found without pointers. Each pair has a list
//! of positions, created when its younger token appears. A position is still valid if its slot
//! holds the left token of the pair and the right one follows. The changes of adjacent pairs by a
//! merge are summed by adjacent token before the table of pairs is searched.
//!
//! **Choosing.** A queue with one bucket for each count up to 16,384, and a heap for larger counts.
//! Only the current bucket is sorted. Counts only decrease, and are compared when an item is taken
//! from the queue. `first-seen` also compares the first valid position of the pair.

mod columns;
mod counter;
mod counts;
mod pairs;
mod queue;
mod spill;
mod trainer;
mod word_table;
mod words;

pub use columns::{buckets, read, write};
pub use counter::{Counter, Spill};
pub use counts::Counts;
pub use trainer::{Merge, Stop, Ties, TooLarge, Trainer};
