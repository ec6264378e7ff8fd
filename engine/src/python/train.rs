//! `_core.PretokenCounter`, `_core.PretokenCounts` and `_core.MergeTrainer`, the basis of
//! `training/` in Python.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::guard::{ERRORS, detached, guarded, pattern_error, raise};
use super::text::utf8;
use crate::parallel::cores_or;
use crate::split::Splitter;
use crate::train::{self, Counter, Counts, Spill, Stop, Ties, TooLarge, Trainer};

/// Locks a mutex, even after a panic of another holder.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts the pre-tokens of texts on several threads.
#[pyclass(frozen, module = "bytepair_engine._core")]
pub(super) struct PretokenCounter(Mutex<Counter>);

#[pymethods]
impl PretokenCounter {
    #[new]
    fn new(
        py: Python<'_>,
        pattern: Option<&str>,
        threads: usize,
        spill: Option<(PathBuf, usize)>,
    ) -> PyResult<Self> {
        let splitter = guarded(py, || pattern.map(Splitter::for_pattern).transpose())?
            .map_err(|fault| pattern_error(py, fault))?;
        let spill = spill.map(|(folder, memory)| Spill { folder, memory });
        let counter = Counter::new(splitter, cores_or(threads), spill);
        Ok(PretokenCounter(Mutex::new(counter)))
    }

    fn add(&self, py: Python<'_>, texts: Vec<Bound<'_, PyString>>) -> PyResult<()> {
        let texts = texts.iter().map(utf8).collect::<PyResult<Vec<&str>>>()?;
        Ok(detached(py, || locked(&self.0).add(&texts))??)
    }

    fn add_counts(&self, py: Python<'_>, counts: &PretokenCounts) -> PyResult<()> {
        let counts = counts.0.iter();
        Ok(detached(py, || locked(&self.0).add_counts(counts))??)
    }

    fn add_columns(
        &self,
        py: Python<'_>,
        words: &[u8],
        offsets: &[u8],
        counts: &[u8],
    ) -> PyResult<bool> {
        let Some(read) = train::read(words, offsets, counts) else {
            return Ok(false);
        };
        detached(py, || locked(&self.0).add_counts(read.into_iter()))??;
        Ok(true)
    }

    #[getter]
    fn bytes(&self) -> u64 {
        locked(&self.0).bytes
    }

    #[getter]
    fn runs(&self) -> usize {
        locked(&self.0).runs.len()
    }

    fn counts(&self, py: Python<'_>) -> PyResult<PretokenCounts> {
        let counts = detached(py, || locked(&self.0).counts())??;
        Ok(PretokenCounts(counts))
    }
}

/// All distinct pre-tokens, with their counts.
#[pyclass(frozen, module = "bytepair_engine._core")]
pub(super) struct PretokenCounts(Counts);

#[pymethods]
impl PretokenCounts {
    #[staticmethod]
    fn from_items(items: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut counts = Counts::default();
        for item in items.try_iter()? {
            let (word, count): (Bound<'_, PyBytes>, u64) = item?.extract()?;
            counts.push(word.as_bytes(), count);
        }
        Ok(PretokenCounts(counts.united()))
    }

    fn items<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        stop: usize,
    ) -> Vec<(Bound<'py, PyBytes>, u64)> {
        self.0
            .range(start, stop)
            .map(|(word, count)| (PyBytes::new(py, word), count))
            .collect()
    }

    fn columns<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        stop: usize,
    ) -> PyResult<Option<[Bound<'py, PyBytes>; 3]>> {
        let columns = detached(py, || train::write(&self.0, start, stop))?;
        Ok(columns.map(|columns| columns.map(|column| PyBytes::new(py, &column))))
    }

    fn buckets(&self, py: Python<'_>, number: usize) -> PyResult<Vec<Self>> {
        let buckets = detached(py, || train::buckets(&self.0, number.max(1)))?;
        Ok(buckets.into_iter().map(PretokenCounts).collect())
    }

    #[getter]
    fn unique_bytes(&self) -> usize {
        self.0.unique_bytes()
    }

    #[getter]
    fn total_bytes(&self) -> u128 {
        self.0.total_bytes()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }
}

/// The merges of one training.
#[pyclass(frozen, module = "bytepair_engine._core")]
pub(super) struct MergeTrainer(Mutex<Trainer>);

#[pymethods]
impl MergeTrainer {
    #[new]
    fn new(
        py: Python<'_>,
        counts: &PretokenCounts,
        byte_order: [u8; 256],
        ties: &str,
    ) -> PyResult<Self> {
        let ties = match ties {
            "first-seen" => Ties::FirstSeen,
            _ => Ties::Lowest,
        };
        let made = detached(py, || Trainer::new(&counts.0, &byte_order, ties))?;
        let trainer = made.map_err(|TooLarge| {
            let problem = "the different pre-tokens have more bytes together, or more occurrences, \
                           than can be counted";
            let args = (problem, "train on fewer texts");
            raise(py, ERRORS, "TrainingError", args)
        })?;
        Ok(MergeTrainer(Mutex::new(trainer)))
    }

    /// Continues the training. Returns the reason why it stopped.
    fn step(&self, py: Python<'_>, target: usize, least: i64, seconds: f64) -> PyResult<&str> {
        let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let stop = detached(py, || locked(&self.0).step(target, least.max(1), time))?;
        Ok(match stop {
            Stop::Enough => "enough",
            Stop::NoPair => "no_pair",
            Stop::Time => "time",
        })
    }

    fn merges(&self) -> Vec<(u32, u32, i64)> {
        let trainer = locked(&self.0);
        let merges = trainer.merges.iter();
        merges.map(|m| (m.left, m.right, m.count)).collect()
    }

    fn tokens<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let trainer = locked(&self.0);
        let tokens = trainer.tokens.iter();
        tokens.map(|token| PyBytes::new(py, token)).collect()
    }

    #[getter]
    fn length(&self) -> i64 {
        locked(&self.0).length
    }

    fn __len__(&self) -> usize {
        locked(&self.0).tokens.len()
    }
}
