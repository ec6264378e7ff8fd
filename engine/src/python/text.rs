//! Python strings as UTF-8, and work on them.

use std::borrow::Cow;
use std::slice;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::string::PyStringData;
use pyo3::types::{PyAny, PyBytes, PyFrozenSet, PyInt, PyList, PyString};
use simdutf8::compat::{Utf8Error, from_utf8};

use super::guard::{ERRORS, raise, released};
use super::ids::{list_of, token_ids};
use crate::bpe::{Bpe, SpecialFound, UnknownId};
use crate::output::offsets::OffsetUnit;
use crate::utf8::{decode, decoded_len, encoded};

/// Returns the text's UTF-8, which CPython keeps in the string.
pub(super) fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    text.to_str()
        .map_err(|error| lone_surrogate(text).unwrap_or(error))
}

/// Returns the text's UTF-8 for one use. If CPython has not made it yet, it is made here, which is
/// faster, and the string keeps no copy.
fn utf8_once<'a>(text: &'a Bound<'_, PyString>) -> PyResult<Cow<'a, str>> {
    // SAFETY: a string does not change. That PyO3 finds the width where this platform has it is
    // tested: the result is CPython's for every width.
    let encoded = match unsafe { text.data()? } {
        PyStringData::Ucs1(points) if points.is_ascii() => None,
        _ if has_utf8(text) => None,
        PyStringData::Ucs1(points) => encoded(points),
        PyStringData::Ucs2(points) => encoded(points),
        PyStringData::Ucs4(points) => encoded(points),
    };
    match encoded {
        Some(encoded) => Ok(Cow::Owned(encoded)),
        None => utf8(text).map(Cow::Borrowed),
    }
}

/// Returns whether CPython has made the UTF-8 of a string that is not ASCII, by the struct that its
/// header publishes: no function tells. Without the interpreter's lock, another thread may be
/// making it.
fn has_utf8(text: &Bound<'_, PyString>) -> bool {
    let string = text.as_ptr().cast::<ffi::PyCompactUnicodeObject>();
    // SAFETY: such a string starts with this struct, and the interpreter's lock is held.
    cfg!(not(Py_GIL_DISABLED)) && unsafe { !(*string).utf8.is_null() }
}

/// Returns the error for a text with a lone surrogate.
fn lone_surrogate(text: &Bound<'_, PyString>) -> Option<PyErr> {
    // A subclass may have a method of its own.
    let string = text.py().get_type::<PyString>();
    let args = (text, "utf-8", "surrogatepass");
    let encoded = string.call_method1("encode", args).ok()?;
    let bytes = encoded.cast::<PyBytes>().ok()?.as_bytes();
    let offset = from_utf8(bytes).err()?.valid_up_to();
    let args = (offset, "lone surrogate");
    Some(raise(text.py(), ERRORS, "InvalidUnicode", args))
}

fn special_found(py: Python<'_>, error: SpecialFound) -> PyErr {
    let args = (error.token, error.byte_offset);
    raise(py, ERRORS, "SpecialTokenFound", args)
}

