//! The fingerprint of an encoding: a hash of everything that decides ids.

use sha2::{Digest, Sha256};

use crate::vocabulary::rank_table::RankTable;

/// Returns `sha256:` and the hash of the content. `fingerprint.py` defines the layout.
pub fn fingerprint(table: &RankTable, pattern: &str, specials: &[(String, u32)]) -> String {
    let mut content = Vec::with_capacity(16 * table.len());
    content.extend_from_slice(b"bytepair fingerprint 1\n");
    for field in ["rank", "none", pattern] {
        content.extend_from_slice(&(field.len() as u64).to_le_bytes());
        content.extend_from_slice(field.as_bytes());
    }
    push_tokens(&mut content, table);
    let mut sorted: Vec<_> = specials
        .iter()
        .map(|(name, id)| (*id, name.as_bytes()))
        .collect();
    sorted.sort();
    content.extend_from_slice(&(sorted.len() as u64).to_le_bytes());
    for (id, name) in sorted {
        push_token(&mut content, id, name);
    }
    let digest = Sha256::digest(&content);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Appends the number of tokens, and then each token with its id, in id order.
fn push_tokens(content: &mut Vec<u8>, table: &RankTable) {
    content.extend_from_slice(&(table.len() as u64).to_le_bytes());
    for (token, id) in table.iter() {
        push_token(content, id, token);
    }
}

fn push_token(content: &mut Vec<u8>, id: u32, token: &[u8]) {
    content.extend_from_slice(&id.to_le_bytes());
    content.extend_from_slice(&(token.len() as u32).to_le_bytes());
    content.extend_from_slice(token);
}
