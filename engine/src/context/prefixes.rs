//! The tokens of every start of one long pre-token, each found from shorter ones.
//!
//! A sequence of tokens is what its bytes merge to if that holds for each two neighbours (see
//! "So many tokens, so little time" by H. van Antwerpen and A. Neubeck, GitHub, 2024). So if the
//! bytes up to p have the last token a, and a and b are what their bytes merge to, then the bytes
//! up to the end of b have one token more. If there is no such b, all bytes are merged.

use std::collections::HashMap;

use crate::bpe::Bpe;
use crate::output::Ids;

pub struct Prefixes<'a> {
    neighbours: Neighbours<'a>,
    text: &'a [u8],
    start: usize,
    /// By the end of a start: its last token, and how many it has.
    known: HashMap<usize, (u32, usize)>,
}

impl<'a> Prefixes<'a> {
    /// Those of the pre-token of `text` that begins at `start`.
    pub fn new(core: &'a Bpe, text: &'a [u8], start: usize) -> Self {
        Prefixes {
            neighbours: Neighbours::new(core),
            text,
            start,
            known: HashMap::new(),
        }
    }

    /// The tokens of the bytes up to `end`, which is after the start, as a pre-token.
    pub fn count(&mut self, end: usize) -> usize {
        if self.neighbours.is_token(&self.text[self.start..end]) {
            1
        } else {
            self.last(end).1
        }
    }

    /// The last token of the bytes up to `end`, which is after the start, and how many they have.
    pub fn last(&mut self, end: usize) -> (u32, usize) {
        if let Some(&found) = self.known.get(&end) {
            return found;
        }
        let core = self.neighbours.core;
        let longest = core.lengths().longest_to(&self.text[self.start..end]);
        for before in end - longest..end {
            if let Some(&(last, count)) = self.known.get(&before)
                && let Some(token) = core.table().id_of(&self.text[before..end])
                && self.neighbours.are(last, token)
            {
                self.known.insert(end, (token, count + 1));
                return (token, count + 1);
            }
        }
        self.merge(end);
        self.known[&end]
    }

    /// The ids of the bytes up to `end`, which is after the start. Afterwards it is known where
    /// each ends.
    ///
    /// One token may be a whole pre-token that its bytes do not merge to. It has no neighbours.
    pub fn merge(&mut self, end: usize) -> Vec<u32> {
        let ids = self.neighbours.core.ids_of(&self.text[self.start..end]);
        let mut at = self.start;
        for (index, &id) in ids.iter().enumerate() {
            at += self.neighbours.core.token_length(id);
            self.known.insert(at, (id, index + 1));
        }
        ids
    }
}

/// Which tokens can follow one another in a pre-token.
pub struct Neighbours<'a> {
    core: &'a Bpe,
    known: HashMap<(u32, u32), bool>,
}

impl<'a> Neighbours<'a> {
    pub fn new(core: &'a Bpe) -> Self {
        Neighbours {
            core,
            known: HashMap::new(),
        }
    }

    /// Whether two tokens are what their bytes merge to.
    pub fn are(&mut self, left: u32, right: u32) -> bool {
        *self.known.entry((left, right)).or_insert_with(|| {
            let token = |id| self.core.table().token(id).unwrap_or_default();
            self.core.ids_of(&[token(left), token(right)].concat()) == [left, right]
        })
    }

    /// Whether a pre-token is one token.
    pub fn is_token(&self, bytes: &[u8]) -> bool {
        bytes.len() <= self.core.lengths().longest() && self.core.table().id_of(bytes).is_some()
    }
}

impl Bpe {
    /// The ids of one pre-token.
    pub(crate) fn ids_of(&self, piece: &[u8]) -> Vec<u32> {
        let mut ids = Ids::default();
        self.give_pieces(piece, 0, &[piece.len()], &mut ids);
        ids.0
    }

    pub(crate) fn token_length(&self, id: u32) -> usize {
        self.table().token(id).map_or(0, <[u8]>::len)
    }
}
