//! Reads and makes Python integers, the small ones without a call: by the layout that CPython
//! publishes.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::huge::{Huge, forks};

/// Whether `Long` is the start of `struct _longobject` in `cpython/longintrepr.h`: so it is in
/// CPython 3.11 to 3.14, where addresses have 64 bits.
const IS_KNOWN: bool = cfg!(not(any(
    not(target_pointer_width = "64"),
    Py_3_15,
    PyPy,
    GraalPy,
    RustPython,
    Py_GIL_DISABLED
)));

/// An integer of at most one digit. The tag is `ob_size` in 3.11, and `lv_tag` in later versions.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Long {
    references: usize,
    kind: usize,
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
    // The place of one that is kept tells its value, without waiting for memory.
    let place = object.addr().wrapping_sub(START.load(Relaxed).addr()) / size_of::<Long>();
    if place < MADE.load(Relaxed) {
        return Some(place as u32);
    }
    // SAFETY: the caller guarantees a live object. An exact `int` never changes, and the header
    // says that it has the digits that its tag counts. The function raises nothing for one.
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

/// Number of integers that are kept: of the ids of most vocabularies. A multiple of `STEP`.
const KEPT: usize = 1 << 18;

/// Number of integers that are made at once.
const STEP: usize = 1 << 12;

/// More references than all lists ever give up. From 3.12 on, Python's small integers bear a number
/// by which it knows objects that are never freed.
const FOREVER: usize = 1 << 62;

/// Where Python integers from 0 on are, each at the place of its value: a list of ids is made
/// without reading them, and without counting references. They never change, and are never freed.
static START: AtomicPtr<Long> = AtomicPtr::new(ptr::null_mut());

/// How many are made.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// The number of forks before they were made.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// Returns where the integer 0 is; those up to `most` follow it. None if one of them is not kept.
pub(super) fn up_to(py: Python<'_>, most: u32) -> Option<*mut Long> {
    if !IS_KNOWN || most as usize >= KEPT {
        return None;
    }
    let mut end = (most as usize + 1).next_multiple_of(STEP);
    // While Python is attached, no other thread is here.
    let (mut start, mut made) = (START.load(Relaxed), MADE.load(Relaxed));
    // Before 3.12, Python writes the references that a list gives up. After a fork, a first write
    // to each page that is shared costs more than making the integers.
    let is_shared = cfg!(not(Py_3_12)) && FORKS.load(Relaxed) != forks();
    if start.is_null() || is_shared {
        let places = ManuallyDrop::new(Huge::filled(KEPT, MaybeUninit::<Long>::uninit()));
        start = places.as_ptr().cast();
        START.store(start, Relaxed);
        FORKS.store(forks(), Relaxed);
        // After a fork, as many as before.
        end = end.max(made);
        made = 0;
    }
    if end > made {
        let [zero, one] = [0, 1].map(|value| immortal(&PyInt::new(py, value)));
        for value in made..end {
            let digit = value as u32;
            let long = if digit == 0 {
                zero
            } else {
                Long { digit, ..one }
            };
            // SAFETY: `end` is at most KEPT, and nothing refers to this place yet.
            unsafe { start.add(value).write(long) };
        }
        MADE.store(end, Relaxed);
    }
    Some(start)
}

/// Returns a copy of a small integer that is never freed.
fn immortal(small: &Bound<'_, PyInt>) -> Long {
    // SAFETY: it is an integer of at most one digit.
    let mut long: Long = unsafe { *small.as_ptr().cast() };
    long.tag &= !FLAG;
    if cfg!(not(Py_3_12)) {
        long.references = FOREVER;
    }
    long
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
