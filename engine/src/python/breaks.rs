//! The ends of graphemes, words and sentences, for `context/boundaries.py`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::guard::released;
use super::text::utf8;
use crate::context::breaks::{self, Ends};
use crate::output::offsets::{OffsetUnit, in_units};

/// Returns the ends of the parts of `text`, in code points.
#[pyfunction]
pub(super) fn break_ends(text: &Bound<'_, PyString>, level: &str) -> PyResult<Vec<usize>> {
    let ends: Ends = match level {
        "grapheme" => breaks::graphemes,
        "word" => breaks::words,
        "sentence" => breaks::sentences,
        _ => return Err(PyValueError::new_err("level")),
    };
    let utf8 = utf8(text)?;
    released(text.py(), utf8.len(), || {
        in_units(utf8, ends(utf8), OffsetUnit::CodePoint)
    })
}
