//! Where to look for the longest text that fits, for `context/measure.py`; places are code points.

use std::iter::zip;

use pyo3::prelude::*;
use pyo3::types::PyString;

use super::encoding::{Bpe, SpecialSet};
use super::guard::released;
use super::pipeline::Pipeline;
use super::text::utf8;
use crate::context::fit::{Counts, Start};
use crate::context::fit_end::End;
use crate::output::offsets::{OffsetUnit, in_units};

/// Checkpoints (place, valid_from, count), the place beyond, and counts by place.
type Found = Option<(Vec<(usize, usize, usize)>, Option<usize>, Counts)>;

#[pymethods]
impl Bpe {
    /// Finds the longest start of ordinary text that fits. None if `text`, which is the start of a
    /// longer text, is too short to decide it.
    fn fit_start(
        &self,
        text: &Bound<'_, PyString>,
        budget: usize,
        is_complete: bool,
        near: usize,
        after: Option<&str>,
    ) -> PyResult<Found> {
        let utf8 = utf8(text)?;
        released(text.py(), utf8.len(), || {
            let start = Start {
                text: utf8,
                is_complete,
                near,
                after,
            };
            let fit = self.core.fit_start(start, budget)?;
            let found = &fit.checkpoints;
            let places = in_code_points(utf8, found.iter().map(|at| at.place));
            let valid_from = in_code_points(utf8, found.iter().map(|at| at.valid_from));
            let checkpoints = zip(found, zip(places, valid_from));
            let checkpoints = checkpoints.map(|(at, (place, from))| (place, from, at.count));
            let (beyond, counts) = end(utf8, (fit.beyond, fit.counts));
            Some((checkpoints.collect(), beyond, counts))
        })
    }

    /// Finds where to search for the longest end of ordinary text that fits.
    fn fit_end(
        &self,
        text: &Bound<'_, PyString>,
        budget: usize,
        is_complete: bool,
        before: &str,
    ) -> PyResult<Option<End>> {
        let utf8 = utf8(text)?;
        released(text.py(), utf8.len(), || {
            let found = self.core.fit_end(utf8, budget, is_complete, before)?;
            Some(end(utf8, found))
        })
    }
}

#[pymethods]
impl Pipeline {
    fn cut_counts(
        &self,
        text: &Bound<'_, PyString>,
        allowed: &SpecialSet,
        budget: usize,
        front: Option<(String, String)>,
    ) -> PyResult<Option<End>> {
        let utf8 = utf8(text)?;
        let front = front.as_ref().map(|(before, unless)| [&**before, unless]);
        released(text.py(), utf8.len(), || {
            let found = self.core.cut_counts(utf8, &allowed.0, budget, front)?;
            Some(end(utf8, found))
        })
    }
}

/// With places as code points.
fn end(text: &str, (beyond, counts): End) -> End {
    let beyond = in_code_points(text, beyond).pop();
    let (places, counts): (Vec<usize>, Vec<usize>) = counts.into_iter().unzip();
    (beyond, zip(in_code_points(text, places), counts).collect())
}

/// Places in order, as code points.
fn in_code_points(text: &str, places: impl IntoIterator<Item = usize>) -> Vec<usize> {
    in_units(text, Vec::from_iter(places), OffsetUnit::CodePoint)
}
