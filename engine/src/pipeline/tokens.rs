//! A map from the bytes of tokens to ids.

use std::collections::HashMap;

use crate::vocabulary::short_table::{Key, ShortTable};

/// An immutable map from byte strings to ids.
pub struct Tokens {
    short: ShortTable,
    long: HashMap<Box<[u8]>, u32>,
    longest: usize,
}

impl Tokens {
    /// Build a map of distinct, non-empty tokens.
    pub fn new<T: AsRef<[u8]>>(tokens: &[(T, u32)]) -> Self {
        let tokens = tokens.iter().map(|(token, id)| (token.as_ref(), *id));
        let longest = tokens.clone().map(|(token, _)| token.len()).max();
        let key = |(token, id): (&[u8], u32)| (Key::of(token, 0, token.len()), id);
        let (short, _) = ShortTable::of(tokens.clone().map(key));
        let long = tokens
            .filter(|(token, _)| !short.has_all_of(token.len()))
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
            len if self.short.has_all_of(len) => {
                let key = Key::of(token, 0, len);
                self.short.find(key, key.hash())
            }
            len if len <= self.longest => self.long.get(token).copied(),
            _ => None,
        }
    }
}
