//! `_core.Bpe`: one encoding, with the methods of `backends/interface.py`.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyFrozenSet, PyInt, PyList, PyString};

use super::guard::{detached, guarded, pattern_error, released};
use super::ids::{array_of, list_of};
use super::small_int;
use super::table::RankTable;
use super::text::{
    joined, located, names_in_text, on_text, on_texts, on_utf8, python_text, string, utf8,
};
use crate::bpe;
use crate::output::varint;
use crate::parallel::Sharing;
use crate::vocabulary::special;

/// A compiled set of special tokens.
///
/// Boxed because it contains vectors of 32 bytes (memchr's searcher) that must be aligned to 32,
/// while CPython aligns objects to 16. Unboxed, it crashed occasionally.
#[pyclass(frozen, module = "bytepair_engine._core")]
pub(super) struct SpecialSet(pub(super) Box<special::SpecialSet>);

#[pymethods]
impl SpecialSet {
    fn is_in(&self, data: &Bound<'_, PyBytes>) -> PyResult<bool> {
        let bytes = data.as_bytes();
        released(data.py(), bytes.len(), || self.0.is_in(bytes))
    }
}

/// An encoding.
#[pyclass(frozen, module = "bytepair_engine._core")]
pub(super) struct Bpe {
    pub(super) core: bpe::Bpe,
}

#[pymethods]
impl Bpe {
    #[new]
    #[pyo3(signature = (table, pattern, special_tokens, *, cache_bytes, threads))]
    fn new(
        py: Python<'_>,
        table: &RankTable,
        pattern: &str,
        special_tokens: HashMap<String, u32>,
        cache_bytes: usize,
        threads: usize,
    ) -> PyResult<Self> {
        let table = Arc::clone(&table.0);
        // Made here, so that the first lists do not wait for them.
        small_int::up_to(py, table.max_id().unwrap_or(0));
        let sharing = Sharing::among(threads);
        let built = detached(py, || {
            bpe::Bpe::new(table, pattern, special_tokens, cache_bytes, sharing)
        })?;
        built
            .map(|core| Bpe { core })
            .map_err(|fault| pattern_error(py, fault))
    }

    #[classattr]
    fn name() -> &'static str {
        "native"
    }

    #[getter]
    fn splitter(&self) -> &'static str {
        self.core.splitter().name()
    }

    #[getter]
    fn fingerprint(&self, py: Python<'_>) -> PyResult<&str> {
        detached(py, || self.core.fingerprint())
    }

    fn unreachable_ids(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        detached(py, || self.core.unreachable_ids())
    }

    fn special_set(&self, names: &Bound<'_, PyFrozenSet>) -> PyResult<SpecialSet> {
        let strings = names_in_text(names)?;
        let set = guarded(names.py(), || self.core.special_set(strings))?;
        Ok(SpecialSet(Box::new(set)))
    }

    fn split<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyList>> {
        let text = utf8(text)?;
        let pieces = released(py, text.len(), || self.core.splitter().pieces(text))?;
        PyList::new(py, pieces)
    }

    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<Bound<'py, PyAny>>,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> PyResult<Vec<Bound<'py, PyList>>> {
        let encode = |text: &str| self.core.encode(text, &allowed.0, &disallowed.0);
        texts.iter().try_for_each(|text| string(text).map(drop))?;
        let batch = on_texts(py, &self.core, &texts, encode)?;
        batch.iter().map(|ids| list_of(py, ids)).collect()
    }

    fn count_batch(
        &self,
        py: Python<'_>,
        texts: Vec<Bound<'_, PyAny>>,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
        limit: Option<usize>,
    ) -> PyResult<Vec<usize>> {
        on_texts(py, &self.core, &texts, |text| {
            self.core.count(text, &allowed.0, &disallowed.0, limit)
        })
    }

    fn token_id(&self, py: Python<'_>, token: &[u8]) -> PyResult<Option<u32>> {
        guarded(py, || self.core.table().id_of(token))
    }

    fn token_bytes<'py>(
        &self,
        py: Python<'py>,
        token_id: &Bound<'py, PyInt>,
    ) -> Option<Bound<'py, PyBytes>> {
        let bytes = self.core.token_bytes(token_id.extract().ok()?)?;
        Some(PyBytes::new(py, bytes))
    }

    fn token_byte_values<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let mut tokens: Vec<&[u8]> = self.core.table().iter().map(|(token, _)| token).collect();
        tokens.sort_unstable();
        tokens.iter().map(|token| PyBytes::new(py, token)).collect()
    }
}

text_methods!(Bpe);
