//! The native transport of bytepair-server: from HTTP/1.1 and HTTP/2 to whole calls.
//!
//! `server` → `connection` → `request` → `grpc_request` or `connect_request` → `calls` → `events`
//!
//! The first line of each module says what it holds. Only `python` depends on PyO3.

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
pub mod methods;
pub mod outgoing;
pub mod peer;
mod pending_call;
pub mod request;
mod reservations;
pub mod server;
pub mod settings;
pub mod shared;
mod socket;
mod timeouts;
pub mod tls;

#[cfg(feature = "python")]
mod python;
