//! Where to look for the longest text that fits, for `context/measure.py`; places are code points.

use pyo3::prelude::*;
use pyo3::types::PyString;

use super::guard::released;
use super::text::utf8;
use crate::bpe::Bpe;
use crate::fit::Counts;
use crate::output::offsets::{OffsetUnit, in_units};
use crate::pipeline::{NameSet, Pipeline};

/// Checkpoints (place, valid_from, count), the place beyond, and counts by place.
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
        let found = &fit.checkpoints;
        let places = in_code_points(utf8, found.iter().map(|at| at.place));
        let valid_from = in_code_points(utf8, found.iter().map(|at| at.valid_from));
        let counts = found.iter().map(|at| at.count);
        let checkpoints = places.into_iter().zip(valid_from).zip(counts);
        let checkpoints = checkpoints.map(|((place, from), count)| (place, from, count));
        let (beyond, counts) = end(utf8, fit.beyond, &fit.counts);
        Some((checkpoints.collect(), beyond, counts))
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
        let found = core.fit_end(utf8, budget, is_complete)?;
        Some(end(utf8, found.beyond, &found.counts))
    })
}

/// See `Pipeline::cut_counts`.
pub(super) fn cut_counts(
    core: &Pipeline,
    text: &Bound<'_, PyString>,
    allowed: &NameSet,
    budget: usize,
    front: Option<[&str; 2]>,
) -> PyResult<FoundEnd> {
    let utf8 = utf8(text)?;
    released(text.py(), utf8.len(), || {
        let found = core.cut_counts(utf8, allowed, budget, front)?;
        Some(end(utf8, found.beyond, &found.counts))
    })
}

fn end(text: &str, beyond: Option<usize>, counts: &Counts) -> (Option<usize>, Counts) {
    let places = in_code_points(text, counts.iter().map(|&(place, _)| place));
    let counts = places
        .into_iter()
        .zip(counts.iter().map(|&(_, count)| count));
    (
        in_code_points(text, beyond.into_iter()).pop(),
        counts.collect(),
    )
}

/// Places in order, as code points.
fn in_code_points(text: &str, places: impl Iterator<Item = usize>) -> Vec<usize> {
    in_units(text, places.collect(), OffsetUnit::CodePoint)
}
