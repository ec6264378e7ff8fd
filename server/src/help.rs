//! Answers for a person, with curl or a browser, whose request is no call.

use std::iter::zip;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, Version, header};

use crate::body::Body;
use crate::connect::Protocols;
use crate::headers::{content_type, is_prefixed};

const JSON: &str = "application/json";
const POST_JSON: &str = "POST JSON with content-type: application/json\n";
const NO_JSON: &str = concat!(
    "{\"code\":\"invalid_argument\",\"message\":",
    "\"POST JSON with content-type: application/json\"}\n",
);
const SOME_RPC: &str = concat!(
    "POST JSON to one of proto/bytepair/v1, such as /bytepair.v1.TokenizerService/Count or ",
    "/bytepair.v1.ChatService/CountChat; / is a page if the playground is on",
);

/// The answer to a request that is no call of a protocol; `None` if it may be one. `is_rpc`: its
/// path is that of an RPC.
pub fn instead_of_call(
    parts: &Parts,
    is_rpc: bool,
    protocols: &Protocols,
) -> Option<Response<Body>> {
    if !is_rpc {
        // Clients of protocols with prefixed messages read errors of their protocol only.
        let is_help = !is_prefixed(&parts.headers);
        let text = || no_rpc(parts.uri.path(), protocols);
        return is_help.then(|| help(StatusCode::NOT_FOUND, JSON, text()));
    }
    let is_called = match parts.method {
        // Connect's GET has the message in the query.
        Method::GET => {
            let query = parts.uri.query().unwrap_or_default();
            query.split('&').any(|pair| pair.starts_with("message="))
        }
        // By default of `curl -d`, and of `fetch`.
        Method::POST => !matches!(
            content_type(&parts.headers),
            b"" | b"application/x-www-form-urlencoded" | b"text/plain;charset=utf-8"
        ),
        _ => true,
    };
    (!is_called).then(|| help(StatusCode::UNSUPPORTED_MEDIA_TYPE, JSON, NO_JSON))
}

/// Says that the caller caused the timeout of a call whose body could not be read, and over
/// HTTP/1.1 that its connection ends.
pub fn unread(mut answer: Response<Body>, version: Version) -> Response<Body> {
    if answer.status() == StatusCode::GATEWAY_TIMEOUT {
        *answer.status_mut() = StatusCode::REQUEST_TIMEOUT;
    }
    if version < Version::HTTP_2 {
        let close = HeaderValue::from_static("close");
        answer.headers_mut().insert(header::CONNECTION, close);
    }
    answer
}

/// Says what to send, if an answer rejects the content type or the method without an explanation.
pub fn explain(answer: Response<Body>) -> Response<Body> {
    let status = answer.status();
    if !matches!(
        status,
        StatusCode::UNSUPPORTED_MEDIA_TYPE | StatusCode::METHOD_NOT_ALLOWED
    ) || answer.headers().contains_key(header::CONTENT_TYPE)
    {
        return answer;
    }
    // As text, because clients take JSON for an error of Connect.
    let mut help = help(status, "text/plain", POST_JSON);
    if let Some(allowed) = answer.headers().get(header::ALLOW) {
        help.headers_mut().insert(header::ALLOW, allowed.clone());
    }
    help
}

/// Names the path whose RPC is the most like that of `path`, if one is alike; else a few.
fn no_rpc(path: &str, protocols: &Protocols) -> String {
    let nearest = protocols
        .paths()
        .map(|known| (likeness(path, known), known))
        .max();
    let advice = match nearest {
        Some((percent, known)) if percent >= 60 => format!("the nearest is /{known}"),
        _ => SOME_RPC.to_owned(),
    };
    format!("{{\"code\":\"unimplemented\",\"message\":\"no RPC has this path: {advice}\"}}\n")
}

/// The share of the last segments of two paths, in percent, that is in what they begin and end
/// with.
fn likeness(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|path| {
        path.trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .as_bytes()
    });
    let same = |(x, y): &(&u8, &u8)| x.eq_ignore_ascii_case(y);
    let head = zip(a, b).take_while(same).count();
    let rest = zip(a[head..].iter().rev(), b[head..].iter().rev());
    let tail = rest.take_while(same).count();
    200 * (head + tail) / (a.len() + b.len()).max(1)
}

fn help(status: StatusCode, content_type: &'static str, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::whole(text.into()));
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}
