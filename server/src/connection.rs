//! One connection: its age, and its limits against abuse.

use std::error::Error as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Sleep;

use crate::call::{Closed, HTTP2, LIMIT};
use crate::peer::{Peer, Peers};
use crate::request::answer;
use crate::server::Draining;
use crate::settings::{CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES, Settings};
use crate::shared::Shared;
use crate::socket::Rewound;

/// Between a first GOAWAY, after which a client begins no more calls, and the one that names the
/// last call. A call that arrives after the second is ignored, and its WINDOW_UPDATE would fail all
/// calls of its connection (h2 0.4.20). h2 alone waits for the acknowledgement of a PING, which
/// grpc's clients may send before calls that have begun.
const GOAWAY_INTERVAL: Duration = Duration::from_secs(5);

/// Minimum age of a connection that gets GOAWAY. A client of gRPC's C core (1.85) that reads it
/// together with the first SETTINGS still begins calls, which fail until the connection is closed.
const MIN_AGE: Duration = Duration::from_millis(200);

/// Maximum of calls reset before they are accepted, on a connection that begins in a flood: h2's
/// default.
const FEW_RESETS: usize = 20;

/// Bytes of headers that HTTP reads: twice the limit, so that a call slightly above it gets a
/// status of its protocol.
fn header_list_bytes(settings: &Settings) -> u32 {
    settings.max_metadata_bytes.saturating_mul(2)
}

/// HTTP/1.1 by the settings.
fn http1(settings: &Settings) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(settings.handshake_timeout.max(settings.keepalive_interval))
        .half_close(false)
        .max_buf_size((header_list_bytes(settings) as usize).max(8192));
    builder
}

/// HTTP/2 by the settings.
fn http2(settings: &Settings, peers: &Peers) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    // Those of a burst are read together. `Peer::abandon` counts them once accepted.
    let burst = settings
        .max_abandoned_per_second
        .max(settings.max_concurrent_streams);
    // With a burst on each, a flood of connections would keep a core busy.
    let most_resets = if peers.is_flooded() {
        FEW_RESETS
    } else {
        burst as usize
    };
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(settings.max_concurrent_streams)
        .max_pending_accept_reset_streams(most_resets)
        .max_header_list_size(header_list_bytes(settings))
        .keep_alive_interval(Some(settings.keepalive_interval))
        .keep_alive_timeout(settings.keepalive_timeout);
    builder
}

/// A connection of either version.
type Connection = Pin<
    Box<dyn GracefulConnection<Error = hyper::Error, Output = Result<(), hyper::Error>> + Send>,
>;

/// Serves a connection until it ends.
pub fn serve<S>(
    shared: Arc<Shared>,
    socket: Rewound<S>,
    is_http2: bool,
    peer: Arc<Peer>,
    mut draining: Draining,
) -> impl Future<Output = ()> + Send
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let goaway = socket.goaway();
    let service = {
        let (shared, peer) = (shared.clone(), peer.clone());
        hyper::service::service_fn(move |request| answer(&shared, &peer, request))
    };
    // Boxed, and not within the future below: that would be as large as all that it is made of.
    let (settings, io) = (&shared.settings, TokioIo::new(socket));
    let mut connection: Connection = if is_http2 {
        Box::pin(http2(settings, &shared.peers).serve_connection(io, service))
    } else {
        Box::pin(http1(settings).serve_connection(io, service))
    };
    async move {
        let began = Instant::now();
        let age = shared.settings.max_connection_age;
        let mut age = age.map(|age| Box::pin(tokio::time::sleep(age)));
        let (mut has_sent_goaway, mut last_goaway) = (false, None);
        let close = |fault, reason| {
            shared.calls.push_closed(Closed {
                peer: peer.name.clone(),
                fault,
                reason,
            });
        };
        loop {
            let closes = tokio::select! {
                ended = connection.as_mut() => {
                    if let Some(reason) = ended.err().and_then(|error| violation(&error)) {
                        close(HTTP2, reason);
                    }
                    return;
                }
                stops = draining.begun() => {
                    let wait = MIN_AGE.saturating_sub(began.elapsed());
                    if !stops && !wait.is_zero() {
                        age = Some(Box::pin(tokio::time::sleep(wait)));
                        continue;
                    }
                    stops
                }
                () = reached(&mut age) => false,
                () = reached(&mut last_goaway) => true,
                () = peer.evicted.notified() => {
                    close(LIMIT, peer.fault().into());
                    connection.as_mut().graceful_shutdown();
                    // Time to send GOAWAY. The memory of its calls is released at once.
                    let sending = tokio::time::timeout(Duration::from_millis(100), connection);
                    let _ = Box::pin(sending).await;
                    return;
                }
            };
            age = None;
            if closes || !is_http2 {
                last_goaway = None;
                connection.as_mut().graceful_shutdown();
            } else if !has_sent_goaway {
                has_sent_goaway = true;
                goaway.store(true, Relaxed);
                last_goaway = Some(Box::pin(tokio::time::sleep(GOAWAY_INTERVAL)));
            }
        }
    }
}

/// Why the server had to end a connection of HTTP/2; `None` if its peer has ended it.
fn violation(error: &hyper::Error) -> Option<String> {
    let error: &h2::Error = error.source()?.downcast_ref()?;
    let reason = error.reason()?;
    let is_ours = error.is_go_away() && error.is_library();
    is_ours.then(|| format!("HTTP/2 error {reason:?}: {reason}"))
}

/// Waits for a timer; for ever without one.
async fn reached(timer: &mut Option<Pin<Box<Sleep>>>) {
    match timer {
        Some(timer) => timer.as_mut().await,
        None => std::future::pending().await,
    }
}
