//! The number of tokens of every start, or of every end, of a text, each found from shorter ones.
//!
//! `growing` finds the part at the cut. `context/valid_cuts.py` knows the pipelines of which every
//! start, or end, of a piece is a piece. Once a start exceeds the budget, and no part that begins
//! within the budget reaches beyond it, no longer start fits; likewise for ends.

use super::growing::Growing;
use super::model::Model;
use super::walk::Found;
use super::{Pipeline, pre_tokenise};
use crate::cancel;
use crate::context::fit::Counts;
use crate::context::fit_end::End;
use crate::vocabulary::special::SpecialSet;

/// The starts of a text, or leftwards its ends, up to the unit at hand of a piece.
#[derive(Default)]
struct Cuts<'a> {
    text: &'a str,
    budget: usize,
    /// What a pipeline puts before a text, unless it starts with the second one.
    front: [Vec<u8>; 2],
    /// What `Bpe::fit_end` returns.
    beyond: Option<usize>,
    counts: Counts,
    /// The last place.
    place: usize,
    /// The ids of the pieces and tokens before, and of the unit and them.
    before: usize,
    all: usize,
    /// The ids of a text that is cut at the next place, leftwards the last; None if not known.
    count: Option<usize>,
    /// Whether no text fits that is longer than to the next place.
    is_beyond: bool,
    growing: Growing,
}

impl Pipeline {
    /// The ids of the starts of ordinary text, apart from those that end within an added token, up
    /// to a place at and after which none has at most `budget`. With `front` those of the ends,
    /// apart from those that start within or after an added token, up to a place before which none
    /// has at most `budget` that starts before a character which gives a unit. None if the call was
    /// cancelled.
    pub fn cut_counts(
        &self,
        text: &str,
        allowed: &SpecialSet,
        budget: usize,
        front: Option<[&str; 2]>,
    ) -> Option<End> {
        let is_written = self.has_byte_alphabet();
        let bytes_of =
            |piece: &str| pre_tokenise::bytes_of(piece, is_written, &mut Vec::new()).to_vec();
        let mut cuts = Cuts {
            text,
            budget,
            front: front.unwrap_or_default().map(bytes_of),
            place: front.map_or(0, |_| text.len()),
            count: front.is_none().then_some(0),
            ..Cuts::default()
        };
        cuts.growing.leftwards = front.is_some();
        let (none, mut steps) = (SpecialSet::new(Vec::new(), |_| None), Vec::new());
        let found = self.walk(text, allowed, &none, true, &mut |found| {
            let step = match found {
                Found::Token(_, start, last) => (None, vec![start, last]),
                Found::Piece(piece, origins) if is_written => {
                    let origins = piece.char_indices().map(|(at, _)| origins[at]).collect();
                    (Some(bytes_of(piece)), origins)
                }
                Found::Piece(piece, origins) => (Some(bytes_of(piece)), origins.to_vec()),
            };
            if front.is_none() {
                return cuts.step(&self.model, &step, true);
            }
            steps.push(step);
            !cancel::is_set()
        });
        let mut wanted = true;
        while let Some(step) = steps.pop() {
            let is_within = steps.last().is_some_and(|(piece, _)| piece.is_some());
            wanted = wanted && cuts.step(&self.model, &step, is_within);
        }
        if front.is_some() {
            cuts.counts.reverse();
        } else if cuts.beyond.is_none() {
            cuts.is_beyond = false; // what follows is not known
            cuts.go_to(text.len());
        }
        (found.is_ok() && !cancel::is_set()).then_some((cuts.beyond, cuts.counts))
    }
}

impl Cuts<'_> {
    /// Give the places up to one the count so far, leftwards the last one; false where no later
    /// one fits.
    fn go_to(&mut self, place: usize) -> bool {
        let before = self.place;
        if !self.growing.leftwards {
            while self.place < place {
                self.place = self.text.ceil_char_boundary(self.place + 1);
                self.give();
            }
        } else if place < before {
            self.give();
            self.place = place;
        }
        if self.is_beyond && self.place != before {
            self.beyond = Some(if self.growing.leftwards {
                before
            } else {
                place
            });
        }
        self.beyond.is_none() && !cancel::is_set()
    }

    fn give(&mut self) {
        let given = self.count.map(|count| (self.place, count));
        self.counts.extend(given);
    }

    /// Go on with an added token, or with a piece; leftwards, one that is within a stretch of text.
    /// False if no later place fits.
    fn step(
        &mut self,
        model: &Model,
        (piece, origins): &(Option<Vec<u8>>, Vec<usize>),
        is_within: bool,
    ) -> bool {
        let Some(piece) = piece else {
            return self.token(origins[0], origins[1]);
        };
        let (offset, leftwards) = (self.front[0].len(), self.growing.leftwards);
        let mut bytes = vec![0; offset];
        bytes.extend_from_slice(piece);
        let mut units = Vec::new();
        model.units.each(piece, |start, unit| {
            units.push((start..start + unit.bytes(&mut [0; 4]).len(), unit));
        });
        let mut reach = 0;
        if leftwards {
            units.reverse();
            reach = piece.len();
        }
        self.growing.truncate(0);
        self.before = self.all;
        for (at, unit) in units {
            if !self.go_to(origins[at.start]) {
                return false;
            }
            if self.before + self.growing.outer().count < self.budget {
                reach = if leftwards {
                    reach.min(at.end - model.spans.longest_to(&piece[..at.end]))
                } else {
                    reach.max(at.start + model.spans.longest_from(&piece[at.start..]))
                };
            }
            self.growing.add(model, &bytes, offset + at.start, unit);
            let (whole, is_reached) = if leftwards {
                (at.start..piece.len(), reach < at.start)
            } else {
                (0..at.end, reach > at.end)
            };
            self.all = self.before + self.growing.count(model, &piece[whole]);
            self.is_beyond = self.all > self.budget && !is_reached;
            self.count = Some(self.all);
            if leftwards {
                let is_known = is_within || origins[at.start] != origins[0];
                self.count = is_known.then(|| self.with_front(model, &mut bytes, at.start));
            }
        }
        true
    }

    fn token(&mut self, start: usize, last: usize) -> bool {
        let leftwards = self.growing.leftwards;
        let wanted = self.go_to(if leftwards { last } else { start });
        self.all += 1;
        self.is_beyond = self.all > self.budget;
        self.count = (!leftwards).then_some(self.all);
        self.place = self.place.max(last);
        if wanted && leftwards {
            self.place = start;
            self.beyond = self.is_beyond.then_some(start);
        }
        wanted && self.beyond.is_none()
    }

    /// The ids from the units of a piece from `start` on, after what is put before them.
    fn with_front(&mut self, model: &Model, bytes: &mut [u8], start: usize) -> usize {
        let [front, unless] = &self.front;
        let (at, units, mut added) = (front.len() + start, self.growing.len(), Vec::new());
        if unless.is_empty() || !bytes[at..].starts_with(unless) {
            let add = |from, unit| added.push((start + from, unit));
            model.units.each(front, add);
        }
        let from = added.first().map_or(at, |&(from, _)| from);
        let replaced = bytes[from..at].to_vec();
        bytes[from..at].copy_from_slice(&front[..at - from]);
        while let Some((from, unit)) = added.pop() {
            self.growing.add(model, bytes, from, unit);
        }
        let count = self.growing.count(model, &bytes[from..]);
        self.growing.truncate(units);
        bytes[from..at].copy_from_slice(&replaced);
        self.before + count
    }
}
