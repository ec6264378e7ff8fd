//! The Python module `bytepair_engine._core`: the only file that knows PyO3.
//!
//! Arguments become Rust here, errors become the classes of `errors.py`, and a panic becomes
//! an ordinary RuntimeError. The interpreter's lock is released around work that is worth it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pyo3::buffer::PyBuffer;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFrozenSet, PyInt, PyList, PyString};

use crate::bpe;
use crate::offsets::OffsetUnit;
use crate::rank_table;
use crate::special;

/// Texts of fewer bytes are encoded without releasing the lock: it would cost more.
const RELEASE_FROM: usize = 8 * 1024;

/// A class of the engine's Python part, raised with these arguments.
fn raise<'py>(py: Python<'py>, module: &str, class: &str, args: impl PyCallArgs<'py>) -> PyErr {
    let make = || py.import(module)?.getattr(class)?.call1(args);
    match make() {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

const ERRORS: &str = "bytepair_engine.errors";

/// Run `work`; a panic in it is an exception that `except Exception` catches.
fn guarded<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        PyRuntimeError::new_err("the native core failed on this input; please report it as a bug")
    })
}

/// As `guarded`, without the interpreter's lock when there is much to do.
fn released<T: Send>(py: Python<'_>, bytes: usize, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    if bytes < RELEASE_FROM {
        guarded(work)
    } else {
        py.detach(|| guarded(work))
    }
}

/// The text's UTF-8, without a copy where CPython has it.
fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    text.to_str()
        .map_err(|error| lone_surrogate(text).unwrap_or(error))
}

/// The error for a text that has no UTF-8.
fn lone_surrogate(text: &Bound<'_, PyString>) -> Option<PyErr> {
    let py = text.py();
    let encoded = text
        .call_method1("encode", ("utf-8", "surrogatepass"))
        .ok()?;
    let bytes = encoded.cast::<PyBytes>().ok()?.as_bytes();
    let offset = std::str::from_utf8(bytes).err()?.valid_up_to();
    Some(raise(
        py,
        ERRORS,
        "InvalidUnicode",
        (offset, "lone surrogate"),
    ))
}

/// Tokens and their ids, from a rank file or from pairs.
#[pyclass(frozen, module = "bytepair_engine._core")]
struct RankTable(Arc<rank_table::RankTable>);

fn table_or_fault(
    py: Python<'_>,
    result: Result<rank_table::RankTable, rank_table::TableFault>,
) -> PyResult<RankTable> {
    match result {
        Ok(table) => Ok(RankTable(Arc::new(table))),
        Err(fault) => {
            let args = (fault.fault.name(), fault.line);
            Err(raise(py, "bytepair_engine.rank_table", "TableFault", args))
        }
    }
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
            // An id that no u32 holds is out of range by any measure.
            let id = id.extract().unwrap_or(u32::MAX);
            pairs.push((token.as_bytes().to_vec(), id));
        }
        table_or_fault(py, guarded(|| rank_table::RankTable::from_items(pairs))?)
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

/// A compiled set of special tokens.
///
/// Boxed, because it holds vectors of 32 bytes that must be aligned to 32 (memchr's searcher),
/// while CPython aligns objects to 16: unboxed it crashed, now and then.
#[pyclass(frozen, module = "bytepair_engine._core")]
struct SpecialSet(Box<special::SpecialSet>);

/// One encoding.
#[pyclass(frozen, module = "bytepair_engine._core")]
struct Bpe(bpe::Bpe);

fn special_found(py: Python<'_>, error: bpe::SpecialFound) -> PyErr {
    raise(
        py,
        ERRORS,
        "SpecialTokenFound",
        (error.token, error.byte_offset),
    )
}

fn list_of<'py>(py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, ids)
}

#[pymethods]
impl Bpe {
    #[new]
    fn new(
        py: Python<'_>,
        table: &RankTable,
        pattern: &str,
        special_tokens: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let mut specials: Vec<(String, u32)> = Vec::new();
        for (name, id) in special_tokens {
            specials.push((name.extract()?, id.extract()?));
        }
        let table = Arc::clone(&table.0);
        let built = py.detach(|| guarded(|| bpe::Bpe::new(table, pattern, specials)))?;
        built.map(Bpe).map_err(|fault| {
            let problem = format!("at character {}: {}", fault.position, fault.problem);
            let remedy = "write the pattern without it, or use one of the named patterns";
            raise(
                py,
                ERRORS,
                "VocabularyError",
                ("the split pattern", problem, remedy),
            )
        })
    }

