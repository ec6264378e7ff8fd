//! The extension module: only its files know PyO3.

mod arguments;
mod call;
mod fields;

use std::fs::File;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::oneshot;

use crate::call::{Command, Event, Failure, INTERNAL, Pairs};
use crate::calls::Calls;
use crate::connect::Protocols;
use crate::files::{StaticFile, StaticFiles};
use crate::methods::Method;
use crate::peer::Peers;
use crate::server::{Listener, Server};
use crate::shared::Shared;
use arguments::{Tls, read_kind, read_settings, read_tls};
use call::Call;

/// Time for connections to be closed when the transport stops.
const STOP: Duration = Duration::from_millis(500);

/// The transport of one process.
#[pyclass(frozen, module = "bytepair_server._transport")]
struct Transport {
    server: Arc<Server>,
    calls: Arc<Calls>,
    stop: Mutex<Option<(oneshot::Sender<()>, std::thread::JoinHandle<()>)>>,
}

#[pymethods]
impl Transport {
    #[new]
    #[pyo3(signature = (methods, files, wake_fd, tls, **settings))]
    fn new(
        methods: Vec<(String, String, bool, bool)>,
        files: Vec<(String, Pairs, Vec<u8>)>,
        wake_fd: RawFd,
        tls: Option<Tls>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let settings = read_settings(settings)?;
        // SAFETY: Python holds the descriptor open for as long as this call, which duplicates it.
        let wake = unsafe { BorrowedFd::borrow_raw(wake_fd) }.try_clone_to_owned()?;
        let calls = Calls::new(File::from(wake));
        let methods = methods
            .into_iter()
            .enumerate()
            .map(|(number, (path, kind, has_no_side_effects, is_small))| {
                let kind = read_kind(&kind)?;
                Ok((
                    path,
                    Method {
                        number,
                        kind,
                        has_no_side_effects,
                        is_small,
                    },
                ))
            })
            .collect::<PyResult<_>>()?;
        let files = files
            .into_iter()
            .map(|(path, headers, content)| {
                let file = StaticFile::new(headers, content).map_err(PyValueError::new_err)?;
                Ok((path, file))
            })
            .collect::<PyResult<_>>()?;
        let protocols = Protocols::new(methods, calls.clone(), &settings);
        let shared = Arc::new(Shared {
            peers: Peers::new(
                settings.max_buffered_bytes,
                settings.max_abandoned_per_second,
            ),
            settings,
            calls: calls.clone(),
            protocols,
            files: StaticFiles(files),
        });
        let tls = tls.map(read_tls).transpose()?;
        let server = Server::new(shared, tls);
        Ok(Transport {
            server,
            calls,
            stop: Mutex::default(),
        })
    }

    /// Serve on a socket that listens; the descriptor belongs to the transport from now on.
    fn start(&self, listener_fd: RawFd, is_unix: bool) -> PyResult<()> {
        let mut stop = self.stop.lock();
        if stop.is_some() {
            return Err(PyRuntimeError::new_err("the transport was started before"));
        }
        // SAFETY: the caller gives the descriptor away.
        let socket = unsafe { OwnedFd::from_raw_fd(listener_fd) };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let entered = runtime.enter(); // the listener belongs to it
        let listener = if is_unix {
            let listener = std::os::unix::net::UnixListener::from(socket);
            listener.set_nonblocking(true)?;
            Listener::Unix(UnixListener::from_std(listener)?)
        } else {
            let listener = std::net::TcpListener::from(socket);
            listener.set_nonblocking(true)?;
            Listener::Tcp(TcpListener::from_std(listener)?)
        };
        drop(entered);
        let (sender, stopped) = oneshot::channel();
        let server = self.server.clone();
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    never = server.run(listener) => match never {},
                    _ = stopped => {}
                }
            });
            runtime.shutdown_timeout(STOP);
        };
        let thread = std::thread::Builder::new()
            .name("transport".into())
            .spawn(serve)?;
        *stop = Some((sender, thread));
        Ok(())
    }

    /// Accept no more connections, and send GOAWAY on every open one.
    fn drain(&self) {
        self.server.drain();
    }

    /// Close each connection as soon as its calls have ended.
    fn close_connections(&self) {
        self.server.close_connections();
    }

    /// Close everything, and wait until the thread has ended.
    fn stop(&self, py: Python<'_>) {
        self.server.close_connections();
        if let Some((sender, thread)) = self.stop.lock().take() {
            let _ = sender.send(());
            py.detach(|| drop(thread.join()));
        }
    }

    #[getter]
    fn connections(&self) -> usize {
        self.server.connections()
    }

    #[getter]
    fn held_bytes(&self) -> usize {
        self.server.shared.peers.held()
    }

    fn replace_tls(&self, tls: Tls) -> PyResult<()> {
        self.server.replace_tls(read_tls(tls)?);
        Ok(())
    }

    /// `([(id, kind, payload), ...], whether there are more)`. `flush` must follow.
    fn take<'py>(&self, py: Python<'py>, most: usize) -> PyResult<(Bound<'py, PyList>, bool)> {
        let (events, has_more) = self.calls.take(most);
        let list = PyList::empty(py);
        for (id, event) in events {
            match event {
                Event::Opened(opened) => {
                    let (calls, server) = (self.calls.clone(), self.server.clone());
                    list.append((id, OPENED, Call::new(py, id, *opened, calls, server)))?;
                }
                Event::Message(data) => list.append((id, MESSAGE, PyBytes::new(py, &data)))?,
                Event::End => list.append((id, END, py.None()))?,
                Event::Broken(code, message) => list.append((id, BROKEN, (code, message)))?,
                Event::Cancelled => list.append((id, CANCELLED, py.None()))?,
                Event::Closed(closed) => {
                    let closed = (closed.peer, closed.fault, closed.reason);
                    list.append((id, CLOSED, closed))?;
                }
                Event::Ended => list.append((id, ENDED, py.None()))?,
                Event::Writable => list.append((id, WRITABLE, py.None()))?,
            }
        }
        Ok((list, has_more))
    }

    /// Carry out the commands since `take`.
    fn flush(&self) {
        self.calls.flush();
    }

    /// Fail a call whose handler did not end it; no effect if it is over.
    fn fail(&self, number: u64) {
        let failure = Failure::new(INTERNAL, "internal error");
        self.calls.command(number, Command::Fail(failure));
    }
}

const OPENED: u8 = 0;
const MESSAGE: u8 = 1;
const END: u8 = 2;
const BROKEN: u8 = 3;
const CANCELLED: u8 = 4;
const WRITABLE: u8 = 5;
const ENDED: u8 = 6;
const CLOSED: u8 = 7;

#[pymodule]
fn _transport(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Transport>()?;
    module.add_class::<Call>()?;
    module.add_function(wrap_pyfunction!(fields::count_varints, module)?)?;
    module.add_function(wrap_pyfunction!(fields::take_field, module)?)?;
    module.add_function(wrap_pyfunction!(fields::take_named_texts, module)?)?;
    for (name, value) in [
        ("OPENED", OPENED),
        ("MESSAGE", MESSAGE),
        ("END", END),
        ("BROKEN", BROKEN),
        ("CANCELLED", CANCELLED),
        ("WRITABLE", WRITABLE),
        ("ENDED", ENDED),
        ("CLOSED", CLOSED),
    ] {
        module.add(name, value)?;
    }
    Ok(())
}
