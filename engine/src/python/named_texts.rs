//! Names and texts of a message as Python has them.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::guard::guarded;
use crate::named_texts::take;

/// The message without the field, and its elements.
type Taken<'py> = (Bound<'py, PyBytes>, Bound<'py, PyList>);

/// See `named_texts.take_named_texts`.
#[pyfunction]
pub(super) fn take_named_texts<'py>(
    py: Python<'py>,
    data: &[u8],
    number: u8,
) -> PyResult<Option<Taken<'py>>> {
    let Some((rest, found)) = guarded(py, || take(data, number))? else {
        return Ok(None);
    };
    let named = found
        .iter()
        .map(|(name, text)| (*name, text.map(|text| PyBytes::new(py, text.as_bytes()))));
    let elements = PyList::new(py, named)?;
    Ok(Some((PyBytes::new(py, &rest), elements)))
}