    #[classattr]
    fn name() -> &'static str {
        "native"
    }

    #[getter]
    fn splitter(&self) -> &'static str {
        self.0.splitter()
    }

    #[getter]
    fn fingerprint(&self) -> &str {
        self.0.fingerprint()
    }

    fn special_set(&self, names: &Bound<'_, PyFrozenSet>) -> PyResult<SpecialSet> {
        let mut strings = Vec::with_capacity(names.len());
        for name in names {
            // A name with a lone surrogate is in no text.
            if let Ok(name) = name.cast::<PyString>()?.to_str() {
                strings.push(name.to_owned());
            }
        }
        let set = guarded(|| self.0.special_set(strings))?;
        Ok(SpecialSet(Box::new(set)))
    }

    fn split<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyList>> {
        let text = utf8(text)?;
        let pieces = released(py, text.len(), || self.0.split(text))?;
        PyList::new(py, pieces)
    }

    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyString>,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> PyResult<Bound<'py, PyList>> {
        let text = utf8(text)?;
        let work = || self.0.encode(text, &allowed.0, &disallowed.0);
        let ids = released(py, text.len(), work)?.map_err(|error| special_found(py, error))?;
        list_of(py, &ids)
    }

    fn encode_array<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyString>,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> PyResult<Bound<'py, PyAny>> {
        let text = utf8(text)?;
        let work = || self.0.encode(text, &allowed.0, &disallowed.0);
        let ids = released(py, text.len(), work)?.map_err(|error| special_found(py, error))?;
        array_of(py, &ids)
    }

    fn encode_packed<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyString>,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let text = utf8(text)?;
        let work = || self.0.encode_packed(text, &allowed.0, &disallowed.0);
        let packed = released(py, text.len(), work)?.map_err(|error| special_found(py, error))?;
        Ok(PyBytes::new(py, &packed))
    }

    fn encode_with_offsets<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyString>,
        unit: &str,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> PyResult<(Bound<'py, PyList>, Vec<usize>)> {
        let text = utf8(text)?;
        let unit = match unit {
            "byte" => OffsetUnit::Byte,
            "utf16" => OffsetUnit::Utf16,
            _ => OffsetUnit::CodePoint,
        };
        let work = || {
            self.0
                .encode_with_offsets(text, unit, &allowed.0, &disallowed.0)
        };
        let (ids, offsets) =
            released(py, text.len(), work)?.map_err(|error| special_found(py, error))?;
        Ok((list_of(py, &ids)?, offsets))
    }

    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<Bound<'py, PyString>>,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> PyResult<Vec<Bound<'py, PyList>>> {
        let texts = texts.iter().map(utf8).collect::<PyResult<Vec<&str>>>()?;
        let bytes = texts.iter().map(|text| text.len()).sum();
        let work = || {
            let encode = |text: &&str| self.0.encode(text, &allowed.0, &disallowed.0);
            texts.iter().map(encode).collect::<Result<Vec<_>, _>>()
        };
        let batch = released(py, bytes, work)?.map_err(|error| special_found(py, error))?;
        batch.iter().map(|ids| list_of(py, ids)).collect()
    }

    fn count(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyString>,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
        limit: Option<usize>,
    ) -> PyResult<usize> {
        let text = utf8(text)?;
        let work = || self.0.count(text, &allowed.0, &disallowed.0, limit);
        released(py, text.len(), work)?.map_err(|error| special_found(py, error))
    }

    fn count_batch<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<Bound<'py, PyString>>,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
        limit: Option<usize>,
    ) -> PyResult<Vec<usize>> {
        let texts = texts.iter().map(utf8).collect::<PyResult<Vec<&str>>>()?;
        let bytes = texts.iter().map(|text| text.len()).sum();
        let work = || {
            let count = |text: &&str| self.0.count(text, &allowed.0, &disallowed.0, limit);
            texts.iter().map(count).collect::<Result<Vec<_>, _>>()
        };
        released(py, bytes, work)?.map_err(|error| special_found(py, error))
    }

    fn decode<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        errors: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bytes = self.joined(py, ids)?;
        if errors == "strict" {
            return match std::str::from_utf8(&bytes) {
                Ok(text) => Ok(PyString::new(py, text).into_any()),
                Err(error) => {
                    let args = (error.valid_up_to(), "invalid UTF-8");
                    Err(raise(py, ERRORS, "InvalidUnicode", args))
                }
            };
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(PyString::new(py, text).into_any()),
            // Python's own notion of what one replacement character stands for.
            Err(_) => PyBytes::new(py, &bytes).call_method1("decode", ("utf-8", "replace")),
        }
    }

    fn decode_bytes<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.joined(py, ids)?))
    }

    fn token_id(&self, token: &[u8]) -> Option<u32> {
        self.0.table().id_of(token)
    }

    fn token_bytes<'py>(
        &self,
        py: Python<'py>,
        token_id: &Bound<'py, PyInt>,
    ) -> Option<Bound<'py, PyBytes>> {
        let id = token_id.extract().ok()?;
        self.0.token_bytes(id).map(|bytes| PyBytes::new(py, bytes))
    }

    fn token_byte_values<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let mut tokens: Vec<&[u8]> = self.0.table().iter().map(|(token, _)| token).collect();
        tokens.sort_unstable();
        tokens
            .into_iter()
            .map(|token| PyBytes::new(py, token))
            .collect()
    }
}

