//! Counts pre-tokens on several threads, each with its own table; the tables are joined at the end.

use std::io::Result;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::counts::Counts;
use super::spill::{read_run, write_run};
use super::word_table::WordTable;
use crate::parallel;
use crate::split::{Ends, Splitter};
use crate::vocabulary::hash::hash;

/// Number of shards of each thread's table, by hash: shards are joined in parallel.
const SHARDS: usize = 16;
const SHARD_SHIFT: u32 = u64::BITS - SHARDS.ilog2();

/// The folder of runs, and the memory limit of the tables above which runs are written.
pub struct Spill {
    pub folder: PathBuf,
    pub memory: usize,
}

/// Counts the pre-tokens of texts incrementally.
pub struct Counter {
    splitter: Option<Splitter>,
    tables: Vec<Vec<WordTable>>,
    /// Number of bytes of text counted.
    pub bytes: u64,
    spill: Option<Spill>,
    /// The runs written to files.
    pub runs: Vec<PathBuf>,
}

impl Counter {
    /// Create a counter. Without a splitter, each text is one pre-token.
    pub fn new(splitter: Option<Splitter>, threads: usize, spill: Option<Spill>) -> Self {
        let shards = || (0..SHARDS).map(|_| WordTable::default()).collect();
        Counter {
            splitter,
            tables: (0..threads.max(1)).map(|_| shards()).collect(),
            bytes: 0,
            spill,
            runs: Vec::new(),
        }
    }

    /// Count texts of at most u32::MAX bytes each. Each thread takes the next text when it is idle.
    pub fn add(&mut self, texts: &[&str]) -> Result<()> {
        let mut starts = Vec::with_capacity(texts.len());
        for text in texts {
            starts.push(self.bytes);
            self.bytes += text.len() as u64;
        }
        let splitter = self.splitter.as_ref();
        let next = AtomicUsize::new(0);
        let work = |tables: &mut Vec<WordTable>| {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(text) = texts.get(number) else { break };
                count(splitter, text, starts[number], tables);
            }
        };
        let wanted = texts.len().min(self.tables.len());
        parallel::map(wanted, self.tables[..wanted].iter_mut(), work);
        self.write_if_full()
    }

    /// Add earlier counts, as if their texts were counted now.
    pub fn add_counts<'a>(&mut self, counts: impl Iterator<Item = (&'a [u8], u64)>) -> Result<()> {
        for (word, count) in counts {
            let hash = hash(word);
            self.tables[0][(hash >> SHARD_SHIFT) as usize].add(word, hash, count, self.bytes);
            // Merging rejects counts with more bytes.
            let bytes = (word.len() as u64).saturating_mul(count);
            self.bytes = self.bytes.saturating_add(bytes);
        }
        self.write_if_full()
    }

    /// If the tables exceed the memory limit, write their content as a run, and clear them.
    fn write_if_full(&mut self) -> Result<()> {
        let memory: usize = self.tables.iter().flatten().map(WordTable::memory).sum();
        let Some(spill) = self.spill.as_ref().filter(|spill| memory > spill.memory) else {
            return Ok(());
        };
        let joined = join(&self.tables);
        let path = spill.folder.join(format!("run-{}", self.runs.len()));
        write_run(&path, joined.iter().flat_map(WordTable::iter))?;
        self.runs.push(path);
        for table in self.tables.iter_mut().flatten() {
            *table = WordTable::default();
        }
        Ok(())
    }

    /// The counts so far.
    pub fn counts(&self) -> Result<Counts> {
        let mut joined = join(&self.tables);
        for run in &self.runs {
            read_run(run, |word, count, first| {
                let hash = hash(word);
                joined[(hash >> SHARD_SHIFT) as usize].add(word, hash, count, first);
            })?;
        }
        let words = joined.iter().flat_map(WordTable::iter);
        Ok(Counts::collect(words.collect()))
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        for run in &self.runs {
            let _ = std::fs::remove_file(run);
        }
    }
}

fn count(splitter: Option<&Splitter>, text: &str, start: u64, tables: &mut [WordTable]) {
    let mut add = |from: usize, to: usize| {
        let word = &text.as_bytes()[from..to];
        let hash = hash(word);
        tables[(hash >> SHARD_SHIFT) as usize].add(word, hash, 1, start + from as u64);
    };
    let Some(splitter) = splitter else {
        if !text.is_empty() {
            add(0, text.len());
        }
        return;
    };
    let (mut ends, mut at) = (Ends::new(), 0);
    while at < text.len() {
        splitter.fill(text, at, &mut ends);
        for &end in ends.as_slice() {
            add(at, end);
            at = end;
        }
    }
}

/// Join the tables of all threads into one table per shard.
fn join(tables: &[Vec<WordTable>]) -> Vec<WordTable> {
    parallel::map(tables.len().min(SHARDS), 0..SHARDS, |shard| {
        let mut joined = WordTable::default();
        for thread in tables {
            joined.absorb(&thread[shard]);
        }
        joined
    })
}
