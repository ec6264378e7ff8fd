//! Tokens by their bytes.

use std::collections::HashMap;

use crate::vocabulary::short_table::{Key, LONGEST, ShortTable};

/// A map from byte strings to ids, never changed after it is built.
pub struct Tokens {
    short: ShortTable,
    long: HashMap<Box<[u8]>, u32>,
    longest: usize,
}

impl Tokens {
    /// A map of tokens, all different and none of them empty.
    pub fn new<T: AsRef<[u8]>>(tokens: &[(T, u32)]) -> Self {
        let tokens = tokens.iter().map(|(token, id)| (token.as_ref(), *id));
        let longest = tokens.clone().map(|(token, _)| token.len()).max();
        let (short_tokens, long_tokens): (Vec<_>, Vec<_>) =
            tokens.partition(|(token, _)| token.len() <= LONGEST);
        let sizes = short_tokens.iter().map(|(token, id)| (token.len(), *id));
        let mut short = ShortTable::with_room(sizes);
        for (token, id) in short_tokens {
            let key = Key::of(token, 0, token.len());
            short.insert(key, key.hash(), id);
        }
        let long = long_tokens
            .into_iter()
            .map(|(token, id)| (Box::from(token), id))
            .collect();
        Tokens {
            short,
            long,
            longest: longest.unwrap_or(0),
        }
    }

    #[inline]
    pub fn get(&self, token: &[u8]) -> Option<u32> {
        match token.len() {
            0 => None,
            len if len <= LONGEST => {
                let key = Key::of(token, 0, len);
                self.short.find(key, key.hash())
            }
            len if len <= self.longest => self.long.get(token).copied(),
            _ => None,
        }
    }
}
