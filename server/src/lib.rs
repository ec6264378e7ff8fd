//! The native transport of bytepair-server: HTTP/1.1 and HTTP/2 below, whole calls above.
//!
//! `server` accepts connections, `connection` serves one, `connect` speaks the protocols, `calls`
//! keeps what is under way and hands it to Python in batches. `python` alone knows PyO3.

pub mod body;
pub mod calls;
pub mod connect;
pub mod connection;
pub mod cors;
pub mod peer;
pub mod server;
pub mod settings;
pub mod tls;

#[cfg(feature = "python")]
mod python;
