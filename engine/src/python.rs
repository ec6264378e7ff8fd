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
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFrozenSet, PyInt, PyList, PyString};

use crate::bpe;
use crate::offsets::OffsetUnit;
use crate::rank_table;
use crate::special;

/// Texts of fewer bytes are encoded without releasing the lock: it would cost more.
const RELEASE_FROM: usize = 8 * 1024;

/// What the caches of one encoding take at most, unless the caller says otherwise.
const DEFAULT_CACHE_BYTES: usize = 64 << 20;

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
struct Bpe {
    core: bpe::Bpe,
    integers: Integers,
}

fn special_found(py: Python<'_>, error: bpe::SpecialFound) -> PyErr {
    raise(
        py,
        ERRORS,
        "SpecialTokenFound",
        (error.token, error.byte_offset),
    )
}

/// Run `work` on the text's UTF-8.
fn on_text<T: Send>(
    text: &Bound<'_, PyString>,
    work: impl FnOnce(&str) -> Result<T, bpe::SpecialFound> + Send,
) -> PyResult<T> {
    let utf8 = utf8(text)?;
    released(text.py(), utf8.len(), || work(utf8))?.map_err(|error| special_found(text.py(), error))
}

/// Run `work` on each text's UTF-8.
fn on_texts<T: Send>(
    py: Python<'_>,
    texts: &[Bound<'_, PyString>],
    work: impl Fn(&str) -> Result<T, bpe::SpecialFound> + Sync,
) -> PyResult<Vec<T>> {
    let texts = texts.iter().map(utf8).collect::<PyResult<Vec<&str>>>()?;
    let bytes = texts.iter().map(|text| text.len()).sum();
    let all = || {
        texts
            .iter()
            .map(|text| work(text))
            .collect::<Result<Vec<T>, _>>()
    };
    released(py, bytes, all)?.map_err(|error| special_found(py, error))
}

/// Python integers made once for each id: a list of them costs a third of making them anew.
struct Integers(Vec<PyOnceLock<Py<PyInt>>>);

/// Ids from here on are made anew: a vocabulary that has them is no dense one.
const MOST_INTEGERS: usize = 1 << 20;

impl Integers {
    fn up_to(max_id: u32) -> Self {
        let count = (max_id as usize + 1).min(MOST_INTEGERS);
        Integers((0..count).map(|_| PyOnceLock::new()).collect())
    }

    fn get<'py>(&self, py: Python<'py>, id: u32) -> Bound<'py, PyInt> {
        match self.0.get(id as usize) {
            Some(known) => known
                .get_or_init(py, || PyInt::new(py, id).unbind())
                .bind(py)
                .clone(),
            None => PyInt::new(py, id),
        }
    }

    fn list<'py>(&self, py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, ids.iter().map(|&id| self.get(py, id)))
    }
}

