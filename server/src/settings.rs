//! The limits of the transport, by the server's settings.

use std::time::Duration;

/// The limits, which do not change while the transport runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Maximum open connections.
    pub max_connections: usize,
    /// Maximum open connections from one IP address; 0: no limit.
    pub max_connections_per_address: usize,
    /// Time for a TLS handshake, and then for the first bytes of HTTP.
    pub handshake_timeout: Duration,
    /// Time for the message of a unary call to arrive.
    pub message_timeout: Duration,
    /// Maximum concurrent streams of one HTTP/2 connection.
    pub max_concurrent_streams: u32,
    /// Maximum bytes of the metadata of one call.
    pub max_metadata_bytes: u32,
    /// Maximum bytes of one message, compressed and inflated.
    pub max_message_bytes: usize,
    /// Unary messages up to this size are read before their call is admitted.
    pub read_ahead_bytes: usize,
    /// Maximum unary calls of one connection whose unread messages wait for admission.
    pub max_unread_calls: usize,
    /// Maximum bytes of unsent answers of one connection.
    pub max_unsent_bytes: usize,
    /// Maximum bytes of incomplete messages and unsent answers of all connections.
    pub max_buffered_bytes: usize,
    /// Maximum calls of one connection that its peer may cancel within a second; 0: no limit.
    pub max_abandoned_per_second: u32,
    /// A connection of this age gets GOAWAY; `None`: never.
    pub max_connection_age: Option<Duration>,
    /// Interval of pings on an idle connection, and the time to answer one.
    pub keepalive_interval: Duration,
    pub keepalive_timeout: Duration,
    /// Origins whose pages may call; empty: none. `*` stands for any.
    pub cors_origins: Vec<String>,
}

/// Python gets unary calls with larger messages one at a time, after all smaller ones.
pub const SMALL_BYTES: usize = 16 << 10;
/// Maximum bytes of larger messages that are read or computed without admission: some tens of
/// milliseconds of one core's work. Further ones are read once Python has admitted their call.
pub const UNADMITTED_BYTES: usize = 16 << 20;
/// A message that has been arriving for this long gives up its part of these bytes if others need
/// it, and waits for admission. Within this time, `max_abandoned_per_second` lets no connection
/// begin enough calls without credentials to reserve all.
pub const ARRIVAL_TIME: Duration = Duration::from_millis(100);
/// Maximum messages of a stream, and bytes of them, that wait for Python before reading stops.
pub const STREAM_READ_AHEAD: usize = 16;
pub const STREAM_READ_AHEAD_BYTES: usize = 64 << 10;
/// Python gets messages of this size together at a time, or one that is larger: copying more would
/// hold up its event loop.
pub const TAKE_BYTES: usize = 256 << 10;
/// Flow-control window of one HTTP/2 stream: the maximum that a call with an unread message holds.
pub const STREAM_WINDOW_BYTES: u32 = 64 << 10;
/// Flow-control window of one HTTP/2 connection. It must exceed `max_unread_calls` stream windows,
/// or unread messages would block every other call of the connection (hyperium/hyper#2899).
pub const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;
/// Answers of fewer bytes are not worth compressing; larger ones would hold up the transport's
/// thread.
pub const COMPRESS_FROM_BYTES: usize = 1 << 10;
pub const COMPRESS_UP_TO_BYTES: usize = 128 << 10;
/// A stream that holds more unsent bytes than this is paused, until it is below half of it.
pub const STREAM_UNSENT_BYTES: usize = 256 << 10;
/// Maximum bytes that are read and dropped after a call is over, or after the end of a connection
/// was sent.
pub const DISCARDED_BYTES: usize = 1 << 20;
