//! The tokens of every end of a text, each found from shorter ones: `prefixes` the other way round.

use std::collections::HashMap;

use crate::boundaries::floor;
use crate::bpe::Bpe;
use crate::prefixes::Neighbours;
use crate::split::Ends;

/// The pre-token that holds a token ends where it does for one of these characters: the last ones up
/// to it.
const STARTS: usize = 4;

pub struct Suffixes<'a> {
    core: &'a Bpe,
    text: &'a str,
    neighbours: Neighbours<'a>,
    /// By a place: the end of the pre-token that starts there.
    ends: HashMap<usize, usize>,
    /// By the end of a pre-token.
    parts: HashMap<usize, Part>,
}

/// The ends of one pre-token.
struct Part {
    /// The tokens of the text after it.
    rest: usize,
    /// By the place where an end starts: its first token, and how many it has.
    known: HashMap<usize, (u32, usize)>,
}

impl<'a> Suffixes<'a> {
    pub fn new(core: &'a Bpe, text: &'a str) -> Self {
        Suffixes {
            core,
            text,
            neighbours: Neighbours::new(core),
            ends: HashMap::new(),
            parts: HashMap::new(),
        }
    }

    /// The tokens of the text from a character on.
    pub fn count(&mut self, place: usize) -> usize {
        let end = self.end_of(place);
        self.count_with(place, end)
    }

    /// The fewest tokens that can stand from `place` on, whatever stands before.
    pub fn least(&mut self, place: usize) -> usize {
        let (mut seen, mut least) = (Vec::new(), usize::MAX);
        let mut start = floor(self.text, place);
        for _ in 0..STARTS {
            let end = self.end_of(start);
            if end > place && !seen.contains(&end) {
                seen.push(end);
                least = least.min(self.count_with(place, end));
            }
            if start == 0 {
                break;
            }
            start = floor(self.text, start - 1);
        }
        least
    }

    fn end_of(&mut self, start: usize) -> usize {
        *self.ends.entry(start).or_insert_with(|| {
            let mut ends = Ends::new();
            self.core.splitter().fill(self.text, start, &mut ends);
            ends.as_slice().first().copied().unwrap_or(self.text.len())
        })
    }

    /// The tokens from `place` on, where a pre-token ends at `end`.
    fn count_with(&mut self, place: usize, end: usize) -> usize {
        let piece = &self.text.as_bytes()[place..end];
        let part = self.parts.entry(end).or_insert_with(|| Part {
            rest: self.core.count_split(&self.text[end..]),
            known: HashMap::new(),
        });
        let count = part.count(self.core, &mut self.neighbours, piece, place);
        if self.neighbours.is_token(piece) {
            1 + part.rest
        } else {
            count + part.rest
        }
    }
}

impl Part {
    /// The tokens that the bytes from `place` to the end of the pre-token merge to.
    fn count(
        &mut self,
        core: &Bpe,
        neighbours: &mut Neighbours<'_>,
        piece: &[u8],
        place: usize,
    ) -> usize {
        if let Some(&(_, count)) = self.known.get(&place) {
            return count;
        }
        for length in (1..=core.lengths().longest_from(piece)).rev() {
            if let Some(&(first, count)) = self.known.get(&(place + length))
                && let Some(token) = core.table().id_of(&piece[..length])
                && neighbours.are(token, first)
            {
                self.known.insert(place, (token, count + 1));
                return count + 1;
            }
        }
        let ids = core.ids_of(piece);
        // One token may be a whole pre-token that its bytes do not merge to.
        if ids.len() > 1 {
            let mut at = place;
            for (index, &id) in ids.iter().enumerate() {
                self.known.insert(at, (id, ids.len() - index));
                at += core.token_length(id);
            }
        }
        ids.len()
    }
}
