//! The functions of `fields` for Python.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::fields::{self, named, only, take};

/// The message without the field, and the values of the field.
type Taken<'py> = (Bound<'py, PyBytes>, Bound<'py, PyList>);

/// The message without a field, and each value of the field; with `inner`, of the only field of
/// each message in it. `None` if protobuf must parse it.
#[pyfunction]
#[pyo3(signature = (message, number, inner = None))]
pub fn take_field<'py>(
    py: Python<'py>,
    message: &[u8],
    number: u32,
    inner: Option<u32>,
) -> PyResult<Option<Taken<'py>>> {
    let Some((rest, mut found)) = take(message, number) else {
        return Ok(None);
    };
    if let Some(inner) = inner {
        for content in &mut found {
            match only(content, inner) {
                Some(only) => *content = only,
                None => return Ok(None),
            }
        }
    }
    let found = found.into_iter().map(|content| PyBytes::new(py, content));
    let found = PyList::new(py, found)?;
    Ok(Some((PyBytes::new(py, &rest), found)))
}

/// The message without a field, and the name and the text of each message in the field. `None` if
/// protobuf must parse it.
#[pyfunction]
pub fn take_named_texts<'py>(
    py: Python<'py>,
    message: &[u8],
    number: u32,
) -> PyResult<Option<Taken<'py>>> {
    let Some((rest, found)) = take(message, number) else {
        return Ok(None);
    };
    let Some(found) = found.into_iter().map(named).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let found = found
        .iter()
        .map(|(name, text)| (*name, text.map(|text| PyBytes::new(py, text.as_bytes()))));
    let found = PyList::new(py, found)?;
    Ok(Some((PyBytes::new(py, &rest), found)))
}

/// The number of varints in the content of a packed field.
#[pyfunction]
pub fn count_varints(packed: &[u8]) -> usize {
    fields::count_varints(packed)
}
