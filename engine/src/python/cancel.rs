//! `_core.CancelFlag`, with which `cancel.py` stops the core's work.

use pyo3::prelude::*;

use crate::cancel;

/// A flag to work under.
#[pyclass(frozen, module = "bytepair_engine._core")]
pub(super) struct CancelFlag(cancel::Flag);

#[pymethods]
impl CancelFlag {
    #[new]
    fn new() -> Self {
        CancelFlag(cancel::Flag::default())
    }

    fn set(&self) {
        self.0.set();
    }

    fn enter(&self) {
        cancel::work_under(Some(self.0.clone()));
    }

    #[staticmethod]
    fn leave() {
        cancel::work_under(None);
    }
}
