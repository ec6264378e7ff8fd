//! The accept loop: limits on connections, TLS, and draining.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, ErrorKind::TimedOut};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryFutureExt;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::call::{Closed, DESCRIPTORS};
use crate::connection::serve;
use crate::linger::Lingering;
use crate::peer::Peer;
use crate::shared::Shared;
use crate::socket::Rewound;
use crate::tls::failed;

/// The wait after `accept` failed because of missing descriptors or memory.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The system, or this process, has no more file descriptors. The numbers are those of Linux and
/// macOS.
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

/// The preface of an HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const FRAME_HEAD_BYTES: usize = 9;

/// A listening socket.
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Serving,
    Draining,
    Stopping,
}

/// Notified when the server begins to drain, and again when it stops.
pub struct Draining {
    stage: watch::Receiver<Stage>,
    /// HTTP/1.1 has no GOAWAY: the next answer has `connection: close`.
    is_http2: bool,
}

impl Draining {
    fn new(stage: &watch::Sender<Stage>, is_http2: bool) -> Self {
        let mut stage = stage.subscribe();
        if *stage.borrow() != Stage::Serving {
            stage.mark_changed(); // a connection that began before waited for its handshake
        }
        Draining { stage, is_http2 }
    }

    /// Waits for either; with HTTP/1.1 for the stop. Returns whether the server stops: its calls
    /// have ended.
    pub async fn begun(&mut self) -> bool {
        loop {
            if self.stage.changed().await.is_err() {
                std::future::pending().await // the server has ended, and soon this connection
            }
            let stops = *self.stage.borrow_and_update() == Stage::Stopping;
            if stops || self.is_http2 {
                return stops;
            }
        }
    }
}

/// A running server.
pub struct Server {
    pub shared: Arc<Shared>,
    tls: Mutex<Option<TlsAcceptor>>,
    stage: watch::Sender<Stage>,
    /// Notified to close the listening socket.
    stop_listening: Notify,
    connections: AtomicUsize,
    of_address: Mutex<HashMap<IpAddr, usize>>,
}

impl Server {
    pub fn new(shared: Arc<Shared>, tls: Option<TlsAcceptor>) -> Arc<Self> {
        Arc::new(Server {
            shared,
            tls: Mutex::new(tls),
            stage: watch::Sender::new(Stage::Serving),
            stop_listening: Notify::new(),
            connections: AtomicUsize::new(0),
            of_address: Mutex::default(),
        })
    }

