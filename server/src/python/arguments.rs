//! The transport's arguments from Python, as Rust types.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::methods::Kind;
use crate::settings::Settings;
use crate::tls::{TlsFiles, acceptor};

pyo3::import_exception!(bytepair_server.config.loader, ConfigurationError);

/// The certificate, its key, and the authorities of clients.
pub type Tls = (Vec<u8>, Vec<u8>, Option<Vec<u8>>);

pub fn read_kind(kind: &str) -> PyResult<Kind> {
    match kind {
        "unary" => Ok(Kind::Unary),
        "server_stream" => Ok(Kind::ServerStream),
        "client_stream" => Ok(Kind::ClientStream),
        "bidi_stream" => Ok(Kind::BidiStream),
        _ => Err(PyValueError::new_err(format!("{kind} is no kind of RPC"))),
    }
}

pub fn read_tls(files: Tls) -> PyResult<tokio_rustls::TlsAcceptor> {
    let (certificate, key, client_authorities) = files;
    acceptor(&TlsFiles {
        certificate,
        key,
        client_authorities,
    })
    .map_err(ConfigurationError::new_err)
}

pub fn read_settings(given: Option<&Bound<'_, PyDict>>) -> PyResult<Settings> {
    let get = |name: &str| -> PyResult<Bound<'_, PyAny>> {
        let value = given
            .and_then(|given| given.get_item(name).transpose())
            .transpose()?;
        value.ok_or_else(|| PyValueError::new_err(format!("the setting {name} is missing")))
    };
    let number = |name: &str| -> PyResult<usize> { get(name)?.extract() };
    let seconds = |name: &str| -> PyResult<Duration> {
        Duration::try_from_secs_f64(get(name)?.extract()?)
            .map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
    };
    let age = seconds("max_connection_age_seconds")?;
    Ok(Settings {
        max_connections: number("max_connections")?,
        max_connections_per_address: number("max_connections_per_address")?,
        handshake_timeout: seconds("handshake_seconds")?,
        message_timeout: seconds("message_seconds")?,
        max_concurrent_streams: get("max_concurrent_streams")?.extract()?,
        max_metadata_bytes: get("max_metadata_bytes")?.extract()?,
        max_message_bytes: number("max_message_bytes")?,
        read_ahead_bytes: number("read_ahead_bytes")?,
        max_unread_calls: number("max_unread_calls")?,
        max_unsent_bytes: number("max_unsent_bytes")?,
        max_buffered_bytes: number("max_buffered_bytes")?,
        max_abandoned_per_second: get("max_abandoned_per_second")?.extract()?,
        max_connection_age: (!age.is_zero()).then_some(age),
        keepalive_interval: seconds("keepalive_seconds")?,
        keepalive_timeout: seconds("keepalive_timeout_seconds")?,
        cors_origins: get("cors_origins")?.extract()?,
    })
}
