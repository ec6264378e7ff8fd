//! Tokens by their bytes.

use std::collections::HashMap;

use crate::short_table::{Key, LONGEST, ShortTable};

/// A map from byte strings to ids, never changed after it is built.
pub struct Tokens {
    short: ShortTable,
    long: HashMap<Box<[u8]>, u32>,
    longest: usize,
}

impl Tokens {
    /// A map of tokens, all different and none of them empty.
    pub fn new(tokens: &[(Vec<u8>, u32)]) -> Self {
        let is_short = |token: &[u8]| token.len() <= LONGEST;
        let mut short =
            ShortTable::with_room(tokens.iter().filter(|(token, _)| is_short(token)).count());
        let mut long = HashMap::new();
        for (token, id) in tokens {
            if is_short(token) {
                short.insert(Key::of(token, 0, token.len()), *id);
            } else {
                long.insert(token.clone().into_boxed_slice(), *id);
            }
        }
        let longest = tokens.iter().map(|(token, _)| token.len()).max();
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