    /// Number of open connections, including those in a handshake.
    pub fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }

    /// Uses new TLS files for connections that start later.
    pub fn replace_tls(&self, tls: TlsAcceptor) {
        *self.tls.lock() = Some(tls);
    }

    /// Accepts no more connections, and sends GOAWAY on every open one. Python rejects later calls.
    pub fn drain(&self) {
        self.stop_listening.notify_one();
        self.shared.peers.are_ending.store(true, Relaxed);
        self.stage.send_replace(Stage::Draining);
    }

    /// Closes connections as soon as their calls have ended.
    pub fn close_connections(&self) {
        self.shared.peers.are_ending.store(true, Relaxed);
        self.stage.send_replace(Stage::Stopping);
    }

    /// Serves; never returns.
    pub async fn run(self: Arc<Self>, listener: Listener) -> Infallible {
        tokio::spawn(self.shared.calls.clone().hand_out());
        match listener {
            Listener::Tcp(listener) => self.accept_tcp(listener).await,
            Listener::Unix(listener) => self.accept_unix(listener).await,
        }
        std::future::pending().await
    }

    /// Returns the next connection; `None` once the server stops listening and has accepted those
    /// that the kernel holds, which it would reset.
    async fn accepted<T>(&self, accept: impl AsyncFn() -> io::Result<T>) -> Option<T> {
        loop {
            let accepted = tokio::select! {
                biased;
                accepted = accept() => accepted,
                () = self.stop_listening.notified() => return None,
            };
            match accepted {
                Ok(accepted) => return Some(accepted),
                Err(error) => {
                    if matches!(error.raw_os_error(), Some(ENFILE | EMFILE)) {
                        self.shared.calls.push_closed(Closed {
                            peer: String::new(), // not known before `accept`
                            fault: DESCRIPTORS,
                            reason: error.to_string(),
                        });
                    }
                    tokio::select! {
                        () = tokio::time::sleep(ACCEPT_RETRY_DELAY) => {}
                        () = self.stop_listening.notified() => return None,
                    }
                }
            }
        }
    }

    async fn accept_tcp(self: &Arc<Self>, listener: TcpListener) {
        while let Some((socket, address)) = self.accepted(|| listener.accept()).await {
            let family = if address.is_ipv4() { "ipv4" } else { "ipv6" };
            let name = format!("{family}:{address}");
            // Close it: a connection that stays in the backlog would wait for its timeout.
            let Some(permit) = self.admit(&name, Some(address.ip())) else {
                continue;
            };
            let _ = socket.set_nodelay(true);
            let shaking = self.clone();
            tokio::spawn(shaking.shake_hands(socket, name, Some(address.ip()), permit));
        }
    }

    async fn accept_unix(self: &Arc<Self>, listener: UnixListener) {
        while let Some((socket, _)) = self.accepted(|| listener.accept()).await {
            let name = "unix:";
            let Some(permit) = self.admit(name, None) else {
                continue;
            };
            let shaking = self.clone();
            tokio::spawn(shaking.shake_hands(socket, name.into(), None, permit));
        }
    }

    /// Serves an accepted connection until it ends. `permit` is dropped when its socket is closed.
    pub fn shake_hands<S, H>(
        self: Arc<Self>,
        socket: S,
        name: String,
        address: Option<IpAddr>,
        permit: H,
    ) -> impl Future<Output = ()> + Send
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        H: Send + Unpin + 'static,
    {
        let tls = self.tls.lock().clone();
        let socket = Lingering::new(socket, permit);
        async move {
            let Some(tls) = tls else {
                let peer = self.shared.peers.add(name, address, None);
                return self.serve_http(socket, peer).await;
            };
            // Boxed: a TLS session would double the memory of each connection without one.
            let serving = Box::pin(async move {
                let most = self.shared.settings.handshake_timeout;
                let accepting = tls.accept(socket).into_fallible();
                let accepting =
                    accepting.map_err(|(error, socket)| (error, socket.peer_has_sent()));
                let accepted = timeout(most, accepting).await;
                let socket = match accepted.unwrap_or_else(|_| Err((TimedOut.into(), false))) {
                    Ok(socket) => socket,
                    Err((error, has_sent)) => {
                        let closed = failed(name, &error, has_sent);
                        return self.shared.calls.push_closed(closed);
                    }
                };
                let shown = socket.get_ref().1.peer_certificates();
                let certificate = shown.and_then(|chain| Some(chain.first()?.to_vec()));
                let peer = self.shared.peers.add(name, address, certificate);
                self.serve_http(socket, peer).await;
            });
            serving.await;
        }
    }

    /// Serves a connection after its TLS handshake, if any.
    async fn serve_http<S>(&self, socket: S, peer: Arc<Peer>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let most = self.shared.settings.handshake_timeout;
        let Some((socket, is_http2)) = first_bytes(socket, most).await else {
            return;
        };
        let draining = Draining::new(&self.stage, is_http2);
        serve(self.shared.clone(), socket, is_http2, peer, draining).await;
    }

    /// Counts a connection. If there are the maximum, in all or of its address, returns `None` and
    /// tells Python.
    fn admit(self: &Arc<Self>, name: &str, address: Option<IpAddr>) -> Option<ConnectionPermit> {
        let refuse = |setting, limit| {
            self.shared.calls.push_closed(Closed {
                peer: name.into(),
                fault: setting,
                reason: format!("{setting} is {limit}"),
            });
            None
        };
        let most = self.shared.settings.max_connections;
        if self.connections() >= most {
            return refuse("max_connections", most);
        }
        let most = self.shared.settings.max_connections_per_address;
        if let (Some(address), true) = (address, most > 0) {
            let mut of_address = self.of_address.lock();
            let count = of_address.entry(address).or_default();
            if *count >= most {
                return refuse("max_connections_per_address", most);
            }
            *count += 1;
        }
        self.connections.fetch_add(1, Relaxed);
        Some(ConnectionPermit {
            server: self.clone(),
            address,
        })
    }
}

/// An open connection, counted until dropped.
struct ConnectionPermit {
    server: Arc<Server>,
    address: Option<IpAddr>,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.server.connections.fetch_sub(1, Relaxed);
        let Some(address) = self.address else { return };
        let mut of_address = self.server.of_address.lock();
        if let Some(count) = of_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                of_address.remove(&address);
            }
        }
    }
}

/// Returns the socket, and whether it has HTTP/2, once its peer has sent enough to tell that from
/// HTTP/1.1, and for HTTP/2 also the head of its first frame; `None` if that takes too long.
async fn first_bytes<S: AsyncRead + Unpin>(
    mut socket: S,
    most: Duration,
) -> Option<(Rewound<S>, bool)> {
    let mut buffer = Vec::with_capacity(PREFACE.len() + FRAME_HEAD_BYTES);
    let reading = async {
        while buffer.len() < PREFACE.len() + FRAME_HEAD_BYTES
            && buffer.starts_with(&PREFACE[..buffer.len().min(PREFACE.len())])
        {
            if socket.read_buf(&mut buffer).await.ok()? == 0 {
                return None;
            }
        }
        Some(())
    };
    timeout(most, reading).await.ok()??;
    let is_http2 = buffer.starts_with(PREFACE);
    let first = Bytes::from(buffer);
    Some((Rewound::new(first, socket), is_http2))
}
