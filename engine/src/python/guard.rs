//! Runs work for Python: converts its errors, turns a panic into an ordinary exception, and
//! releases the interpreter's lock if that pays.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

use crate::cancel;
use crate::split::PatternFault;

/// Minimum size in bytes of work that releases the interpreter's lock. Less gains too little.
const RELEASE_FROM: usize = 8 * 1024;

/// Makes an exception of a class of the engine's Python part, with these arguments.
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

/// Makes the error for a pattern that the core does not support.
pub(super) fn pattern_error(py: Python<'_>, fault: PatternFault) -> PyErr {
    let problem = format!("at character {}: {}", fault.position, fault.problem);
    let remedy = "write the pattern without it, or use one of the named patterns";
    let args = ("the split pattern", problem, remedy);
    raise(py, ERRORS, "VocabularyError", args)
}

fn internal_error(py: Python<'_>) -> PyErr {
    raise(py, ERRORS, "InternalError", ())
}

/// Runs `work`. A panic becomes an exception that `except Exception` catches, unlike PyO3's.
pub(super) fn guarded<T>(py: Python<'_>, work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| internal_error(py))
}

/// Runs `work` as `guarded` does, without the interpreter's lock: it may yield.
pub(super) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| cancel::yielding(|| catch_unwind(AssertUnwindSafe(work))))
        .map_err(|_| internal_error(py))
}

/// Runs `work` as `guarded` does, without the interpreter's lock if there is much to do. Returns an
/// error if the work was cancelled before or during the run, since it may have ended early.
pub(super) fn released<T: Send>(
    py: Python<'_>,
    bytes: usize,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    if !cancel::is_set() {
        let done = if bytes < RELEASE_FROM {
            guarded(py, work)
        } else {
            detached(py, work)
        };
        if !cancel::is_set() {
            return done;
        }
    }
    Err(raise(py, ERRORS, "Cancelled", ()))
}
