//! One call between HTTP and Python: events to Python, commands from Python.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::arrived::Arrived;
use crate::outgoing::Outgoing;
use crate::peer::{HeldBytes, Peer, Unsent};
use crate::settings::SMALL_BYTES;

/// gRPC status codes.
pub const CANCELLED: u32 = 1;
pub const INVALID_ARGUMENT: u32 = 3;
pub const DEADLINE_EXCEEDED: u32 = 4;
pub const RESOURCE_EXHAUSTED: u32 = 8;
pub const UNIMPLEMENTED: u32 = 12;
pub const INTERNAL: u32 = 13;
pub const UNAUTHENTICATED: u32 = 16;

/// A new call.
pub struct Opened {
    /// Index of its method in the list of methods.
    pub method: usize,
    pub peer: Arc<Peer>,
    pub headers: HeaderMap,
    /// Their bytes count as held until Python drops the call.
    pub headers_held: Arc<HeldBytes>,
    /// The query string of a Connect GET.
    pub query: Option<String>,
    /// Whether its messages are proto3 JSON.
    pub is_json: bool,
    pub deadline: Option<Instant>,
    /// The message of a unary call; `None` for a stream, or if it has not been read yet.
    pub message: Option<Bytes>,
    /// Size of the message in bytes; an upper bound if it is not yet known.
    pub size: usize,
    /// Whether its connection has too many unread calls: Python must reject it.
    pub is_excess: bool,
    /// The messages of a stream: they count as held until Python drops the call.
    pub arrived: Option<Arc<Arrived>>,
}

/// An event of a call, for Python.
pub enum Event {
    Opened(Box<Opened>),
    /// The message that Python requested.
    Message(Bytes),
    /// The caller sends no more messages.
    End,
    /// The messages cannot be read: a gRPC status code and the reason.
    Broken(u32, String),
    /// The caller has cancelled, or its deadline has passed.
    Cancelled,
    /// A stream that was paused may send again.
    Writable,
    /// HTTP has sent everything of a stream that Python has ended.
    Ended,
    /// Belongs to no call.
    Closed(Box<Closed>),
}

/// A connection that was refused, or closed because of its peer.
pub struct Closed {
    /// The peer's name.
    pub peer: String,
    /// `LIMIT`, `HTTP2`, `DESCRIPTORS`, the setting whose limit refused the connection, or why the
    /// TLS handshake failed: one of few words.
    pub fault: &'static str,
    /// The same, for people.
    pub reason: String,
}

/// The fault of a connection that broke a limit.
pub const LIMIT: &str = "limit";

/// The fault of connections that wait because `accept` found no file descriptor.
pub const DESCRIPTORS: &str = "file_descriptors";

/// The fault of a connection that broke HTTP/2.
pub const HTTP2: &str = "http2";

impl Event {
    /// Whether it is a new call with a large message: it may take long to compute.
    pub fn is_large(&self) -> bool {
        match self {
            Event::Opened(opened) => opened.message.as_ref().map_or(0, Bytes::len) > SMALL_BYTES,
            _ => false,
        }
    }
}

pub type Pairs = Vec<(String, String)>;

/// Adds pairs as headers. Invalid ones are left out: Python checks what it sends.
pub fn add_pairs(map: &mut HeaderMap, pairs: Pairs) {
    for (name, value) in pairs {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            map.append(name, value);
        }
    }
}

/// Size of gRPC's prefix of a message: a compression flag and the message's size.
pub const PREFIX_BYTES: usize = 5;

/// A message to the caller with gRPC's prefix.
pub fn prefixed(message: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(PREFIX_BYTES + message.len());
    data.push(0);
    data.extend_from_slice(&(message.len() as u32).to_be_bytes());
    data.extend_from_slice(message);
    data
}

/// The status of a failed call: a gRPC status code, a message, details as (type name, bytes, and
/// for a caller of JSON the same as JSON).
#[derive(Clone, Debug, Default)]
pub struct Failure {
    pub code: u32,
    pub message: String,
    pub details: Vec<(String, Vec<u8>, String)>,
    pub headers: Pairs,
    pub trailers: Pairs,
}

impl Failure {
    pub fn new(code: u32, message: impl Into<String>) -> Self {
        Failure {
            code,
            message: message.into(),
            ..Failure::default()
        }
    }

    pub fn unanswered() -> Self {
        Failure::new(INTERNAL, "the call was not answered")
    }

    /// A body that is malformed or breaks off, or whose rest did not arrive in time.
    pub fn unreadable(error: &io::Error) -> Self {
        let code = match error.kind() {
            io::ErrorKind::TimedOut => return Failure::stalled(),
            io::ErrorKind::ConnectionAborted => CANCELLED,
            _ => INVALID_ARGUMENT,
        };
        Failure::new(code, format!("the request cannot be read: {error}"))
    }

    pub fn stalled() -> Self {
        Failure::new(DEADLINE_EXCEEDED, "the message did not arrive in time")
    }
}

/// A unary answer: a `prefixed` message with headers and trailers.
pub struct Answer {
    pub message: Unsent,
    pub headers: Pairs,
    pub trailers: Pairs,
}

/// The start of a stream's answer.
pub struct Started {
    pub headers: Pairs,
    pub trailers: Pairs,
    pub messages: Arc<Outgoing>,
}

/// A command from Python.
pub enum Command {
    /// Read the message of a unary call, or more of a stream that has processed this many.
    Read(usize),
    Answer(Answer),
    Start(Pairs, Pairs),
    Send(Unsent),
    Close,
    Fail(Failure),
}
