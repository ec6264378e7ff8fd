//! `_core.RankTable`: the tokens of a vocabulary file.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt};

use super::guard::{guarded, raise, released};
use crate::vocabulary::rank_table;

/// Tokens and their ids, from a rank file or from pairs.
#[pyclass(frozen, module = "bytepair_engine._core")]
pub(super) struct RankTable(pub(super) Arc<rank_table::RankTable>);

fn table_or_fault(
    py: Python<'_>,
    result: Result<rank_table::RankTable, rank_table::TableFault>,
) -> PyResult<RankTable> {
    let module = "bytepair_engine.vocabulary.rank_table";
    result
        .map(|table| RankTable(Arc::new(table)))
        .map_err(|fault| raise(py, module, "TableFault", (fault.fault.name(), fault.line)))
}

#[pymethods]
impl RankTable {
    #[staticmethod]
    fn parse_tiktoken(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        let parse = || rank_table::RankTable::parse_tiktoken(data);
        table_or_fault(py, released(py, data.len(), parse)?)
    }

    #[staticmethod]
    fn from_items(py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut pairs: Vec<(Vec<u8>, u32)> = Vec::new();
        for item in items.try_iter()? {
            let (token, id): (Bound<'_, PyBytes>, Bound<'_, PyInt>) = item?.extract()?;
            // An id that does not fit in u32 is out of range anyway.
            let id = id.extract().unwrap_or(u32::MAX);
            pairs.push((token.as_bytes().to_vec(), id));
        }
        let made = guarded(py, || rank_table::RankTable::from_items(pairs))?;
        table_or_fault(py, made)
    }

    fn items<'py>(&self, py: Python<'py>) -> Vec<(Bound<'py, PyBytes>, u32)> {
        self.0
            .iter()
            .map(|(token, id)| (PyBytes::new(py, token), id))
            .collect()
    }

    fn missing_byte(&self) -> Option<u8> {
        self.0.missing_byte()
    }

    fn has_id(&self, token_id: &Bound<'_, PyInt>) -> bool {
        token_id
            .extract()
            .is_ok_and(|id| self.0.token(id).is_some())
    }

    fn max_id(&self) -> i64 {
        self.0.max_id().map_or(-1, i64::from)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }
}
