//! One call between HTTP and Python: events to Python, commands from Python.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::outgoing::Outgoing;
use crate::peer::Peer;

/// gRPC's numbers.
pub const INVALID_ARGUMENT: u32 = 3;
pub const DEADLINE_EXCEEDED: u32 = 4;
pub const RESOURCE_EXHAUSTED: u32 = 8;
pub const UNIMPLEMENTED: u32 = 12;
pub const INTERNAL: u32 = 13;
pub const UNAUTHENTICATED: u32 = 16;

/// A call as it comes.
pub struct Opened {
    /// The number of its method, in the order in which the methods were given.
    pub method: usize,
    pub peer: Arc<Peer>,
    pub headers: HeaderMap,
    /// The query of a Connect GET.
    pub query: Option<String>,
    /// Its messages are proto3 JSON.
    pub is_json: bool,
    pub deadline: Option<Instant>,
    /// The whole message of a unary call; `None` for a stream, and where it was not read yet.
    pub message: Option<Bytes>,
    /// Bytes of the message; the most that it may have where that is not known before.
    pub size: usize,
}

/// What happened to a call.
pub enum Event {
    Opened(Box<Opened>),
    /// The message that Python requested.
    Message(Bytes),
    /// The caller sends no more messages.
    End,
    /// The messages cannot be read: a gRPC code and why.
    Broken(u32, String),
    /// The caller is gone, or its deadline is over.
    Cancelled,
    /// A stream that was paused may send again.
    Writable,
    /// HTTP holds nothing more of a stream that Python has ended.
    Ended,
    /// Of no call: a connection is closed for what its peer does. Its name, and why.
    Evicted(String, &'static str),
}

pub type Pairs = Vec<(String, String)>;

/// Pairs as HTTP has them. Those that it cannot carry are left out: Python checks what it sends.
pub fn add_pairs(map: &mut HeaderMap, pairs: Pairs) {
    for (name, value) in pairs {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            map.append(name, value);
        }
    }
}

/// Bytes of gRPC's prefix of a message: whether it is compressed, and its size.
pub const PREFIX_BYTES: usize = 5;

/// A message to the caller, which gRPC's prefix precedes.
pub fn prefixed(message: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(PREFIX_BYTES + message.len());
    data.push(0);
    data.extend_from_slice(&(message.len() as u32).to_be_bytes());
    data.extend_from_slice(message);
    data
}

/// A call that fails: a gRPC code, a message, details as (type name, bytes), trailers.
#[derive(Clone, Debug, Default)]
pub struct Failure {
    pub code: u32,
    pub message: String,
    pub details: Vec<(String, Vec<u8>)>,
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
}

/// A message to the caller, `prefixed`, with what surrounds it.
pub struct Answer {
    pub message: Bytes,
    pub headers: Pairs,
    pub trailers: Pairs,
}

/// What a stream sends first.
pub struct Started {
    pub headers: Pairs,
    pub trailers: Pairs,
    pub messages: Arc<Outgoing>,
}

/// What Python says.
pub enum Command {
    /// Read the message, or this many more messages of a stream.
    Read(usize),
    Answer(Answer),
    Start(Pairs, Pairs),
    Send(Bytes),
    Close,
    Fail(Failure),
}
