//! The Python module `bytepair_engine._core`. Only this folder depends on PyO3.
//!
//! It converts arguments to Rust, errors to the classes of `errors.py`, and a panic to an
//! `InternalError`.

#[macro_use]
mod text_methods;

mod breaks;
mod cancel;
mod chunker;
mod encoding;
mod fit;
mod guard;
mod ids;
mod merges;
mod pipeline;
mod small_int;
mod table;
mod text;
mod train;

use std::io::{Write, stderr};

use pyo3::prelude::*;

use cancel::CancelFlag;
use encoding::{Bpe, SpecialSet};
use pipeline::{Pipeline, PipelineNames};
use table::RankTable;
use train::{MergeTrainer, PretokenCounter, PretokenCounts};

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // The default hook prints the message of the panic, which may quote the text.
    std::panic::set_hook(Box::new(|panic| {
        if let Some(place) = panic.location() {
            // `eprintln` would panic if standard error is closed, and abort the process.
            let _ = writeln!(stderr(), "bytepair_engine._core: panic at {place}");
        }
    }));
    small_int::check(module.py())?;
    module.add_class::<RankTable>()?;
    module.add_class::<SpecialSet>()?;
    module.add_class::<Bpe>()?;
    module.add_class::<PipelineNames>()?;
    module.add_class::<Pipeline>()?;
    module.add_class::<CancelFlag>()?;
    module.add_class::<PretokenCounter>()?;
    module.add_class::<PretokenCounts>()?;
    module.add_class::<MergeTrainer>()?;
    module.add_function(wrap_pyfunction!(merges::merge_columns, module)?)?;
    module.add_function(wrap_pyfunction!(merges::merges_by_rank, module)?)?;
    module.add_function(wrap_pyfunction!(ids::unpack, module)?)?;
    module.add_function(wrap_pyfunction!(breaks::break_ends, module)?)?;
    module.add("BREAKS_UNICODE_VERSION", breaks::unicode_version())?;
    module.add("UNICODE_VERSION", crate::split::UNICODE_VERSION)
}
