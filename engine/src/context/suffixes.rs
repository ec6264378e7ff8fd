//! The tokens of every end of a text, each found from shorter ones: `prefixes` the other way round.

use std::collections::HashMap;

use crate::bpe::Bpe;
use crate::context::prefixes::Neighbours;
use crate::split::Ends;

/// The pre-token that holds a token ends where it does for one of these characters: the last ones
/// up to it.
const STARTS: usize = 4;

/// Maximum length of an end that is merged whole, in lengths of the longest token.
const NEAR: usize = 8;

pub struct Suffixes<'a> {
    core: &'a Bpe,
    pub text: &'a str,
    pub neighbours: Neighbours<'a>,
    /// By a place: the end of the pre-token that starts there.
    ends: HashMap<usize, usize>,
    /// By the end of a pre-token: the tokens of the text after it.
    rest: HashMap<usize, usize>,
    /// By the end of a pre-token and the place where an end of it starts: its first token, and how
    /// many it has.
    known: HashMap<(usize, usize), (u32, usize)>,
}

impl<'a> Suffixes<'a> {
    pub fn new(core: &'a Bpe, text: &'a str) -> Self {
        Suffixes {
            core,
            text,
            neighbours: Neighbours::new(core),
            ends: HashMap::new(),
            rest: HashMap::from([(text.len(), 0)]),
            known: HashMap::new(),
        }
    }

    /// The tokens of the text from a character on.
    pub fn count(&mut self, place: usize) -> usize {
        let end = self.end_of(place);
        self.count_with(place, end)
    }

    /// The fewest tokens that can stand from `place` on, whatever stands before. The pre-token that
    /// holds `place` may also have one of `ends`.
    pub fn least(&mut self, place: usize, mut ends: Vec<usize>) -> usize {
        let past = self.text.ceil_char_boundary(place + 1);
        let starts = self.text[..past].char_indices().rev().take(STARTS);
        ends.extend(starts.map(|(start, _)| self.end_of(start)));
        ends.sort_unstable();
        ends.dedup();
        let ends = ends.into_iter().filter(|&end| end > place);
        let counts = ends.map(|end| self.count_with(place, end));
        counts.min().unwrap_or(usize::MAX)
    }

    fn end_of(&mut self, start: usize) -> usize {
        *self.ends.entry(start).or_insert_with(|| {
            let mut ends = Ends::new();
            self.core.splitter().fill(self.text, start, &mut ends);
            ends.as_slice().first().copied().unwrap_or(self.text.len())
        })
    }

    /// The tokens after the end of a pre-token.
    pub fn rest(&mut self, end: usize) -> usize {
        if let Some(&count) = self.rest.get(&end) {
            return count;
        }
        let (core, text) = (self.core, self.text);
        let mut ends = Ends::new();
        core.splitter().fill(text, end, &mut ends);
        let met = ends
            .as_slice()
            .iter()
            .position(|at| self.rest.contains_key(at));
        let count = match met.map(|index| &ends.as_slice()[..=index]) {
            Some(ends) => {
                core.count_pieces(text.as_bytes(), end, ends) + self.rest[&ends[ends.len() - 1]]
            }
            None => core.count_split(&text[end..]),
        };
        self.rest.insert(end, count);
        count
    }

    /// The tokens from `place` on, where a pre-token ends at `end`.
    fn count_with(&mut self, place: usize, end: usize) -> usize {
        let piece = &self.text.as_bytes()[place..end];
        let count = if self.neighbours.is_token(piece) {
            1
        } else {
            self.first(place, end).1
        };
        count + self.rest(end)
    }

    /// The first token from `place` to the end of a pre-token, and how many there are.
    pub fn first(&mut self, place: usize, end: usize) -> (u32, usize) {
        if let Some(&found) = self.known.get(&(end, place)) {
            return found;
        }
        let (core, piece) = (self.core, &self.text.as_bytes()[place..end]);
        for length in (1..=core.lengths().longest_from(piece)).rev() {
            if let Some(&(first, count)) = self.known.get(&(end, place + length))
                && let Some(token) = core.table().id_of(&piece[..length])
                && self.neighbours.are(token, first)
            {
                self.known.insert((end, place), (token, count + 1));
                return (token, count + 1);
            }
        }
        if let Some(found) = self.longest_tokens(place, end) {
            return found;
        }
        // One token may be a whole pre-token that its bytes do not merge to. It has no neighbours.
        let (ids, mut at) = (core.ids_of(piece), place);
        for (index, &id) in ids.iter().enumerate() {
            self.known.insert((end, at), (id, ids.len() - index));
            at += core.token_length(id);
        }
        self.known[&(end, place)]
    }

    /// The result of `first` if the tokens up to near `end` are the longest ones, one after
    /// another, as in a run of one character; otherwise None.
    fn longest_tokens(&mut self, place: usize, end: usize) -> Option<(u32, usize)> {
        let (lengths, table) = (self.core.lengths(), self.core.table());
        let (mut tokens, mut at) = (Vec::new(), place);
        while end - at > NEAR * lengths.longest() && !self.known.contains_key(&(end, at)) {
            let piece = &self.text.as_bytes()[at..end];
            let mut longest = (1..=lengths.longest_from(piece)).rev();
            let token = longest.find_map(|length| table.id_of(&piece[..length]))?;
            if let Some(&(_, last)) = tokens.last()
                && !self.neighbours.are(last, token)
            {
                return None;
            }
            tokens.push((at, token));
            at += self.core.token_length(token);
        }
        tokens.last()?;
        let (mut next, mut count) = self.first(at, end);
        for (at, token) in tokens.into_iter().rev() {
            if !self.neighbours.are(token, next) {
                return None;
            }
            (next, count) = (token, count + 1);
            self.known.insert((end, at), (next, count));
        }
        Some((next, count))
    }
}
