//! Counts that exceed the memory limit: sorted runs in files, and their merge.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Result, Write};
use std::path::Path;

/// A record of a run: a word, its count and its first position.
pub type Record = (Vec<u8>, u64, u64);

const BUFFER: usize = 1 << 18;

/// Write records, sorted by word, to a new file.
pub fn write_run<'a>(
    path: &Path,
    records: impl Iterator<Item = (&'a [u8], u64, u64)>,
) -> Result<()> {
    let mut out = BufWriter::with_capacity(BUFFER, File::create_new(path)?);
    for (word, count, first) in records {
        out.write_all(&(word.len() as u64).to_le_bytes())?;
        out.write_all(&count.to_le_bytes())?;
        out.write_all(&first.to_le_bytes())?;
        out.write_all(word)?;
    }
    out.flush()
}

struct Run(BufReader<File>);

impl Run {
    /// The next record; None at the end.
    fn next(&mut self) -> Result<Option<Record>> {
        let mut head = [0; 24];
        if let Err(error) = self.0.read_exact(&mut head) {
            let is_end = error.kind() == std::io::ErrorKind::UnexpectedEof;
            return if is_end { Ok(None) } else { Err(error) };
        }
        let field = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&head[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        let mut word = vec![0; field(0) as usize];
        self.0.read_exact(&mut word)?;
        Ok(Some((word, field(8), field(16))))
    }
}

/// Merge runs: call `each` with every word in order, with the sum of its counts.
pub fn merge_runs(paths: &[impl AsRef<Path>], mut each: impl FnMut(Record)) -> Result<()> {
    let mut runs = Vec::with_capacity(paths.len());
    let mut heads = BinaryHeap::new();
    for (number, path) in paths.iter().enumerate() {
        let mut run = Run(BufReader::with_capacity(BUFFER, File::open(path)?));
        if let Some(record) = run.next()? {
            heads.push(Reverse((record, number)));
        }
        runs.push(run);
    }
    let mut current: Option<Record> = None;
    while let Some(Reverse(((word, count, first), number))) = heads.pop() {
        if let Some(record) = runs[number].next()? {
            heads.push(Reverse((record, number)));
        }
        match &mut current {
            Some(open) if open.0 == word => {
                open.1 += count;
                open.2 = open.2.min(first);
            }
            _ => {
                if let Some(done) = current.replace((word, count, first)) {
                    each(done);
                }
            }
        }
    }
    if let Some(done) = current {
        each(done);
    }
    Ok(())
}
