//! Token ids as Python has them: integers, lists and arrays.

use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, PoisonError};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyInt, PyList};

use super::guard::released;
use crate::output::varint;

/// Python integers made once for each id: a list of them costs a third of making them anew.
pub(super) struct Integers {
    /// By id; null until first needed. Each is one of the owned.
    made: Box<[AtomicPtr<ffi::PyObject>]>,
    owned: Mutex<Vec<Py<PyInt>>>,
}

/// Ids from here on are made anew: a vocabulary that has them is no dense one.
const MOST_INTEGERS: usize = 1 << 20;

impl Integers {
    pub(super) fn up_to(max_id: u32) -> Self {
        let count = (max_id as usize + 1).min(MOST_INTEGERS);
        Integers {
            made: (0..count).map(|_| AtomicPtr::default()).collect(),
            owned: Mutex::default(),
        }
    }

    /// A new reference.
    #[inline(always)]
    fn get(&self, py: Python<'_>, id: u32) -> *mut ffi::PyObject {
        let known = self.made.get(id as usize);
        let known = known.map_or(ptr::null_mut(), |made| made.load(Acquire));
        if known.is_null() {
            return self.make(py, id);
        }
        // SAFETY: it is owned, by `owned`, and the interpreter's lock is held.
        unsafe { ffi::Py_INCREF(known) };
        known
    }

    #[cold]
    #[inline(never)]
    fn make(&self, py: Python<'_>, id: u32) -> *mut ffi::PyObject {
        let new = PyInt::new(py, id);
        if let Some(made) = self.made.get(id as usize) {
            let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
            owned.push(new.clone().unbind());
            made.store(new.as_ptr(), Release);
        }
        new.into_ptr()
    }

    pub(super) fn list<'py>(&self, py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
        // SAFETY: a new list of so many places, or null with an error; each place is filled
        // once, with a reference that the list takes over.
        unsafe {
            let list = ffi::PyList_New(ids.len() as ffi::Py_ssize_t);
            let list = Bound::from_owned_ptr_or_err(py, list)?;
            for (index, &id) in ids.iter().enumerate() {
                ffi::PyList_SetItem(list.as_ptr(), index as ffi::Py_ssize_t, self.get(py, id));
            }
            Ok(list.cast_into_unchecked())
        }
    }
}

/// Ids as u32, up to the first integer that no u32 holds, which is returned too.
pub(super) fn token_ids<'py>(
    ids: &Bound<'py, PyAny>,
) -> PyResult<(Vec<u32>, Option<Bound<'py, PyAny>>)> {
    let py = ids.py();
    if let Ok(list) = ids.cast::<PyList>() {
        return listed_ids(list);
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

fn listed_ids<'py>(list: &Bound<'py, PyList>) -> PyResult<(Vec<u32>, Option<Bound<'py, PyAny>>)> {
    let mut known = Vec::with_capacity(list.len());
    while known.len() < list.len() {
        known.extend(exact_ids(list, known.len()));
        let Ok(item) = list.get_item(known.len()) else {
            break;
        };
        match token_id(&item)? {
            Some(id) => known.push(id),
            None => return Ok((known, Some(item))),
        }
    }
    Ok((known, None))
}

/// The ids from `start` on, up to the first item that is no exact `int` or that no u32 holds.
fn exact_ids(list: &Bound<'_, PyList>, start: usize) -> impl Iterator<Item = u32> {
    (start..list.len()).map_while(|index| {
        // SAFETY: no Python runs while the ids are read, so that the list has this index and
        // keeps the item alive; it is an exact int where its value is asked for.
        let value = unsafe {
            let item = ffi::PyList_GetItem(list.as_ptr(), index as ffi::Py_ssize_t);
            match ffi::PyLong_CheckExact(item) {
                0 => return None,
                _ => ffi::PyLong_AsLongLong(item),
            }
        };
        if value == -1 {
            PyErr::take(list.py());
        }
        u32::try_from(value).ok()
    })
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

/// The values of a packed `repeated uint32` as `array("I")`; None where it is none.
#[pyfunction]
pub(super) fn unpack<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
    let values = released(py, data.len(), || varint::unpack(data))?;
    values.map(|values| array_of(py, &values)).transpose()
}

/// `array("I")` of the ids.
pub(super) fn array_of<'py>(py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyAny>> {
    static ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let array = ARRAY.import(py, "array", "array")?;
    let array = array.call1((intern!(py, "I"),))?;
    let bytes = size_of_val(ids) as ffi::Py_ssize_t;
    // SAFETY: the view is read-only, spans exactly `ids`, and is dropped before `ids` is:
    // `frombytes` copies.
    let view = unsafe {
        let start = ids.as_ptr().cast_mut().cast();
        let view = ffi::PyMemoryView_FromMemory(start, bytes, ffi::PyBUF_READ);
        Bound::from_owned_ptr_or_err(py, view)
    }?;
    array.call_method1(intern!(py, "frombytes"), (view,))?;
    Ok(array)
}
