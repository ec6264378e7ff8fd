//! Lists of merges for `formats/`: columns of ids, and whether they are ranks.

use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyInt, PyString, PyTuple};

use super::guard::{detached, guarded};
use super::ids::{array_of, token_ids};
use crate::pipeline;
use crate::vocabulary::rank_table::RankTable;

/// See `as_ranks.merges_by_rank`. The columns of `merges` are lefts, rights and results.
#[pyfunction]
pub(super) fn merges_by_rank(
    py: Python<'_>,
    ranks: Vec<(Vec<u8>, u32)>,
    merges: [Bound<'_, PyAny>; 3],
    whole_first: bool,
) -> PyResult<bool> {
    let [lefts, rights, results] = merges.each_ref().map(token_ids);
    let list = [lefts?.0, rights?.0, results?.0];
    detached(py, || {
        RankTable::from_items(ranks)
            .is_ok_and(|ranks| pipeline::merges_by_rank(&ranks, list, whole_first))
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
    match guarded(py, || pipeline::merges_of(&halves, &vocabulary, prefix))? {
        Err(index) => Ok(PyInt::new(py, index).into_any()),
        Ok(merges) => {
            let column = |i| merges.iter().map(|merge| merge[i]).collect::<Vec<_>>();
            let arrays = (0..4).map(|i| array_of(py, &column(i)));
            let arrays = arrays.collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(py, arrays)?.into_any())
        }
    }
}
