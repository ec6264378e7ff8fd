//! TLS: a certificate and key, the authorities of client certificates, and why handshakes fail.

use std::io;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::AlertDescription as Alert;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{
    NoClientAuth, NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier,
};
use tokio_rustls::rustls::{CertificateError, Error, InvalidMessage};
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto::ring};

use crate::call::Closed;

/// The configured files, as PEM.
pub struct TlsFiles {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
    /// If given, clients must have a certificate of one of these.
    pub client_authorities: Option<Vec<u8>>,
}

/// An acceptor for HTTP/2 and HTTP/1.1 by ALPN, with TLS 1.2 and 1.3.
///
/// Fails with a message for the operator.
pub fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, String> {
    let provider = Arc::new(ring::default_provider());
    let chain = certificates(&files.certificate, "tls_cert_file")?;
    let key = PrivateKeyDer::from_pem_slice(&files.key)
        .map_err(|error| format!("tls_key_file: cannot be read: {error}"))?;
    let verifier: Arc<dyn ClientCertVerifier> = match &files.client_authorities {
        None => Arc::new(NoClientAuth),
        Some(authorities) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates(authorities, "tls_client_ca_file")? {
                roots
                    .add(authority)
                    .map_err(|error| format!("tls_client_ca_file: {error}"))?;
            }
            WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone())
                .build()
                .map_err(|error| format!("tls_client_ca_file: {error}"))?
        }
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|error| format!("tls_cert_file and tls_key_file: {error}"))?;
    if files.client_authorities.is_some() {
        // A session that is resumed does not verify the client's certificate again, which may have
        // expired.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Maximum characters of a reason: rustls may quote long parts of a certificate.
const MAX_REASON: usize = 200;

/// The end of a connection whose handshake failed. `has_sent`: its client had begun the handshake.
pub fn failed(peer: String, error: &io::Error, has_sent: bool) -> Closed {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    let (fault, reason) = match inner {
        None if error.kind() == io::ErrorKind::TimedOut => {
            ("timeout", "it took longer than handshake_seconds".into())
        }
        // gRPC's C core sends no alert.
        None if has_sent => (
            "aborted",
            "the client closed the connection: it may not accept the server's certificate".into(),
        ),
        None => ("closed", "the client closed the connection".into()),
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            ("not_tls", "the client does not speak TLS".into())
        }
        Some(Error::NoCertificatesPresented) => (
            "no_client_certificate",
            "the client has no certificate".into(),
        ),
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => (
            "client_certificate",
            "the client's certificate is of no authority in tls_client_ca_file".into(),
        ),
        Some(Error::InvalidCertificate(error)) => (
            "client_certificate",
            format!("the client's certificate is not accepted: {error}"),
        ),
        Some(Error::AlertReceived(
            alert @ (Alert::BadCertificate
            | Alert::CertificateExpired
            | Alert::CertificateRevoked
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::UnsupportedCertificate),
        )) => (
            "server_certificate",
            format!("the client does not accept the server's certificate: {alert:?}"),
        ),
        Some(error) => ("protocol", error.to_string()),
    };
    Closed {
        peer,
        fault,
        reason: reason.chars().take(MAX_REASON).collect(),
    }
}

fn certificates(pem: &[u8], setting: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("{setting}: cannot be read: {error}"))?;
    if found.is_empty() {
        return Err(format!("{setting}: holds no certificate in PEM"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";

    fn fault(certificate: &str, client_authorities: Option<&str>) -> String {
        let files = TlsFiles {
            certificate: certificate.into(),
            key: KEY.into(),
            client_authorities: client_authorities.map(Into::into),
        };
        acceptor(&files).err().expect("no certificate")
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let error = fault("nothing", None);
        assert_eq!(error, "tls_cert_file: holds no certificate in PEM");
        for authorities in ["", "nothing"] {
            let error = fault(CERTIFICATE, Some(authorities));
            assert_eq!(error, "tls_client_ca_file: holds no certificate in PEM");
        }
    }
}
