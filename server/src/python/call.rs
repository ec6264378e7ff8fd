//! One call for Python: its request, and Python's commands.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::call::{Command, Failure, Opened, Pairs, UNAUTHENTICATED};
use crate::calls::Calls;
use crate::server::Server;

/// A call. Python's classes of calls inherit from it.
#[pyclass(frozen, subclass, module = "bytepair_server._transport")]
pub struct Call(Arc<Inner>);

struct Inner {
    number: u64,
    opened: Opened,
    message: Option<Py<PyBytes>>,
    is_over: AtomicBool,
    calls: Arc<Calls>,
    server: Arc<Server>,
}

impl Call {
    pub fn new(
        py: Python<'_>,
        number: u64,
        mut opened: Opened,
        calls: Arc<Calls>,
        server: Arc<Server>,
    ) -> Self {
        // Not held twice: it may be large.
        let message = opened.message.take();
        Call(Arc::new(Inner {
            number,
            opened,
            message: message.map(|message| PyBytes::new(py, &message).unbind()),
            is_over: AtomicBool::new(false),
            calls,
            server,
        }))
    }

    fn command(&self, command: Command) {
        self.0.calls.command(self.0.number, command);
    }
}

#[pymethods]
impl Call {
    /// The same call, for a class that inherits.
    #[new]
    fn of(call: &Call) -> Self {
        Call(call.0.clone())
    }

    #[getter]
    fn method(&self) -> usize {
        self.0.opened.method
    }

    #[getter]
    fn peer(&self) -> &str {
        &self.0.opened.peer.name
    }

    #[getter]
    fn certificate<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let certificate = self.0.opened.peer.certificate.as_ref();
        certificate.map(|der| PyBytes::new(py, der))
    }

    #[getter]
    fn query(&self) -> Option<&str> {
        self.0.opened.query.as_deref()
    }

    #[getter]
    fn is_json(&self) -> bool {
        self.0.opened.is_json
    }

    #[getter]
    fn message(&self, py: Python<'_>) -> Option<Py<PyBytes>> {
        self.0.message.as_ref().map(|message| message.clone_ref(py))
    }

    #[getter]
    fn size(&self) -> usize {
        self.0.opened.size
    }

    #[getter]
    fn is_excess(&self) -> bool {
        self.0.opened.is_excess
    }

    #[getter]
    fn is_over(&self) -> bool {
        self.0.is_over.load(Relaxed)
    }

    /// Whether the connection's limit on unsent answers permits one more of this size.
    fn has_room(&self, size: usize) -> bool {
        let most = self.0.server.shared.settings.max_unsent_bytes;
        self.0.opened.peer.has_room(size, most)
    }

    fn time_remaining(&self) -> Option<f64> {
        let left = self.0.opened.deadline?;
        Some(left.saturating_duration_since(Instant::now()).as_secs_f64())
    }

    /// A header that is sent several times has all values in one, as RFC 9110, section 5.3, reads
    /// it: no caller is identified by one of several credentials.
    fn header(&self, name: &str) -> Option<Cow<'_, str>> {
        let values = self.0.opened.headers.get_all(name).iter();
        let mut values = values.map(|value| value.to_str().ok());
        let first = values.next()??;
        values.try_fold(Cow::Borrowed(first), |all, next| Some(all + ", " + next?))
    }

    fn headers<'py>(&self, py: Python<'py>) -> Vec<(&str, Bound<'py, PyBytes>)> {
        let pairs = self.0.opened.headers.iter();
        pairs
            .map(|(name, value)| (name.as_str(), PyBytes::new(py, value.as_bytes())))
            .collect()
    }

    /// Read the message of a unary call, or `count` more of a stream.
    #[pyo3(signature = (count = 1))]
    fn request(&self, count: usize) {
        self.command(Command::Read(count));
    }

    #[pyo3(signature = (message, trailers = Vec::new(), headers = Vec::new()))]
    fn answer(&self, message: &[u8], trailers: Pairs, headers: Pairs) {
        self.0.is_over.store(true, Relaxed);
        self.0
            .calls
            .answer(self.0.number, message, headers, trailers);
    }

    #[pyo3(signature = (status, trailers = Vec::new(), headers = Vec::new()))]
    fn fail(&self, status: &Bound<'_, PyAny>, trailers: Pairs, headers: Pairs) -> PyResult<()> {
        let failure = Failure {
            code: status.getattr("code")?.extract()?,
            message: status.getattr("message")?.extract()?,
            details: status.getattr("details")?.extract()?,
            headers,
            trailers,
        };
        self.0.is_over.store(true, Relaxed);
        if failure.code == UNAUTHENTICATED {
            self.0.calls.count_as_abandoned(self.0.number);
        }
        self.command(Command::Fail(failure));
        Ok(())
    }

    /// Start the answers of a stream.
    fn start(&self, trailers: Pairs, headers: Pairs) {
        self.command(Command::Start(headers, trailers));
    }

    /// Send an answer of a stream. Returns whether more may follow at once.
    fn send(&self, message: &[u8]) -> bool {
        self.0.calls.send(self.0.number, message)
    }

    /// End a stream after its answers.
    fn finish(&self) {
        self.0.is_over.store(true, Relaxed);
        self.command(Command::Close);
    }
}
