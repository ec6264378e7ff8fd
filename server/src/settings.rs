//! The limits of the transport, as the server's settings give them.

use std::time::Duration;

use crate::call::Failure;

/// Everything that does not change while the transport runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Connections open at once, in all.
    pub max_connections: usize,
    /// Connections open at once from one IP address; 0: no limit of its own.
    pub max_connections_per_address: usize,
    /// Time for a TLS handshake, and then for the first bytes of HTTP.
    pub handshake_timeout: Duration,
    /// Time for one message of a unary call to arrive whole.
    pub message_timeout: Duration,
    /// Streams that one HTTP/2 connection may have open at once.
    pub max_concurrent_streams: u32,
    /// Bytes of one header list.
    pub max_header_bytes: u32,
    /// Bytes of one message, compressed and inflated.
    pub max_message_bytes: usize,
    /// A unary message of at most this many bytes is read before the caller is admitted.
    pub read_ahead_bytes: usize,
    /// Unary calls of one connection whose large messages wait unread to be admitted.
    pub max_unread_calls: usize,
    /// Bytes of unsent answers of one connection.
    pub max_unsent_bytes: usize,
    /// Bytes of incomplete messages and of unsent answers, of all connections.
    pub max_buffered_bytes: usize,
    /// Calls of one connection that its peer may give up within a second; 0: no limit.
    pub max_abandoned_per_second: u32,
    /// A connection of this age gets GOAWAY; `None`: never.
    pub max_connection_age: Option<Duration>,
    /// An idle connection is probed this often, and closed when it does not answer.
    pub keepalive_interval: Duration,
    pub keepalive_timeout: Duration,
    /// How a call fails whose connection has as much under way as it may.
    pub overloaded: Failure,
    /// Origins whose pages may call; empty: none. `*` stands for any.
    pub cors_origins: Vec<String>,
}

/// Unary calls with larger messages come to Python one at a time, after all smaller ones.
pub const SMALL_BYTES: usize = 16 << 10;
/// While as many bytes of large calls are queued, the message of another one is read once Python has
/// admitted the call: some tens of milliseconds of one core's work.
pub const LARGE_QUEUED_BYTES: usize = 16 << 20;
/// Messages that one stream may have read ahead of the handler.
pub const STREAM_READ_AHEAD: usize = 16;
/// HTTP/2 flow control for one stream: what a call holds at most while its message is not read.
pub const STREAM_WINDOW_BYTES: u32 = 64 << 10;
/// HTTP/2 flow control for one connection. It must exceed `max_unread_calls` stream windows, or
/// unread messages would block every other call of the connection (hyperium/hyper#2899).
pub const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;
/// Answers of fewer bytes are not worth compressing; larger ones would hold up the transport's thread.
pub const COMPRESS_FROM_BYTES: usize = 1 << 10;
pub const COMPRESS_UP_TO_BYTES: usize = 1 << 20;
/// A stream that holds more unsent bytes than this is paused, until it is below half of it.
pub const STREAM_UNSENT_BYTES: usize = 256 << 10;
