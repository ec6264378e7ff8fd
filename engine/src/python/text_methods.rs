//! The methods that `Bpe` and `Pipeline` share, with the meaning of `backends/interface.py`.

/// Gives a class with the field `core` the methods that encode, count and decode.
macro_rules! text_methods {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            fn encode<'py>(
                &self,
                text: &Bound<'py, PyAny>,
                allowed: &SpecialSet,
                disallowed: &SpecialSet,
            ) -> PyResult<Bound<'py, PyList>> {
                let encode = |text: &str| self.core.encode(text, &allowed.0, &disallowed.0);
                list_of(text.py(), &on_text(text, encode)?)
            }

            fn encode_array<'py>(
                &self,
                text: &Bound<'py, PyAny>,
                allowed: &SpecialSet,
                disallowed: &SpecialSet,
            ) -> PyResult<Bound<'py, PyAny>> {
                let encode = |text: &str| self.core.encode(text, &allowed.0, &disallowed.0);
                array_of(text.py(), &on_text(text, encode)?)
            }

            fn encode_packed<'py>(
                &self,
                text: &Bound<'py, PyAny>,
                allowed: &SpecialSet,
                disallowed: &SpecialSet,
            ) -> PyResult<Bound<'py, PyBytes>> {
                let encode = |text: &str| {
                    let ids = self.core.encode(text, &allowed.0, &disallowed.0)?;
                    Ok(varint::pack(&ids))
                };
                Ok(PyBytes::new(text.py(), &on_utf8(text, encode)?))
            }

            fn encode_with_offsets<'py>(
                &self,
                text: &Bound<'py, PyAny>,
                unit: &str,
                allowed: &SpecialSet,
                disallowed: &SpecialSet,
            ) -> PyResult<(Bound<'py, PyList>, Vec<usize>)> {
                located(text, unit, |text, unit| {
                    self.core
                        .encode_with_offsets(text, unit, &allowed.0, &disallowed.0)
                })
            }

            fn count(
                &self,
                text: &Bound<'_, PyAny>,
                allowed: &SpecialSet,
                disallowed: &SpecialSet,
                limit: Option<usize>,
            ) -> PyResult<usize> {
                let count = |text: &str| self.core.count(text, &allowed.0, &disallowed.0, limit);
                on_utf8(text, count)
            }

            fn decode<'py>(
                &self,
                ids: &Bound<'py, PyAny>,
                errors: &str,
            ) -> PyResult<Bound<'py, PyAny>> {
                let bytes = joined(ids, |ids| self.core.decode_bytes(ids))?;
                python_text(ids.py(), &bytes, errors)
            }

            fn decode_bytes<'py>(&self, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
                let bytes = joined(ids, |ids| self.core.decode_bytes(ids))?;
                Ok(PyBytes::new(ids.py(), &bytes))
            }
        }
    };
}
