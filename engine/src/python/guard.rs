//! How work runs on behalf of Python: its errors become Python's, a panic an ordinary
//! exception, and the interpreter's lock is released around work that is worth it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Texts of fewer bytes are encoded without releasing the lock: it would cost more.
const RELEASE_FROM: usize = 8 * 1024;

/// A class of the engine's Python part, raised with these arguments.
pub(super) fn raise<'py>(
    py: Python<'py>,
    module: &str,
    class: &str,
    args: impl PyCallArgs<'py>,
) -> PyErr {
    let make = || py.import(module)?.getattr(class)?.call1(args);
    match make() {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

pub(super) const ERRORS: &str = "bytepair_engine.errors";

/// Run `work`; a panic in it is an exception that `except Exception` catches.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        PyRuntimeError::new_err("the native core failed on this input; please report it as a bug")
    })
}

/// As `guarded`, without the interpreter's lock when there is much to do.
pub(super) fn released<T: Send>(
    py: Python<'_>,
    bytes: usize,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    if bytes < RELEASE_FROM {
        guarded(work)
    } else {
        py.detach(|| guarded(work))
    }
}