impl Bpe {
    /// The bytes of the tokens of `ids`, joined.
    fn joined<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> PyResult<Vec<u8>> {
        let (ids, original) = token_ids(py, ids)?;
        let work = || self.0.decode_bytes(&ids);
        released(py, ids.len(), work)?.map_err(|error| {
            let id = match original {
                Some((index, ref id)) if index == error.index => id.clone(),
                _ => PyInt::new(py, ids[error.index]).into_any(),
            };
            raise(py, ERRORS, "UnknownTokenId", (id, error.index))
        })
    }
}

/// Ids as u32. One that no u32 holds ends them as `u32::MAX`, which is no id, and is returned
/// with its index.
fn token_ids<'py>(
    py: Python<'py>,
    ids: &Bound<'py, PyAny>,
) -> PyResult<(Vec<u32>, Option<(usize, Bound<'py, PyAny>)>)> {
    if let Ok(buffer) = PyBuffer::<u32>::get(ids) {
        return Ok((buffer.to_vec(py)?, None));
    }
    let mut out = Vec::with_capacity(ids.len().unwrap_or(0));
    for (index, item) in ids.try_iter()?.enumerate() {
        let item = item?;
        if let Ok(id) = item.extract::<u32>() {
            if !item.is_instance_of::<PyBool>() {
                out.push(id);
                continue;
            }
        }
        // SAFETY: `item` is a live object; the result is a new reference or null with an error.
        let whole =
            unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyNumber_Index(item.as_ptr())) }?;
        if item.is_instance_of::<PyBool>() {
            return Err(PyTypeError::new_err(
                "a token id must be an int, not a bool",
            ));
        }
        out.push(u32::MAX);
        return Ok((out, Some((index, whole))));
    }
    Ok((out, None))
}

/// `array("I")` of the ids.
fn array_of<'py>(py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyAny>> {
    let array = py.import("array")?.getattr("array")?.call1(("I",))?;
    let bytes = size_of_val(ids) as ffi::Py_ssize_t;
    // SAFETY: the view is read-only, spans exactly `ids`, and is dropped before `ids` is:
    // `frombytes` copies.
    let view = unsafe {
        let start = ids.as_ptr().cast_mut().cast();
        let view = ffi::PyMemoryView_FromMemory(start, bytes, ffi::PyBUF_READ);
        Bound::from_owned_ptr_or_err(py, view)
    }?;
    array.call_method1("frombytes", (view,))?;
    Ok(array)
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // The default hook prints the panic's message, which may quote the text.
    std::panic::set_hook(Box::new(|panic| {
        if let Some(place) = panic.location() {
            eprintln!("bytepair_engine._core: panic at {place}");
        }
    }));
    module.add_class::<RankTable>()?;
    module.add_class::<SpecialSet>()?;
    module.add_class::<Bpe>()?;
    module.add("UNICODE_VERSION", crate::split::UNICODE_VERSION)
}