/// Returns the argument `text` as a string, or an error that names it.
pub(super) fn string<'a, 'py>(text: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyString>> {
    text.cast().or_else(|_| {
        let message = format!("text must be str, not {}", text.get_type().name()?);
        Err(PyTypeError::new_err(message))
    })
}

/// Runs `work` on the text's UTF-8.
pub(super) fn on_text<T: Send>(
    text: &Bound<'_, PyAny>,
    work: impl FnOnce(&str) -> Result<T, SpecialFound> + Send,
) -> PyResult<T> {
    let utf8 = utf8_once(string(text)?)?;
    released(text.py(), utf8.len(), || work(&utf8))?
        .map_err(|error| special_found(text.py(), error))
}

/// Runs `work` as `on_text` does, on a text that may also be given as UTF-8 in `bytes`.
pub(super) fn on_utf8<T: Send>(
    text: &Bound<'_, PyAny>,
    work: impl FnOnce(&str) -> Result<T, SpecialFound> + Send,
) -> PyResult<T> {
    let Ok(bytes) = text.cast::<PyBytes>() else {
        return on_text(text, work);
    };
    let (py, bytes) = (text.py(), bytes.as_bytes());
    released(py, bytes.len(), || from_utf8(bytes).map(work))?
        .map_err(|error| not_utf8(py, error))?
        .map_err(|error| special_found(py, error))
}

fn not_utf8(py: Python<'_>, error: Utf8Error) -> PyErr {
    let args = (error.valid_up_to(), "invalid UTF-8");
    raise(py, ERRORS, "InvalidUnicode", args)
}

/// Runs `work` on the UTF-8 of each text, which may also be given as UTF-8 in `bytes`.
pub(super) fn on_texts<T: Send>(
    py: Python<'_>,
    core: &Bpe,
    texts: &[Bound<'_, PyAny>],
    work: impl Fn(&str) -> Result<T, SpecialFound> + Send + Sync,
) -> PyResult<Vec<T>> {
    let known = |text| -> PyResult<Cow<str>> {
        match Bound::cast::<PyBytes>(text) {
            Ok(bytes) => from_utf8(bytes.as_bytes())
                .map(Cow::Borrowed)
                .map_err(|error| not_utf8(py, error)),
            Err(_) => utf8_once(string(text)?),
        }
    };
    let texts = texts.iter().map(known).collect::<PyResult<Vec<_>>>()?;
    let texts: Vec<&str> = texts.iter().map(Cow::as_ref).collect();
    let bytes = texts.iter().map(|text| text.len()).sum();
    released(py, bytes, || core.on_each(&texts, work))?.map_err(|error| special_found(py, error))
}

/// Returns the result of `encode_with_offsets`: the ids of a text, and the starts of their tokens.
pub(super) fn located<'py>(
    text: &Bound<'py, PyAny>,
    unit: &str,
    encode: impl FnOnce(&str, OffsetUnit) -> Result<(Vec<u32>, Vec<usize>), SpecialFound> + Send,
) -> PyResult<(Bound<'py, PyList>, Vec<usize>)> {
    let unit = match unit {
        "byte" => OffsetUnit::Byte,
        "utf16" => OffsetUnit::Utf16,
        _ => OffsetUnit::CodePoint,
    };
    let (ids, offsets) = on_text(text, |text| encode(text, unit))?;
    Ok((list_of(text.py(), &ids)?, offsets))
}

/// Converts names of special tokens. A name with a lone surrogate occurs in no text and is dropped.
pub(super) fn names_in_text(names: &Bound<'_, PyFrozenSet>) -> PyResult<Vec<String>> {
    let mut strings = Vec::with_capacity(names.len());
    for name in names {
        if let Ok(name) = name.cast::<PyString>()?.to_str() {
            strings.push(name.to_owned());
        }
    }
    Ok(strings)
}

/// Returns the result of `decode`, or the error for the first id that has no token.
pub(super) fn joined(
    ids: &Bound<'_, PyAny>,
    decode: impl FnOnce(&[u32]) -> Result<Vec<u8>, UnknownId> + Send,
) -> PyResult<Vec<u8>> {
    let py = ids.py();
    let (known, too_large) = token_ids(ids)?;
    let facts = match (released(py, known.len(), || decode(&known))?, too_large) {
        (Ok(bytes), None) => return Ok(bytes),
        // The first unknown id is reported: all of `known` comes before `too_large`.
        (Err(error), _) => (PyInt::new(py, known[error.index]).into_any(), error.index),
        (Ok(_), Some(id)) => (id, known.len()),
    };
    Err(raise(py, ERRORS, "UnknownTokenId", facts))
}

/// Decodes bytes to a Python string. `errors` is the argument of `Encoding.decode`.
pub(super) fn python_text<'py>(
    py: Python<'py>,
    bytes: &[u8],
    errors: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let text = match from_utf8(bytes) {
        Err(error) if errors == "strict" => return Err(not_utf8(py, error)),
        text => text.unwrap_or_default(),
    };
    if let Some((count, is_far)) = decoded_len(text) {
        let (highest, width) = if is_far { (0x10_ffff, 4) } else { (0xffff, 2) };
        // SAFETY: the string is new, or null with an error. It has `count` places of the width that
        // its highest code point needs, and nobody else has it before they are all written.
        unsafe {
            let string = ffi::PyUnicode_New(count as ffi::Py_ssize_t, highest);
            let string = Bound::from_owned_ptr_or_err(py, string)?;
            let places = ffi::PyUnicode_DATA(string.as_ptr());
            places.write_bytes(0, width * count);
            if is_far {
                decode::<u32>(text, slice::from_raw_parts_mut(places.cast(), count));
            } else {
                decode::<u16>(text, slice::from_raw_parts_mut(places.cast(), count));
            }
            return Ok(string);
        }
    }
    // Python decides how many bytes one replacement character stands for.
    // SAFETY: the pointer and the length are those of `bytes`, which outlives the call;
    // the result is a new reference or null with an error.
    unsafe {
        let (start, len) = (bytes.as_ptr().cast(), bytes.len() as ffi::Py_ssize_t);
        let text = ffi::PyUnicode_DecodeUTF8(start, len, c"replace".as_ptr());
        Bound::from_owned_ptr_or_err(py, text)
    }
}
