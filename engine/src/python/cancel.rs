//! `_core.CancelFlag`, which `cancel.py` uses to stop the core's work.

use std::time::Duration;

use pyo3::prelude::*;

use crate::cancel;

/// A cancellation flag.
#[pyclass(frozen, module = "bytepair_engine._core")]
pub(super) struct CancelFlag(cancel::Flag);

#[pymethods]
impl CancelFlag {
    #[new]
    #[pyo3(signature = (seconds = None))]
    fn new(seconds: Option<f64>) -> Self {
        let most = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        CancelFlag(cancel::Flag::after(most))
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
