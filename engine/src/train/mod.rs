//! Training: from texts to a merge table.
//!
//! Texts walk through `counter` (the splitter cuts them into pre-tokens, `table` counts those,
//! `spill` writes what is too much for memory) into `counts`. `trainer` then merges: `words`
//! holds every pre-token once, `pairs` knows how often and where each pair stands, and `queue`
//! gives the most frequent one. `columns` is how counts go from one process to another.
//! `training/reference.py` is the definition, with the mathematics.
//!
//! **Counting.** A pre-token that stands n times is kept once, with weight n. The splitters of the
//! encoder cut the texts; every thread counts into a table of its own, in sixteen parts by hash.
//! With each pre-token goes where it was first seen. A long document is cut at safe split points
//! (docs/streaming.md).
//!
//! **Merging.** All pre-tokens stand in one array with a slot for each byte. The first and the last
//! slot of a token hold its id, so neighbours are found without pointers. Each pair has a list of
//! places, made once when its younger token appears. A place is still good if its slot holds the
//! pair's left token and the right one follows. What a merge changes beside it is summed up by
//! neighbour before any table of pairs is searched.
//!
//! **Choosing.** A queue of one bucket for each count up to 16,384, and a heap above; only the
//! bucket that is being emptied is sorted. Counts in it only ever fall, and are compared when taken.
//! `first-seen` also compares the pair's first good place.

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
