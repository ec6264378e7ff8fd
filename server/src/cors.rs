//! Cross-origin requests: pages of the configured origins may call, and no others.

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, OPTIONS");
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "grpc-status, grpc-message, grpc-status-details-bin, retry-after, x-request-id, trailer-x-request-id",
);
/// How long a browser may keep the answer to a preflight request: two hours, Chromium's maximum.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// The origin of a request if it is configured.
pub fn allowed<B>(origins: &[String], request: &Request<B>) -> Option<HeaderValue> {
    if origins.is_empty() {
        return None;
    }
    let origin = request.headers().get(header::ORIGIN)?;
    let is_allowed = origins
        .iter()
        .any(|allowed| allowed == "*" || allowed.as_bytes() == origin.as_bytes());
    is_allowed.then(|| origin.clone())
}

/// Whether a request is a preflight.
pub fn is_preflight<B>(request: &Request<B>) -> bool {
    request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a preflight request from an allowed origin.
pub fn preflight<B: Default>(origin: HeaderValue, requested: Option<&HeaderValue>) -> Response<B> {
    let mut response = Response::new(B::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    if let Some(requested) = requested {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, requested.clone());
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    allow(headers, origin);
    response
}

/// Adds headers to an answer so that a page of `origin` may read it.
pub fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(origin: &'static str) -> Request<()> {
        Request::builder()
            .header("origin", origin)
            .body(())
            .unwrap()
    }

    #[test]
    fn only_configured_origins_are_allowed() {
        let origins = ["https://a.example".to_owned()];
        assert!(allowed(&origins, &request("https://a.example")).is_some());
        assert!(allowed(&origins, &request("https://a.example.evil")).is_none());
        assert!(allowed(&[], &request("https://a.example")).is_none());
        assert!(allowed(&["*".to_owned()], &request("null")).is_some());
    }
}
