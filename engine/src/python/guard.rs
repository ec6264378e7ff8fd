//! How work runs on behalf of Python: its errors become Python's, a panic an ordinary
//! exception, and the interpreter's lock is released around work that is worth it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

use crate::cancel;
use crate::split::PatternFault;

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

/// The error for a pattern that the core does not run.
pub(super) fn pattern_error(py: Python<'_>, fault: PatternFault) -> PyErr {
    let problem = format!("at character {}: {}", fault.position, fault.problem);
    let remedy = "write the pattern without it, or use one of the named patterns";
    raise(
        py,
        ERRORS,
        "VocabularyError",
        ("the split pattern", problem, remedy),
    )
}

/// `work` panicked.
struct Panicked;

fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked)
}

fn internal_error(py: Python<'_>) -> PyErr {
    raise(py, ERRORS, "InternalError", ())
}

/// Run `work`; a panic in it is an exception that `except Exception` catches, unlike the one that
/// PyO3 would make of it.
pub(super) fn guarded<T>(py: Python<'_>, work: impl FnOnce() -> T) -> PyResult<T> {
    caught(work).map_err(|Panicked| internal_error(py))
}

/// As `guarded`, without the interpreter's lock.
pub(super) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| caught(work))
        .map_err(|Panicked| internal_error(py))
}

/// As `guarded`, without the interpreter's lock when there is much to do; an error where the
/// work was cancelled before or meanwhile, and may have ended early.
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
