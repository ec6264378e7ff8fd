//! Conversion of token ids to and from Python integers, lists and arrays.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyInt, PyList};

use super::guard::released;
use super::small_int;
use crate::output::varint;

/// Returns a list of the ids.
pub(super) fn list_of<'py>(py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
    let integers = small_int::up_to(py, ids.iter().copied().max().unwrap_or(0));
    // SAFETY: `list` is a new list of this length, or null with an error. Each place is filled
    // once, with a reference that the list takes over, or with an integer that is never freed.
    unsafe {
        let list = ffi::PyList_New(ids.len() as ffi::Py_ssize_t);
        let list = Bound::from_owned_ptr_or_err(py, list)?;
        let places = (*list.as_ptr().cast::<ffi::PyListObject>()).ob_item;
        for (index, &id) in ids.iter().enumerate() {
            places.add(index).write(match integers {
                Some(integers) => integers.wrapping_add(id as usize).cast(),
                None => PyInt::new(py, id).into_ptr(),
            });
        }
        Ok(list.cast_into_unchecked())
    }
}

/// Returns the ids as u32, up to the first integer that does not fit in u32, which is returned too.
pub(super) fn token_ids<'py>(
    ids: &Bound<'py, PyAny>,
) -> PyResult<(Vec<u32>, Option<Bound<'py, PyAny>>)> {
    let mut known = Vec::new();
    if let Ok(list) = ids.cast_exact::<PyList>() {
        known.reserve(list.len());
        with_critical_section(list, || known.extend(exact_ids(list)));
        if known.len() == list.len() {
            return Ok((known, None));
        }
    } else if let Ok(buffer) = PyBuffer::<u32>::get(ids)
        && (buffer.dimensions(), buffer.format()) == (1, c"I")
    {
        return Ok((buffer.to_vec(ids.py())?, None));
    }
    for item in ids.try_iter()?.skip(known.len()) {
        let item = item?;
        match item.extract() {
            Ok(id) => known.push(id),
            Err(error) if error.is_instance_of::<PyOverflowError>(ids.py()) => {
                return Ok((known, Some(item)));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((known, None))
}

/// Returns the leading ids that are exact integers and fit in u32.
fn exact_ids(list: &Bound<'_, PyList>) -> impl Iterator<Item = u32> {
    (0..list.len()).map_while(|index| {
        // SAFETY: no Python runs while the ids are read, and no other thread changes the list. So
        // the list has this index and keeps the item alive.
        unsafe {
            let index = index as ffi::Py_ssize_t;
            small_int::value(ffi::PyList_GET_ITEM(list.as_ptr(), index))
        }
    })
}

/// Decodes a packed `repeated uint32` to `array("I")`; None if it is invalid.
#[pyfunction]
pub(super) fn unpack<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
    let values = released(py, data.len(), || varint::unpack(data))?;
    values.map(|values| array_of(py, &values)).transpose()
}

/// Returns `array("I")` of the ids.
pub(super) fn array_of<'py>(py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyAny>> {
    static ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let array = ARRAY.import(py, "array", "array")?;
    let array = array.call1((intern!(py, "I"),))?;
    let bytes = size_of_val(ids) as ffi::Py_ssize_t;
    // SAFETY: the view is read-only, spans exactly `ids`, and is dropped before `ids`. `frombytes`
    // copies it.
    let view = unsafe {
        let start = ids.as_ptr().cast_mut().cast();
        let view = ffi::PyMemoryView_FromMemory(start, bytes, ffi::PyBUF_READ);
        Bound::from_owned_ptr_or_err(py, view)
    }?;
    array.call_method1(intern!(py, "frombytes"), (view,))?;
    Ok(array)
}
