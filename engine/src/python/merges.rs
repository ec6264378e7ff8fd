//! Lists of merges for `formats/`: columns of ids, and whether they are ranks.

use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyInt, PyString, PyTuple};

use super::guard::{detached, guarded};
use super::ids::{array_of, token_ids};
use crate::pipeline;
use crate::pipeline::Listed;
use crate::vocabulary::rank_table::RankTable;

/// See `as_ranks.merges_by_rank`. The columns of `merges` are lefts, rights and results.
#[pyfunction]
pub(super) fn merges_by_rank(
    py: Python<'_>,
    ranks: Vec<(Vec<u8>, u32)>,
    merges: (Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>),
    whole_first: bool,
) -> PyResult<bool> {
    let list = Listed {
        lefts: token_ids(&merges.0)?.0,
        rights: token_ids(&merges.1)?.0,
        results: token_ids(&merges.2)?.0,
    };
    detached(py, || {
        RankTable::from_items(ranks)
            .is_ok_and(|ranks| pipeline::merges_by_rank(&ranks, &list, whole_first))
    })
}

/// See `merge_list.merges_of`. Returns priorities, results, lefts and rights, or the index of a
/// merge whose token is missing.
#[pyfunction]
pub(super) fn merge_columns<'py>(
    py: Python<'py>,
    halves: Vec<Bound<'py, PyString>>,
    vocabulary: &Bound<'py, PyDict>,
    prefix: usize,
) -> PyResult<Bound<'py, PyAny>> {
    // Kept alive, so that their UTF-8 stays valid.
    let tokens: Vec<(Bound<'py, PyString>, u32)> = vocabulary
        .iter()
        .map(|(token, id)| Ok((token.cast_into()?, id.extract()?)))
        .collect::<PyResult<_>>()?;
    let vocabulary: Vec<(&str, u32)> = tokens
        .iter()
        .map(|(token, id)| Ok((token.to_str()?, *id)))
        .collect::<PyResult<_>>()?;
    // A lone surrogate occurs in no token.
    let halves: Vec<Option<&str>> = halves.iter().map(|half| half.to_str().ok()).collect();
    match guarded(py, || pipeline::merge_columns(&halves, &vocabulary, prefix))? {
        Err(index) => Ok(PyInt::new(py, index).into_any()),
        Ok(found) => {
            let columns = [found.priorities, found.results, found.lefts, found.rights];
            let arrays: Vec<_> = columns
                .iter()
                .map(|column| array_of(py, column))
                .collect::<PyResult<_>>()?;
            Ok(PyTuple::new(py, arrays)?.into_any())
        }
    }
}
