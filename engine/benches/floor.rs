//! Compares encoding with its lower bounds: splitting alone, splitting with one plain lookup per
//! pre-token, and encoding, in turns over the same text.
//!
//!     cargo bench --bench floor -- PATTERN_FILE RANK_FILE TEXT…
//!
//! `bench/engine/floor.py` runs it for the built-in encodings.
//!
//! Prints nanoseconds per byte in the fastest of several rounds: all are warm, and other work on
//! the machine only adds time. Also prints the share of pre-tokens that the lookup finds. Encoding
//! merges the others, or finds them in the cache.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use bytepair_core::bpe::Bpe;
use bytepair_core::parallel::Sharing;
use bytepair_core::split::{Ends, Splitter};
use bytepair_core::vocabulary::rank_table::RankTable;
use bytepair_core::vocabulary::special::SpecialSet;

const ROUNDS: usize = 60;
const MAX_BYTES: usize = 1_000_000;
const LONGEST: usize = 15;
const CACHE_BYTES: usize = 64 << 20;

/// A minimal hash table of tokens: open addressing, at most half full, with keys of up to 15 bytes
/// in the slots. Longer pre-tokens are not looked up.
struct Plain {
    slots: Vec<(u128, u32)>,
}

impl Plain {
    fn new(table: &RankTable) -> Self {
        let slots = vec![(0, 0); (2 * table.len()).next_power_of_two()];
        let mut plain = Plain { slots };
        for (token, id) in table.iter().filter(|(token, _)| token.len() <= LONGEST) {
            let key = key(token, 0, token.len());
            let mut at = plain.place(key);
            while plain.slots[at].0 != 0 {
                at = (at + 1) & (plain.slots.len() - 1);
            }
            plain.slots[at] = (key, id);
        }
        plain
    }

    #[inline(always)]
    fn find(&self, key: u128) -> Option<u32> {
        let mut at = self.place(key);
        loop {
            match self.slots[at] {
                (found, id) if found == key => return Some(id),
                (0, _) => return None,
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }

    #[inline(always)]
    fn place(&self, key: u128) -> usize {
        let low = u128::from(key as u64 ^ 0x9e37_79b9_7f4a_7c15);
        let product = low * ((key >> 64) ^ 0xf39c_c060_5ced_c835);
        (product as u64 ^ (product >> 64) as u64) as usize & (self.slots.len() - 1)
    }
}

/// Packs at most 15 bytes and their number.
#[inline(always)]
fn key(text: &[u8], start: usize, len: usize) -> u128 {
    let bytes = match text.get(start..start + 16) {
        Some(window) => window.try_into().unwrap_or_default(),
        None => {
            let mut bytes = [0; 16];
            bytes[..len].copy_from_slice(&text[start..start + len]);
            bytes
        }
    };
    u128::from_le_bytes(bytes) & ((1 << (8 * len)) - 1) | (len as u128) << 120
}

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo adds the flag `--bench`.
    let arguments: Vec<String> = env::args().skip(1).filter(|a| a != "--bench").collect();
    let [pattern, ranks, texts @ ..] = arguments.as_slice() else {
        return Err("needs a file with the pattern, a rank file and texts".into());
    };
    let pattern = fs::read_to_string(pattern)?;
    let table = RankTable::parse_tiktoken(&fs::read(ranks)?).map_err(|f| format!("{f:?}"))?;
    let plain = Plain::new(&table);
    let sharing = Sharing::among(1);
    let bpe = Bpe::new(
        Arc::new(table),
        &pattern,
        HashMap::new(),
        CACHE_BYTES,
        sharing,
    )
    .map_err(|fault| fault.problem)?;
    let splitter = Splitter::for_pattern(&pattern).map_err(|fault| fault.problem)?;
    let none = SpecialSet::new(Vec::new(), |_| None);
    println!(
        "{:24}{:>8}{:>10}{:>8}{:>8}  found",
        "ns for each byte", "split", "+ lookup", "count", "encode"
    );
    for path in texts {
        let text = fs::read_to_string(path)?;
        let most = text.len().min(MAX_BYTES);
        let end = (0..=most).rfind(|&at| text.is_char_boundary(at));
        let text = &text[..end.unwrap_or(0)];
        let (mut pieces, mut found) = (0, 0);
        let mut fastest = [f64::INFINITY; 4];
        for _ in 0..ROUNDS {
            let times = [
                timed(|| pieces = each_piece(&splitter, text, |_, _| {})),
                timed(|| found = look_each_up(&splitter, &plain, text)),
                timed(|| black_box(bpe.count(text, &none, &none, None)).is_ok()),
                timed(|| black_box(bpe.encode(text, &none, &none)).is_ok()),
            ];
            for (fastest, seconds) in fastest.iter_mut().zip(times) {
                *fastest = fastest.min(seconds);
            }
        }
        let [split, lookup, count, encode] = fastest.map(|s| s * 1e9 / text.len() as f64);
        let name = path.rsplit('/').next().unwrap_or(path);
        println!(
            "{name:24}{split:8.2}{lookup:10.2}{count:8.2}{encode:8.2}  {:.0} %",
            100.0 * found as f64 / pieces as f64
        );
    }
    Ok(())
}

/// Calls `look` with the start and the end of each pre-token. Returns the number of pre-tokens.
fn each_piece(splitter: &Splitter, text: &str, mut look: impl FnMut(usize, usize)) -> usize {
    let (mut ends, mut at, mut pieces) = (Ends::new(), 0, 0);
    while at < text.len() {
        splitter.fill(text, at, &mut ends);
        for &end in ends.as_slice() {
            look(at, end);
            at = end;
        }
        pieces += ends.as_slice().len();
    }
    pieces
}

/// Returns the number of pre-tokens that are in the table.
fn look_each_up(splitter: &Splitter, plain: &Plain, text: &str) -> usize {
    let mut found = 0;
    each_piece(splitter, text, |start, end| {
        if end - start <= LONGEST {
            let id = plain.find(key(text.as_bytes(), start, end - start));
            found += usize::from(black_box(id).is_some());
        }
    });
    found
}

fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    black_box(work());
    start.elapsed().as_secs_f64()
}
