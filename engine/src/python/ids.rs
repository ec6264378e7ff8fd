//! Conversion of token ids to and from Python integers, lists and arrays.

use std::sync::{Mutex, PoisonError};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::sync::{MutexExt, PyOnceLock};
use pyo3::types::{PyInt, PyList};

use super::guard::released;
use super::small_int;
use crate::output::varint;

/// Python integers of recent ids: reusing them costs a third of making each anew.
///
/// `MAX_INTEGERS` of them after the first list, indexed by the lower bits of the id. A new id
/// replaces the old one.
#[derive(Default)]
pub(super) struct Integers(Mutex<Vec<(u32, Option<Py<PyInt>>)>>);

const MAX_INTEGERS: usize = 1 << 15;

impl Integers {
    pub(super) fn list<'py>(&self, py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
        // SAFETY: `list` is a new list of this length, or null with an error. Each index is filled
        // once, with a reference that the list takes over.
        unsafe {
            let list = ffi::PyList_New(ids.len() as ffi::Py_ssize_t);
            let list = Bound::from_owned_ptr_or_err(py, list)?;
            // After the new list, which may run Python's garbage collection. With an interpreter's
            // lock nobody waits here, because this lock is held only together with it.
            let made = self.0.lock_py_attached(py);
            let mut made = made.unwrap_or_else(PoisonError::into_inner);
            made.resize_with(MAX_INTEGERS, Default::default);
            for (index, &id) in ids.iter().enumerate() {
                let integer = match &mut made[id as usize % MAX_INTEGERS] {
                    (known, Some(integer)) if *known == id => integer.clone_ref(py),
                    entry => replaced(py, entry, id),
                };
                let index = index as ffi::Py_ssize_t;
                ffi::PyList_SET_ITEM(list.as_ptr(), index, integer.into_ptr());
            }
            Ok(list.cast_into_unchecked())
        }
    }
}

/// Puts a new integer into its entry, and returns it.
#[cold]
#[inline(never)]
fn replaced(py: Python<'_>, entry: &mut (u32, Option<Py<PyInt>>), id: u32) -> Py<PyInt> {
    let integer = PyInt::new(py, id).unbind();
    *entry = (id, Some(integer.clone_ref(py)));
    integer
}

/// Returns the ids as u32, up to the first integer that does not fit in u32, which is returned too.
pub(super) fn token_ids<'py>(
    ids: &Bound<'py, PyAny>,
) -> PyResult<(Vec<u32>, Option<Bound<'py, PyAny>>)> {
    let mut known = Vec::with_capacity(ids.len().unwrap_or(0));
    if let Ok(list) = ids.cast_exact::<PyList>() {
        with_critical_section(list, || known.extend(exact_ids(list)));
        if known.len() == list.len() {
            return Ok((known, None));
        }
    } else if let Ok(buffer) = PyBuffer::<u32>::get(ids) {
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
