//! The number of tokens of every start of a text, each found from shorter ones.
//!
//! Let units merge by priority: the best pair first, the leftmost of several. **Theorem.** Parts are
//! what their units merge to if each two neighbours are what their own units merge to.
//!
//! *Proof.* As long as no merge crosses an end of the two neighbours, those within them are the
//! ones of their own units, in the same order: the best of all pairs is also the best of theirs. If
//! the parts are the result, no merge ever crosses an end, and in the end no pair can merge. If each
//! two neighbours are what their units merge to, a first merge that crosses the end between two
//! would be the best of their own pairs, and so cross it there too. ∎
//!
//! So the last part of a start is the one that can follow the last part of the start before it.
//! `context/valid_cuts.py` knows the pipelines of which every start of a piece is a piece. Once a start
//! does not fit, and no part reaches further that begins where one fits, no longer start fits.

use std::collections::HashMap;

use super::located::Step;
use super::model::Model;
use super::pair_merge::{NO_SYMBOL, PairMerger, Pairs, Part};
use super::units::LookedUp;
use super::{NameSet, Pipeline, pre_tokenise};
use crate::cancel;
use crate::fit::{End, ceil};

/// The last part of a start of a piece, and the ids up to it.
#[derive(Clone, Copy, Default)]
struct Last {
    symbol: u32,
    /// Its first unit.
    first: usize,
    count: usize,
    /// Whether an unknown part is not counted yet.
    pending: bool,
}

/// The starts of a text, up to the unit at hand of a piece.
#[derive(Default)]
struct Starts<'a> {
    text: &'a str,
    budget: usize,
    found: End,
    /// The last place with a count.
    place: usize,
    /// The ids before the piece, and up to the unit.
    before: usize,
    count: usize,
    /// The end of the unit, and that of the longest part that may fit.
    end: usize,
    reach: usize,
    units: Vec<Part>,
    lasts: Vec<Last>,
    /// What `follows` found.
    known: HashMap<(u32, u32), bool>,
    merger: PairMerger,
    parts: Vec<Part>,
}

impl Pipeline {
    /// The ids of the starts of ordinary text, apart from those that end within an added token, up
    /// to a place at and after which none has at most `budget`. None if the call was cancelled.
    pub fn start_counts(&self, text: &str, allowed: &NameSet, budget: usize) -> Option<End> {
        let mut starts = Starts {
            text,
            budget,
            ..Starts::default()
        };
        let (none, mut bytes) = (NameSet::new(Vec::new()), Vec::new());
        let written = self.has_byte_alphabet();
        let found = self.trace(text, allowed, &none, &mut |step| match step {
            Step::Token(_, start, last) => starts.token(start, last),
            Step::Piece(piece, origins) if written => {
                pre_tokenise::read(piece, &mut bytes);
                let origins: Vec<_> = piece.char_indices().map(|(at, _)| origins[at]).collect();
                starts.piece(&self.model, &bytes, &origins)
            }
            Step::Piece(piece, origins) => starts.piece(&self.model, piece.as_bytes(), origins),
        });
        if starts.found.beyond.is_none() {
            // What follows is not known.
            starts.reach = usize::MAX;
            starts.up_to(text.len());
        }
        (found.is_ok() && !cancel::is_set()).then_some(starts.found)
    }
}

impl Starts<'_> {
    /// Give the places up to one the count so far; false where no later one fits.
    fn up_to(&mut self, place: usize) -> bool {
        while self.place < place {
            let next = ceil(self.text, self.place + 1);
            if self.count > self.budget && self.reach <= self.end {
                self.found.beyond = Some(next);
                return false;
            }
            self.found.counts.push((next, self.count));
            self.place = next;
        }
        !cancel::is_set()
    }

    /// Go on after an added token, whose last character comes from the one at `last`.
    fn token(&mut self, start: usize, last: usize) -> bool {
        let wanted = self.up_to(start);
        self.begin();
        self.count += 1;
        self.place = self.place.max(last);
        wanted
    }

    /// Begin a piece.
    fn begin(&mut self) {
        (self.before, self.end, self.reach) = (self.count, 0, 0);
        self.units.clear();
        self.lasts.clear();
    }

    /// Go on with the units of a piece; false where no later place fits.
    fn piece(&mut self, model: &Model, piece: &[u8], origins: &[usize]) -> bool {
        let mut wanted = true;
        model.units.each(piece, |start, unit| {
            wanted = wanted && self.up_to(origins[start]);
            if !wanted {
                return;
            }
            if start == 0 {
                self.begin();
            }
            let before = self.lasts.last().copied().unwrap_or_default();
            if self.before + before.count < self.budget {
                self.reach = self
                    .reach
                    .max(start + model.spans.longest_from(&piece[start..]));
            }
            self.end = start + unit.bytes(&mut [0; 4]).len();
            self.units.push(Part {
                symbol: model.symbol(unit),
                start: start as u32,
            });
            let last = self.last(model, piece);
            self.lasts.push(last);
            self.count = self.before
                + if model.whole_first && model.tokens.get(&piece[..self.end]).is_some() {
                    1
                } else {
                    last.count + usize::from(last.pending && model.unknown.is_some())
                };
        });
        wanted
    }

    /// The last part of what the units merge to.
    fn last(&mut self, model: &Model, piece: &[u8]) -> Last {
        let unit = self.units.len() - 1;
        let longest = model.spans.longest_to(&piece[..self.end]);
        let far = |part: &Part| part.start as usize + longest < self.end;
        for first in self.units.partition_point(far).min(unit)..=unit {
            let part = &piece[self.units[first].start as usize..self.end];
            let symbol = match model.tokens.get(part) {
                _ if first == unit => self.units[unit].symbol,
                Some(symbol) => symbol,
                None => continue,
            };
            let before = first.checked_sub(1).map(|at| self.lasts[at]);
            if !self.follows(&model.pairs, before, first, symbol) {
                continue;
            }
            let before = before.unwrap_or_default();
            self.parts.clear();
            let mut ids = LookedUp::into(model, &mut self.parts);
            ids.pending = before.pending.then_some(0);
            match &model.strings {
                Some(strings) => ids.push_apart(part, 0, strings),
                None if first == unit => ids.push(part, 0),
                None => ids.known(symbol, 0),
            }
            let pending = ids.pending.is_some();
            return Last {
                symbol,
                first,
                count: before.count + self.parts.len(),
                pending,
            };
        }
        // The units merge to something, unless merging was cancelled.
        assert!(cancel::is_set(), "no part follows");
        Last::default()
    }

    /// Whether the units of two parts merge to these; the second one starts with the unit `first`.
    fn follows(&mut self, pairs: &Pairs, before: Option<Last>, first: usize, symbol: u32) -> bool {
        let before = before.filter(|before| before.symbol != NO_SYMBOL);
        let left = before.map_or(NO_SYMBOL, |before| before.symbol);
        symbol == NO_SYMBOL
            || *self.known.entry((left, symbol)).or_insert_with(|| {
                let from = before.map_or(first, |before| before.first);
                let of = |symbol, unit: usize| Part {
                    symbol,
                    start: self.units[unit].start,
                };
                self.parts.clear();
                self.parts.extend_from_slice(&self.units[from..]);
                self.merger.merge(pairs, &mut self.parts);
                let left = before.map(|_| of(left, from));
                self.parts
                    .iter()
                    .copied()
                    .eq(left.into_iter().chain([of(symbol, first)]))
            })
    }
}
