//! What the units of a piece merge to, while the piece grows at one end.
//!
//! Let units merge by priority: the best pair first, the leftmost of several. **Theorem.** Parts
//! are what their units merge to if each two neighbours are what their own units merge to.
//!
//! *Proof.* As long as no merge crosses an end of the two neighbours, those within them are the
//! ones of their own units, in the same order: the best of all pairs is also the best of theirs. If
//! the parts are the result, no merge ever crosses an end, and in the end no pair can merge. If
//! each two neighbours are what their units merge to, a first merge that crosses the end between
//! two would be the best of their own pairs, and so cross it there too. ∎
//!
//! So the last part of a start is the one that can follow the last part of the start before it; and
//! the first part of an end the one that can stand before the first part of an end after it.

use std::collections::HashMap;

use super::model::Model;
use super::pair_merge::{NO_SYMBOL, PairMerger, Pairs, Part};
use super::units::{LookedUp, Unit};
use crate::cancel;

/// The part at the growing end, and the ids of all parts.
#[derive(Clone, Copy, Default)]
pub(super) struct Outer {
    symbol: u32,
    /// Its innermost unit.
    inner: usize,
    pub(super) count: usize,
    /// Whether an unknown part is not counted yet.
    pending: bool,
}

/// The units of a piece, in the order in which they are added, and the outer part with each.
#[derive(Default)]
pub(super) struct Growing {
    /// Whether each unit is added before the others; otherwise after them.
    pub(super) leftwards: bool,
    /// Where the first unit begins, or leftwards ends.
    edge: usize,
    units: Vec<Part>,
    outers: Vec<Outer>,
    /// What `fits` found.
    known: HashMap<(u32, u32), bool>,
    merger: PairMerger,
    parts: Vec<Part>,
}

impl Growing {
    /// Keep only the first units.
    pub(super) fn truncate(&mut self, units: usize) {
        self.units.truncate(units);
        self.outers.truncate(units);
    }

    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    /// The outer part with all units.
    pub(super) fn outer(&self) -> Outer {
        self.outers.last().copied().unwrap_or_default()
    }

    /// The ids of a piece that has only these units.
    pub(super) fn count(&self, model: &Model, piece: &[u8]) -> usize {
        if model.whole_first && model.tokens.get(piece).is_some() {
            return 1;
        }
        let outer = self.outer();
        outer.count + usize::from(outer.pending && model.unknown.is_some())
    }

    /// Add the unit of `piece` at `start`.
    pub(super) fn add(&mut self, model: &Model, piece: &[u8], start: usize, unit: Unit) {
        let (newest, end) = (self.len(), start + unit.bytes(&mut [0; 4]).len());
        if newest == 0 {
            self.edge = if self.leftwards { end } else { start };
        }
        let (symbol, at) = (model.symbol(unit), start as u32);
        self.units.push(Part { symbol, start: at });
        let longest = if self.leftwards {
            model.spans.longest_from(&piece[start..self.edge])
        } else {
            model.spans.longest_to(&piece[self.edge..end])
        };
        for first in (0..=newest).rev() {
            // The units from the first one to the newest.
            let part = match first.checked_sub(1) {
                _ if !self.leftwards => self.units[first].start as usize..end,
                None => start..self.edge,
                Some(inner) => start..self.units[inner].start as usize,
            };
            if first < newest && part.len() > longest {
                break;
            }
            let part = &piece[part];
            let symbol = match model.tokens.get(part) {
                _ if first == newest => symbol,
                Some(symbol) => symbol,
                None => continue,
            };
            let inner = first.checked_sub(1).map(|at| self.outers[at]);
            if !self.fits(&model.pairs, inner, first, symbol) {
                continue;
            }
            let inner = inner.unwrap_or_default();
            let mut ids = LookedUp::into(model, &mut self.parts);
            ids.leftwards = self.leftwards;
            ids.pending = inner.pending.then_some(0);
            match &model.taken_apart {
                Some(taken_apart) => ids.push_apart(part, 0, taken_apart),
                None if first == newest => ids.push(part, 0),
                None => ids.known(symbol, 0),
            }
            let pending = ids.pending.is_some();
            let count = inner.count + self.parts.len();
            self.outers.push(Outer {
                symbol,
                inner: first,
                count,
                pending,
            });
            return;
        }
        // The units merge to something, unless merging was cancelled.
        assert!(cancel::is_set(), "no part fits");
        self.outers.push(Outer::default());
    }

    /// Whether the units of two parts merge to these; the outer one has the units from `first` on.
    fn fits(&mut self, pairs: &Pairs, inner: Option<Outer>, first: usize, symbol: u32) -> bool {
        let inner = inner.filter(|inner| inner.symbol != NO_SYMBOL);
        let beside = inner.map_or(NO_SYMBOL, |inner| inner.symbol);
        symbol == NO_SYMBOL
            || *self.known.entry((beside, symbol)).or_insert_with(|| {
                let from = inner.map_or(first, |inner| inner.inner);
                self.units[from..].clone_into(&mut self.parts);
                let (mut outer, mut other) = (self.units[first], self.units[from]);
                if self.leftwards {
                    self.parts.reverse();
                    outer = self.parts[0];
                    other = self.units[first.saturating_sub(1)];
                }
                (outer.symbol, other.symbol) = (symbol, beside);
                self.merger.merge(pairs, &mut self.parts);
                match inner {
                    None => self.parts == [outer],
                    Some(_) if self.leftwards => self.parts == [outer, other],
                    Some(_) => self.parts == [other, outer],
                }
            })
    }
}
