//! The tokens of every start of one long pre-token, each found from shorter ones.
//!
//! A sequence of tokens is what its bytes merge to if that holds of each two neighbours (see
//! "So many tokens, so little time" by H. van Antwerpen and A. Neubeck, GitHub, 2024). So if the
//! bytes up to p have the last token a, and a and b are what their bytes merge to, then the bytes up
//! to the end of b have one token more. Where no such b is found, all is merged.

use std::collections::HashMap;

use crate::bpe::Bpe;
use crate::output::Ids;

pub struct Prefixes<'a> {
    core: &'a Bpe,
    text: &'a [u8],
    start: usize,
    /// By the end of a start: its last token, and how many it has.
    known: HashMap<usize, (u32, usize)>,
}

impl<'a> Prefixes<'a> {
    /// Those of the pre-token of `text` that begins at `start`.
    pub fn new(core: &'a Bpe, text: &'a [u8], start: usize) -> Self {
        Prefixes {
            core,
            text,
            start,
            known: HashMap::new(),
        }
    }

    /// The tokens of the bytes up to `end`, behind the start.
    pub fn count(&mut self, end: usize) -> usize {
        if let Some(&(_, count)) = self.known.get(&end) {
            return count;
        }
        let longest = self.core.longest_token().min(end - self.start);
        for before in (end - longest..end).rev() {
            let Some(&(last, count)) = self.known.get(&before) else {
                continue;
            };
            let Some(token) = self.core.table().id_of(&self.text[before..end]) else {
                continue;
            };
            if self.are_neighbours(last, token) {
                self.known.insert(end, (token, count + 1));
                return count + 1;
            }
        }
        self.merge(end).len()
    }

    /// The ids of the bytes up to `end`, behind the start; where each ends is known then.
    pub fn merge(&mut self, end: usize) -> Vec<u32> {
        let ids = self.ids(&self.text[self.start..end]);
        // One token may be a whole pre-token that its bytes do not merge to.
        if ids.len() > 1 {
            let mut at = self.start;
            for (index, &id) in ids.iter().enumerate() {
                at += self.core.table().token(id).map_or(0, <[u8]>::len);
                self.known.insert(at, (id, index + 1));
            }
        }
        ids
    }

    /// Whether two tokens are what their bytes merge to.
    fn are_neighbours(&self, left: u32, right: u32) -> bool {
        let token = |id| self.core.table().token(id).unwrap_or_default();
        let both = [token(left), token(right)].concat();
        self.ids(&both) == [left, right]
    }

    fn ids(&self, piece: &[u8]) -> Vec<u32> {
        let mut ids = Ids::default();
        self.core.give_pieces(piece, 0, &[piece.len()], &mut ids);
        ids.0
    }
}
