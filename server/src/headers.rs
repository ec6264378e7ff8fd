//! Properties of a request, by its headers.

use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};

use crate::call::PREFIX_BYTES;

/// Size of a header list, as HTTP/2 counts it.
pub fn size(parts: &Parts) -> usize {
    const OVERHEAD: usize = 32; // RFC 9113, section 6.5.2
    let uri = &parts.uri;
    let pseudo = [
        (":method", parts.method.as_str()),
        (":scheme", uri.scheme_str().unwrap_or_default()),
        (":authority", uri.authority().map_or("", |it| it.as_str())),
        (":path", uri.path_and_query().map_or("", |it| it.as_str())),
    ];
    let pseudo = pseudo.iter().map(|(name, value)| name.len() + value.len());
    let fields = parts.headers.iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len());
    pseudo.chain(fields).map(|size| size + OVERHEAD).sum()
}

/// Whether messages have prefixes: gRPC, gRPC-Web and streams of Connect.
pub fn is_prefixed(headers: &HeaderMap) -> bool {
    let content_type = content_type(headers);
    content_type.starts_with(b"application/grpc")
        || content_type.starts_with(b"application/connect+")
}

/// The content type; empty if there is none.
pub fn content_type(headers: &HeaderMap) -> &[u8] {
    headers
        .get(header::CONTENT_TYPE)
        .map_or(b"", HeaderValue::as_bytes)
}

/// Whether messages may be compressed by gzip.
pub fn is_gzip(headers: &HeaderMap) -> bool {
    let encoding = match content_type(headers) {
        it if it.starts_with(b"application/connect+") => "connect-content-encoding",
        it if it.starts_with(b"application/grpc") => "grpc-encoding",
        _ => "content-encoding",
    };
    headers.get(encoding).is_some_and(|it| it == "gzip")
}

pub fn is_json(headers: &HeaderMap) -> bool {
    let content_type = content_type(headers);
    content_type.starts_with(b"application/json") || content_type.ends_with(b"+json")
}

/// Size of a message; `None` if it is compressed or not stated.
pub fn message_size(headers: &HeaderMap) -> Option<usize> {
    let encodings = ["content-encoding", "grpc-encoding"].map(|name| headers.get(name));
    if encodings.iter().flatten().any(|it| *it != "identity") {
        return None;
    }
    let size = headers.get(header::CONTENT_LENGTH)?;
    let is_prefixed = content_type(headers).starts_with(b"application/grpc");
    let prefix = if is_prefixed { PREFIX_BYTES } else { 0 };
    size.to_str()
        .ok()?
        .parse::<usize>()
        .ok()?
        .checked_sub(prefix)
}

/// Writes the content type in lower case: RFC 9110, section 8.3.1.
pub fn lower_case_type(headers: &mut HeaderMap) {
    if let Some(value) = headers.get_mut(header::CONTENT_TYPE)
        && value.as_bytes().iter().any(u8::is_ascii_uppercase)
        && let Ok(lower) = HeaderValue::from_bytes(&value.as_bytes().to_ascii_lowercase())
    {
        *value = lower;
    }
}
