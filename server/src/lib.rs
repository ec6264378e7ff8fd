//! The native transport of bytepair-server: HTTP/1.1 and HTTP/2 below, whole calls above.
//!
//! `server` accepts connections, `connection` serves one, `request` one of its requests. `grpc` speaks
//! gRPC over HTTP/2, with `messages` in and `outgoing` out, and `connect` the other protocols. `calls`
//! keeps the calls under way, each in a `slot`, and `events` hands what happens to them, as `call` has
//! it, to Python in batches. `fields` reads fields of messages. `python` alone knows PyO3.

pub mod body;
pub mod call;
pub mod calls;
pub mod connect;
pub mod connection;
pub mod cors;
pub mod events;
pub mod fields;
pub mod files;
pub mod grpc;
pub mod gzip;
pub mod messages;
pub mod outgoing;
pub mod peer;
pub mod request;
pub mod server;
pub mod settings;
mod slot;
mod timeouts;
pub mod tls;

#[cfg(feature = "python")]
mod python;