#[pymethods]
impl Bpe {
    #[new]
    #[pyo3(signature = (table, pattern, special_tokens, *, cache_bytes = DEFAULT_CACHE_BYTES))]
    fn new(
        py: Python<'_>,
        table: &RankTable,
        pattern: &str,
        special_tokens: &Bound<'_, PyDict>,
        cache_bytes: usize,
    ) -> PyResult<Self> {
        let mut specials: Vec<(String, u32)> = Vec::new();
        for (name, id) in special_tokens {
            specials.push((name.extract()?, id.extract()?));
        }
        let table = Arc::clone(&table.0);
        let built =
            py.detach(|| guarded(|| bpe::Bpe::new(table, pattern, specials, cache_bytes)))?;
        built
            .map(|core| Bpe {
                integers: Integers::up_to(core.max_id()),
                core,
            })
            .map_err(|fault| {
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
        self.core.splitter()
    }

    #[getter]
    fn fingerprint(&self) -> &str {
        self.core.fingerprint()
    }

    fn unreachable_ids(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        py.detach(|| guarded(|| self.core.unreachable_ids()))
    }

    fn special_set(&self, names: &Bound<'_, PyFrozenSet>) -> PyResult<SpecialSet> {
        let mut strings = Vec::with_capacity(names.len());
        for name in names {
            // A name with a lone surrogate is in no text.
            if let Ok(name) = name.cast::<PyString>()?.to_str() {
                strings.push(name.to_owned());
            }
        }
        let set = guarded(|| self.core.special_set(strings))?;
        Ok(SpecialSet(Box::new(set)))
    }

    fn split<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyList>> {
        let text = utf8(text)?;
        let pieces = released(py, text.len(), || self.core.split(text))?;
        PyList::new(py, pieces)
    }

    fn encode<'py>(
        &self,
        text: &Bound<'py, PyString>,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> PyResult<Bound<'py, PyList>> {
        let ids = on_text(text, |text| {
            self.core.encode(text, &allowed.0, &disallowed.0)
        })?;
        self.integers.list(text.py(), &ids)
    }

    fn encode_array<'py>(
        &self,
        text: &Bound<'py, PyString>,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ids = on_text(text, |text| {
            self.core.encode(text, &allowed.0, &disallowed.0)
        })?;
        array_of(text.py(), &ids)
    }

    fn encode_packed<'py>(
        &self,
        text: &Bound<'py, PyString>,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let encode = |text: &str| self.core.encode_packed(text, &allowed.0, &disallowed.0);
        Ok(PyBytes::new(text.py(), &on_text(text, encode)?))
    }

    fn encode_with_offsets<'py>(
        &self,
        text: &Bound<'py, PyString>,
        unit: &str,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> PyResult<(Bound<'py, PyList>, Vec<usize>)> {
        let unit = match unit {
            "byte" => OffsetUnit::Byte,
            "utf16" => OffsetUnit::Utf16,
            _ => OffsetUnit::CodePoint,
        };
        let encode = |text: &str| {
            self.core
                .encode_with_offsets(text, unit, &allowed.0, &disallowed.0)
        };
        let (ids, offsets) = on_text(text, encode)?;
        Ok((self.integers.list(text.py(), &ids)?, offsets))
    }

    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<Bound<'py, PyString>>,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> PyResult<Vec<Bound<'py, PyList>>> {
        let encode = |text: &str| self.core.encode(text, &allowed.0, &disallowed.0);
        let batch = on_texts(py, &texts, encode)?;
        batch
            .iter()
            .map(|ids| self.integers.list(py, ids))
            .collect()
    }

    fn count(
        &self,
        text: &Bound<'_, PyString>,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
        limit: Option<usize>,
    ) -> PyResult<usize> {
        on_text(text, |text| {
            self.core.count(text, &allowed.0, &disallowed.0, limit)
        })
    }

    fn count_batch(
        &self,
        py: Python<'_>,
        texts: Vec<Bound<'_, PyString>>,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
        limit: Option<usize>,
    ) -> PyResult<Vec<usize>> {
        on_texts(py, &texts, |text| {
            self.core.count(text, &allowed.0, &disallowed.0, limit)
        })
    }

    fn decode<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        errors: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bytes = self.joined(py, ids)?;
        if errors == "strict"
            && let Err(error) = std::str::from_utf8(&bytes)
        {
            let args = (error.valid_up_to(), "invalid UTF-8");
            return Err(raise(py, ERRORS, "InvalidUnicode", args));
        }
        // Python's own notion of what one replacement character stands for.
        // SAFETY: the pointer and the length are those of `bytes`, which outlives the call;
        // the result is a new reference or null with an error.
        unsafe {
            let (start, len) = (bytes.as_ptr().cast(), bytes.len() as ffi::Py_ssize_t);
            let text = ffi::PyUnicode_DecodeUTF8(start, len, c"replace".as_ptr());
            Bound::from_owned_ptr_or_err(py, text)
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
        self.core.table().id_of(token)
    }

    fn token_bytes<'py>(
        &self,
        py: Python<'py>,
        token_id: &Bound<'py, PyInt>,
    ) -> Option<Bound<'py, PyBytes>> {
        let id = token_id.extract().ok()?;
        self.core
            .token_bytes(id)
            .map(|bytes| PyBytes::new(py, bytes))
    }

    fn token_byte_values<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let mut tokens: Vec<&[u8]> = self.core.table().iter().map(|(token, _)| token).collect();
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
        let (known, stranger) = token_ids(ids)?;
        let bytes = released(py, known.len(), || self.core.decode_bytes(&known))?;
        let unknown = match (&bytes, stranger) {
            // The first one counts, and all before the stranger came before it.
            (Err(error), _) => Some((PyInt::new(py, known[error.index]).into_any(), error.index)),
            (Ok(_), Some(id)) => Some((id, known.len())),
            (Ok(_), None) => None,
        };
        match unknown {
            Some(facts) => Err(raise(py, ERRORS, "UnknownTokenId", facts)),
            None => Ok(bytes.unwrap_or_default()),
        }
    }
}

/// Ids as u32, up to the first integer that no u32 holds, which is returned too.
fn token_ids<'py>(ids: &Bound<'py, PyAny>) -> PyResult<(Vec<u32>, Option<Bound<'py, PyAny>>)> {
    let py = ids.py();
    if let Ok(list) = ids.cast::<PyList>() {
        let mut known = Vec::with_capacity(list.len());
        for item in list {
            match token_id(&item)? {
                Some(id) => known.push(id),
                None => return Ok((known, Some(item))),
            }
        }
        return Ok((known, None));
    }
    if let Ok(buffer) = PyBuffer::<u32>::get(ids) {
        return Ok((buffer.to_vec(py)?, None));
    }
    let mut known = Vec::with_capacity(ids.len().unwrap_or(0));
    for item in ids.try_iter()? {
        let item = item?;
        match token_id(&item)? {
            Some(id) => known.push(id),
            None => return Ok((known, Some(item))),
        }
    }
    Ok((known, None))
}

/// One id; None for an integer that no u32 holds.
#[inline]
fn token_id(item: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    // SAFETY: `item` is a live object, and an exact int where its value is asked for; an
    // overflow is an error in the interpreter, which `take` clears.
    let value = unsafe {
        if ffi::PyLong_CheckExact(item.as_ptr()) == 0 {
            return indexed_id(item);
        }
        ffi::PyLong_AsLongLong(item.as_ptr())
    };
    if value == -1 {
        PyErr::take(item.py());
    }
    Ok(u32::try_from(value).ok())
}

/// One id that is not exactly an `int`: an integer of another kind, and no bool.
#[cold]
fn indexed_id(item: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    if item.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(
            "a token id must be an int, not a bool",
        ));
    }
    let index = item
        .py()
        .import("operator")?
        .getattr("index")?
        .call1((item,))?;
    token_id(&index)
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
