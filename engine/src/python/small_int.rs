//! Reads and makes Python integers, the small ones without a call: by the layout that CPython
//! publishes.

use std::hint::select_unpredictable;

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyInt;

use crate::huge::Huge;

/// Whether `Long` is the start of `struct _longobject` in `cpython/longintrepr.h`: so it is in
/// CPython 3.11 to 3.14.
const IS_KNOWN: bool = cfg!(not(any(
    Py_3_15,
    PyPy,
    GraalPy,
    RustPython,
    Py_GIL_DISABLED
)));

/// An integer of one digit. The tag is `ob_size` in 3.11, and `lv_tag` in later versions.
#[derive(Clone, Copy)]
#[repr(C)]
struct Long {
    head: [usize; size_of::<ffi::PyObject>() / size_of::<usize>()],
    tag: usize,
    digit: u32,
}

/// The tag of a positive integer of one digit, and a bit of the tag that makes no difference.
const ONE_DIGIT: usize = if cfg!(Py_3_12) { 1 << 3 } else { 1 };
const FLAG: usize = if cfg!(Py_3_12) { 1 << 2 } else { 0 };

/// Returns the value of an exact `int`. None if it does not fit, and for other types.
///
/// # Safety
///
/// `object` must be a live Python object.
#[inline(always)]
pub(super) unsafe fn value(object: *mut ffi::PyObject) -> Option<u32> {
    // SAFETY: the caller guarantees a live object. An exact `int` never changes, and the header says
    // that it has the digits that its tag counts. The function raises nothing for one.
    unsafe {
        if ffi::PyLong_CheckExact(object) == 0 {
            return None;
        }
        let long = object.cast::<Long>();
        if IS_KNOWN && (*long).tag & !FLAG == ONE_DIGIT {
            return Some((*long).digit);
        }
        // Returns -1 on overflow.
        u32::try_from(ffi::PyLong_AsLongAndOverflow(object, &mut 0)).ok()
    }
}

/// Number of integers that Python itself keeps, from 0 on.
const SMALL: usize = 257;

/// Number of integers that fill a huge page.
const KEPT: usize = 1 << 16;

/// The first value that takes two digits.
const TWO_DIGITS: u32 = 1 << 30;

/// Python integers of recent ids: reusing them costs a third of making each anew. They are never
/// freed, so that lists may keep them.
pub(super) struct Integers {
    small: [Py<PyInt>; SMALL],
    /// Each id has one place, by its lower bits. 0 is in none of them.
    kept: Huge<Long>,
}

impl Integers {
    pub(super) fn of_process(py: Python<'_>) -> &Self {
        static INTEGERS: PyOnceLock<Integers> = PyOnceLock::new();
        INTEGERS.get_or_init(py, || {
            let sample = PyInt::new(py, SMALL);
            // SAFETY: the object is an integer of one digit, to which there is one reference. Where the
            // layout is not known, the copy is not used.
            let Long { head, tag, .. } = unsafe { *sample.as_ptr().cast() };
            let long = Long {
                head,
                tag,
                digit: 0,
            };
            Integers {
                small: std::array::from_fn(|value| PyInt::new(py, value).unbind()),
                kept: Huge::filled(if IS_KNOWN { KEPT } else { 0 }, long),
            }
        })
    }

    /// Returns the integer of an id.
    #[inline(always)]
    pub(super) fn of<'py>(&self, py: Python<'py>, id: u32) -> Bound<'py, PyAny> {
        if !IS_KNOWN {
            return PyInt::new(py, id).into_any();
        }
        let small = self.small[(id as usize).min(SMALL - 1)].as_ptr().cast();
        let kept = self.kept.as_ptr().wrapping_add(id as usize % KEPT);
        // Selected without a branch, which would be unpredictable.
        let long: *mut Long = select_unpredictable((id as usize) < SMALL, small, kept);
        // SAFETY: it is an integer of one digit. While Python is attached, no other thread uses it.
        // If nothing else refers to it, it may become another.
        unsafe {
            if (*long).digit != id {
                if id >= TWO_DIGITS || ffi::Py_REFCNT(long.cast()) != 1 {
                    return PyInt::new(py, id).into_any();
                }
                (*long).digit = id;
            }
            Bound::from_borrowed_ptr(py, long.cast())
        }
    }
}

/// Checks that digits have 30 bits. A Python can be built with digits of 15.
pub(super) fn check(py: Python<'_>) -> PyResult<()> {
    let info = py.import("sys")?.getattr("int_info")?;
    let bits: u32 = info.getattr("bits_per_digit")?.extract()?;
    if IS_KNOWN && bits != 30 {
        let problem = format!("this Python's integers have digits of {bits} bits instead of 30");
        return Err(PyImportError::new_err(problem));
    }
    Ok(())
}
