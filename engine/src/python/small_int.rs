//! Reads Python integers, the small ones without a call: by the layout that CPython publishes.

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

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
#[repr(C)]
struct Long {
    head: ffi::PyObject,
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
