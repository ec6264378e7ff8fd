//! The fingerprint of an encoding: a hash of everything that decides ids.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::vocabulary::rank_table::RankTable;

/// Returns `sha256:` and the hash of the content. `fingerprint.py` defines the layout.
pub fn fingerprint(table: &RankTable, pattern: &str, specials: &HashMap<String, u32>) -> String {
    let mut content = Vec::with_capacity(16 * table.len());
    content.extend_from_slice(b"bytepair fingerprint 1\n");
    for field in ["rank", "none", pattern] {
        content.extend_from_slice(&(field.len() as u64).to_le_bytes());
        content.extend_from_slice(field.as_bytes());
    }
    let specials = specials.iter().map(|(name, id)| (name.as_bytes(), *id));
    let mut specials: Vec<(&[u8], u32)> = specials.collect();
    specials.sort_by_key(|&(name, id)| (id, name));
    push_tokens(&mut content, table.iter());
    push_tokens(&mut content, specials.into_iter());
    let digest = Sha256::digest(&content);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Appends the number of tokens, and then each token with its id.
fn push_tokens<'t>(content: &mut Vec<u8>, tokens: impl ExactSizeIterator<Item = (&'t [u8], u32)>) {
    content.extend_from_slice(&(tokens.len() as u64).to_le_bytes());
    for (token, id) in tokens {
        content.extend_from_slice(&id.to_le_bytes());
        content.extend_from_slice(&(token.len() as u32).to_le_bytes());
        content.extend_from_slice(token);
    }
}
