//! Counts that exceed the memory limit: runs of records in files.

use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Result, Write};
use std::path::Path;

const BUFFER: usize = 1 << 18;

/// Write records (a word, its count and its first position) to a new file.
pub fn write_run<'a>(
    path: &Path,
    records: impl Iterator<Item = (&'a [u8], u64, u64)>,
) -> Result<()> {
    let mut out = BufWriter::with_capacity(BUFFER, File::create_new(path)?);
    for (word, count, first) in records {
        for number in [word.len() as u64, count, first] {
            out.write_all(&number.to_le_bytes())?;
        }
        out.write_all(word)?;
    }
    out.flush()
}

/// Call `each` with every record of a file.
pub fn read_run(path: &Path, mut each: impl FnMut(&[u8], u64, u64)) -> Result<()> {
    let mut run = BufReader::with_capacity(BUFFER, File::open(path)?);
    let (mut head, mut word) = ([[0; 8]; 3], Vec::new());
    loop {
        match run.read_exact(head.as_flattened_mut()) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let [len, count, first] = head.map(u64::from_le_bytes);
        word.resize(len as usize, 0);
        run.read_exact(&mut word)?;
        each(&word, count, first);
    }
}
