//! Where to look for the longest text that fits, for `context/measure.py`; places are code points.

use pyo3::prelude::*;
use pyo3::types::PyString;

use super::guard::released;
use super::text::utf8;
use crate::bpe::Bpe;

/// Marks (place, settled, count), the place beyond, and counts by place.
pub(super) type Found = Option<(
    Vec<(usize, usize, usize)>,
    Option<usize>,
    Vec<(usize, usize)>,
)>;

/// The place beyond, and counts by place.
pub(super) type FoundEnd = Option<(Option<usize>, Vec<(usize, usize)>)>;

/// See `Bpe::fit_start`.
pub(super) fn fit_start(
    core: &Bpe,
    text: &Bound<'_, PyString>,
    budget: usize,
    is_complete: bool,
    near: usize,
) -> PyResult<Found> {
    let utf8 = utf8(text)?;
    released(text.py(), utf8.len(), || {
        let fit = core.fit_start(utf8, budget, is_complete, near)?;
        let mut places = CodePoints::of(utf8);
        let mut settled = CodePoints::of(utf8);
        let marks = fit.marks.iter();
        let marks = marks.map(|mark| (places.at(mark.place), settled.at(mark.settled), mark.count));
        let marks = marks.collect();
        let mut cuts = CodePoints::of(utf8);
        let counts = fit.counts.iter();
        let counts = counts.map(|&(place, count)| (cuts.at(place), count));
        Some((
            marks,
            fit.beyond.map(|place| CodePoints::of(utf8).at(place)),
            counts.collect(),
        ))
    })
}

/// See `Bpe::fit_end`.
pub(super) fn fit_end(
    core: &Bpe,
    text: &Bound<'_, PyString>,
    budget: usize,
    is_complete: bool,
) -> PyResult<FoundEnd> {
    let utf8 = utf8(text)?;
    released(text.py(), utf8.len(), || {
        let end = core.fit_end(utf8, budget, is_complete)?;
        let mut cuts = CodePoints::of(utf8);
        let counts = end.counts.iter();
        let counts = counts.map(|&(place, count)| (cuts.at(place), count));
        let counts = counts.collect();
        Some((
            end.beyond.map(|place| CodePoints::of(utf8).at(place)),
            counts,
        ))
    })
}

/// From bytes to code points, for places in order.
struct CodePoints<'a> {
    text: &'a str,
    bytes: usize,
    points: usize,
}

impl<'a> CodePoints<'a> {
    fn of(text: &'a str) -> Self {
        CodePoints {
            text,
            bytes: 0,
            points: 0,
        }
    }

    fn at(&mut self, place: usize) -> usize {
        self.points += self.text[self.bytes..place].chars().count();
        self.bytes = place;
        self.points
    }
}
