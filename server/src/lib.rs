//! The native transport of bytepair-server: from HTTP/1.1 and HTTP/2 to whole calls.
//!
//! `server` accepts connections, `connection` serves one, and `request` one of its requests, read by
//! `headers`. `grpc_request` and `grpc` serve gRPC over HTTP/2, with `messages` in and `outgoing` out;
//! `connect_request` and `connect` serve the other protocols; both wait in `admission`. `help` answers what is no call. `calls` holds the calls in progress, each
//! in a `slot`. `events` passes their events (see `call`) to Python in batches, and `commands` passes
//! Python's commands to them. `arrived` limits what is read of a stream ahead of Python. `fields` reads
//! fields of messages. Only `python` depends on PyO3.

mod admission;
pub mod arrived;
pub mod body;
pub mod call;
pub mod calls;
mod commands;
pub mod connect;
mod connect_request;
pub mod connection;
pub mod cors;
pub mod events;
pub mod fields;
pub mod files;
pub mod grpc;
mod grpc_request;
mod guard;
pub mod gzip;
mod headers;
mod help;
mod linger;
pub mod messages;
pub mod outgoing;
pub mod peer;
pub mod request;
pub mod server;
pub mod settings;
mod slot;
mod socket;
mod timeouts;
pub mod tls;

#[cfg(feature = "python")]
mod python;
