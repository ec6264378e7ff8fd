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

#[pyo3::pymodule]
mod _core {
    use std::io::{Write, stderr};

    use pyo3::prelude::*;

    #[pymodule_export]
    use super::{
        breaks::break_ends,
        cancel::CancelFlag,
        encoding::{Bpe, SpecialSet},
        ids::unpack,
        merges::{merge_columns, merges_by_rank},
        pipeline::Pipeline,
        table::RankTable,
        train::{MergeTrainer, PretokenCounter, PretokenCounts},
    };
    #[pymodule_export]
    const UNICODE_VERSION: &str = crate::split::UNICODE_VERSION;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // The default hook prints the message of the panic, which may quote the text.
        std::panic::set_hook(Box::new(|panic| {
            if let Some(place) = panic.location() {
                // `eprintln` would panic if standard error is closed, and abort the process.
                let _ = writeln!(stderr(), "bytepair_engine._core: panic at {place}");
            }
        }));
        super::small_int::check(module.py())?;
        let (major, minor, update) = crate::context::breaks::UNICODE_VERSION;
        let version = format!("{major}.{minor}.{update}");
        module.add("BREAKS_UNICODE_VERSION", version)
    }
}
