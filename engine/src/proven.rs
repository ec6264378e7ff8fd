//! Vocabularies that need no check at load: that every token merges to itself was checked once
//! and is checked again by a test of the Python suite for each built-in encoding.
//!
//! The check is most of the time of loading. A SHA-256 names the content, so that a table which
//! differs in one byte is checked like any other.

use sha2::{Digest, Sha256};

use crate::fingerprint::push_tokens;
use crate::rank_table::RankTable;

/// SHA-256 of the tokens as the fingerprint writes them: r50k_base, p50k_base, cl100k_base and
/// o200k_base.
const PROVEN: [&str; 4] = [
    "115a0685f02e36ce54dd3631d42c8c2b4e5938f73588359762b512cbca820c35",
    "bb0261c9f6b142151dcabb830d47a151e99e55fd41515e1ab22a5a555ab82d47",
    "ebe4f947f7c41b65219d7fbd63ae67795a93fdd55da382f0b01afd24cfbb416e",
    "c15efeab163d3bd75b3385df1e7ba335938fd7f09f0a19ee6d4c5ccfcba3fd15",
];

/// Whether every token of the table is known to merge to itself.
pub fn is_proven(table: &RankTable) -> bool {
    PROVEN.contains(&digest(table).as_str())
}

fn digest(table: &RankTable) -> String {
    let mut content = Vec::with_capacity(16 * table.len());
    push_tokens(&mut content, table);
    hex(&Sha256::digest(&content))
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
