//! Python's text as UTF-8, and work on it.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::guard::{ERRORS, raise, released};
use crate::bpe;

/// The text's UTF-8, without a copy where CPython has it.
pub(super) fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
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

fn special_found(py: Python<'_>, error: bpe::SpecialFound) -> PyErr {
    raise(
        py,
        ERRORS,
        "SpecialTokenFound",
        (error.token, error.byte_offset),
    )
}

/// Run `work` on the text's UTF-8.
pub(super) fn on_text<T: Send>(
    text: &Bound<'_, PyString>,
    work: impl FnOnce(&str) -> Result<T, bpe::SpecialFound> + Send,
) -> PyResult<T> {
    let utf8 = utf8(text)?;
    released(text.py(), utf8.len(), || work(utf8))?.map_err(|error| special_found(text.py(), error))
}

/// Run `work` on each text's UTF-8.
pub(super) fn on_texts<T: Send>(
    py: Python<'_>,
    core: &bpe::Bpe,
    texts: &[Bound<'_, PyString>],
    work: impl Fn(&str) -> Result<T, bpe::SpecialFound> + Send + Sync,
) -> PyResult<Vec<T>> {
    let texts = texts.iter().map(utf8).collect::<PyResult<Vec<&str>>>()?;
    let bytes = texts.iter().map(|text| text.len()).sum();
    released(py, bytes, || core.on_each(&texts, work))?.map_err(|error| special_found(py, error))
}
