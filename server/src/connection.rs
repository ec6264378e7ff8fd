//! One connection: its requests, its age, and its limits against abuse.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, Method as HttpMethod, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use crate::body::ReadAhead;
use crate::call::{Event, Failure, Opened};
use crate::calls::{Calls, Guard, NO_CALL};
use crate::connect::{Admitted, Body, Kind, Protocols, Refused};
use crate::cors;
use crate::files::Files;
use crate::peer::{Held, Peer, Peers};
use crate::server::Draining;
use crate::settings::{CONNECTION_WINDOW_BYTES, SMALL_BYTES, STREAM_WINDOW_BYTES, Settings};

const DEADLINE_EXCEEDED: u32 = 4;
const RESOURCE_EXHAUSTED: u32 = 8;

/// What all connections share.
pub struct Shared {
    pub settings: Settings,
    pub calls: Arc<Calls>,
    pub peers: Arc<Peers>,
    pub protocols: Protocols,
    pub files: Files,
}

/// How HTTP is spoken, by the settings.
fn builder(settings: &Settings) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.handshake_timeout.max(settings.keepalive_interval))
        .half_close(false)
        .max_buf_size((settings.max_header_bytes as usize).max(8192));
    builder
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(settings.max_concurrent_streams)
        // Twice the limit, so that a call that is just over it gets a status of its protocol.
        .max_header_list_size(settings.max_header_bytes.saturating_mul(2))
        .keep_alive_interval(Some(settings.keepalive_interval))
        .keep_alive_timeout(settings.keepalive_timeout);
    builder
}

/// Serve a connection until it ends.
pub async fn serve<I>(shared: Arc<Shared>, io: I, peer: Arc<Peer>, mut draining: Draining)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = {
        let (shared, peer) = (shared.clone(), peer.clone());
        hyper::service::service_fn(move |request| {
            let (shared, peer) = (shared.clone(), peer.clone());
            // Boxed, so that its kilobytes are given back once a stream has begun.
            Box::pin(async move {
                Ok::<_, std::convert::Infallible>(answer(&shared, &peer, request).await)
            })
        })
    };
    // It holds its builder, and no variable a copy of it: a future keeps the room of each.
    let mut connection = pin!(
        builder(&shared.settings)
            .serve_connection(TokioIo::new(io), service)
            .into_owned()
    );
    let age = shared.settings.max_connection_age;
    let mut is_told = false;
    loop {
        let aged = async {
            match age {
                Some(age) if !is_told => tokio::time::sleep(age).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = connection.as_mut() => return,
            () = draining.begun(), if !is_told => {}
            () = aged => {}
            () = peer.evicted.notified() => {
                let event = Event::Evicted(peer.name.clone(), peer.fault());
                shared.calls.push(NO_CALL, event);
                connection.as_mut().graceful_shutdown();
                // Time for the GOAWAY; what its calls hold is given back at once.
                let _ = tokio::time::timeout(Duration::from_millis(100), connection.as_mut()).await;
                return;
            }
        }
        is_told = true;
        connection.as_mut().graceful_shutdown();
    }
}

/// Counts a call as abandoned unless it is answered.
struct Abandoned<'a> {
    peer: &'a Peer,
    limit: u32,
    is_answered: bool,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.peer.abandon(self.limit);
        }
    }
}

async fn answer(shared: &Shared, peer: &Arc<Peer>, request: Request<Incoming>) -> Response<Body> {
    let limit = shared.settings.max_abandoned_per_second;
    let mut abandoned = Abandoned {
        peer,
        limit,
        is_answered: false,
    };
    let origin = cors::allowed(&shared.settings.cors_origins, &request);
    let mut response = if let (Some(origin), true) = (&origin, cors::is_preflight(&request)) {
        let requested = request
            .headers()
            .get(header::ACCESS_CONTROL_REQUEST_HEADERS);
        cors::preflight(origin.clone(), requested).map(Body::Full)
    } else if let Some(file) = shared.files.answer(&request) {
        file.map(|content| Body::Full(content.into()))
    } else {
        call(shared, peer, request).await
    };
    if let Some(origin) = origin {
        cors::allow(response.headers_mut(), origin);
    }
    abandoned.is_answered = true;
    response
}

async fn call(shared: &Shared, peer: &Arc<Peer>, request: Request<Incoming>) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(peer.clone());
    parts.extensions.insert(parts.uri.clone());
    let method = shared.protocols.method(parts.uri.path()).cloned();
    let is_unary = method
        .as_ref()
        .is_some_and(|method| method.kind == Kind::Unary);
    if method.is_some()
        && parts.method == HttpMethod::POST
        && !parts.headers.contains_key(header::CONTENT_TYPE)
    {
        return missing_content_type();
    }
    let timeout = is_unary.then_some(shared.settings.message_timeout);
    let held = is_unary.then(|| Held::new(peer.clone()));
    let mut body = ReadAhead::new(body, timeout, held);
    let size = header_bytes(&parts);
    if size > shared.settings.max_header_bytes as usize {
        return refuse(
            shared,
            parts,
            Some(body),
            too_many_headers(size, shared.settings.max_header_bytes),
        )
        .await;
    }
    let Some(method) = method.filter(|_| is_unary && parts.method == HttpMethod::POST) else {
        return shared
            .protocols
            .answer(Request::from_parts(parts, body))
            .await;
    };
    let is_prefixed = is_grpc(&parts.headers);
    let size = if is_prefixed {
        match body.prefix().await {
            // What it inflates to is bounded, and not known.
            Some((true, _)) => Some(shared.settings.max_message_bytes),
            Some((false, size)) => Some(size),
            None => Some(0),
        }
    } else {
        content_length(&parts.headers)
    };
    let may_be_read = |size| {
        size <= SMALL_BYTES || size <= shared.settings.read_ahead_bytes && shared.calls.has_room()
    };
    if size.is_some_and(may_be_read) {
        return shared
            .protocols
            .answer(Request::from_parts(parts, body))
            .await;
    }
    let unread = peer.unread_calls.fetch_add(1, Relaxed);
    let waiting = Unread(peer);
    let deadline = deadline(&parts.headers);
    let admitted = if unread >= shared.settings.max_unread_calls {
        Err(shared.settings.overloaded.clone())
    } else {
        let opened = Opened {
            method: method.number,
            peer: peer.clone(),
            headers: parts.headers.clone(),
            query: None,
            is_json: is_json(&parts.headers),
            deadline,
            message: None,
            size: size.unwrap_or(shared.settings.max_message_bytes),
        };
        admission(&shared.calls, opened, deadline).await
    };
    drop(waiting); // from now on its message is read, and gives its window back
    match admitted {
        Ok((guard, rejected)) => {
            if let Some(deadline) = deadline {
                shorten(&mut parts.headers, deadline);
            }
            parts.extensions.insert(Admitted(guard.id));
            let request = Request::from_parts(parts.clone(), body);
            tokio::select! {
                response = shared.protocols.answer(request) => response,
                Ok(failure) = rejected => refuse(shared, parts, None, failure).await,
            }
        }
        Err(failure) => refuse(shared, parts, Some(body), failure).await,
    }
}

/// Fail a call whose message stays unread: in its place the protocol gets an empty one.
async fn refuse(
    shared: &Shared,
    mut parts: http::request::Parts,
    body: Option<ReadAhead>,
    failure: Failure,
) -> Response<Body> {
    let is_prefixed = content_type(&parts.headers) != b"application/json"
        && content_type(&parts.headers) != b"application/proto";
    if let (Some(body), true) = (body, parts.version < http::Version::HTTP_2) {
        tokio::spawn(body.discard());
    }
    for name in ["grpc-encoding", "content-encoding", "content-length"] {
        parts.headers.remove(name);
    }
    parts.extensions.insert(Refused(failure));
    let unread = ReadAhead::message_unread(is_prefixed);
    shared
        .protocols
        .answer(Request::from_parts(parts, unread))
        .await
}

/// The size of a header list, as HTTP/2 counts it.
fn header_bytes(parts: &http::request::Parts) -> usize {
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

fn too_many_headers(size: usize, limit: u32) -> Failure {
    Failure {
        code: RESOURCE_EXHAUSTED,
        message: format!("the metadata have {size} bytes, and the limit is {limit}"),
        ..Failure::default()
    }
}

/// Wait until Python wants the message, refuses the call, or the deadline is over.
async fn admission(
    calls: &Arc<Calls>,
    opened: Opened,
    deadline: Option<Instant>,
) -> Result<(Guard, oneshot::Receiver<Failure>), Failure> {
    let (guard, admitted, rejected) = calls.unread(opened);
    let over = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        admitted = admitted => match admitted {
            Ok(Ok(())) => Ok((guard, rejected)),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Failure { code: 13, message: "the call was not answered".into(), ..Failure::default() }),
        },
        () = over => Err(Failure {
            code: DEADLINE_EXCEEDED,
            message: "the deadline was exceeded before the message was read".into(),
            ..Failure::default()
        }),
    }
}

struct Unread<'a>(&'a Peer);

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        self.0.unread_calls.fetch_sub(1, Relaxed);
    }
}

fn content_type(headers: &HeaderMap) -> &[u8] {
    headers
        .get(header::CONTENT_TYPE)
        .map_or(b"", HeaderValue::as_bytes)
}

fn is_grpc(headers: &HeaderMap) -> bool {
    content_type(headers).starts_with(b"application/grpc")
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = content_type(headers);
    content_type.starts_with(b"application/json") || content_type.ends_with(b"+json")
}

fn content_length(headers: &HeaderMap) -> Option<usize> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

const GRPC_TIMEOUT: &str = "grpc-timeout";
const CONNECT_TIMEOUT: &str = "connect-timeout-ms";

/// When the time that the caller gave is over; `None` where it gave none that can be read.
fn deadline(headers: &HeaderMap) -> Option<Instant> {
    let timeout = match (headers.get(GRPC_TIMEOUT), headers.get(CONNECT_TIMEOUT)) {
        (Some(value), _) => grpc_timeout(value.to_str().ok()?)?,
        (None, Some(value)) => Duration::from_millis(value.to_str().ok()?.parse().ok()?),
        (None, None) => return None,
    };
    Instant::now().checked_add(timeout)
}

fn grpc_timeout(value: &str) -> Option<Duration> {
    let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count.checked_mul(3600)?),
        "M" => Duration::from_secs(count.checked_mul(60)?),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

/// Take the time that a call has waited off its timeout. gRPC allows eight digits.
fn shorten(headers: &mut HeaderMap, deadline: Instant) {
    let left = deadline
        .saturating_duration_since(Instant::now())
        .as_millis()
        .clamp(1, 99_999_999);
    if let Some(value) = headers.get_mut(GRPC_TIMEOUT) {
        *value = HeaderValue::try_from(format!("{left}m")).expect("digits");
    }
    if let Some(value) = headers.get_mut(CONNECT_TIMEOUT) {
        *value = HeaderValue::from(left as u64);
    }
}

fn missing_content_type() -> Response<Body> {
    const HELP: &[u8] =
        b"{\"code\":\"invalid_argument\",\"message\":\"the content-type header is missing; \
set content-type: application/json\"}\n";
    let mut response = Response::new(Body::Full(bytes::Bytes::from_static(HELP).into()));
    *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_in_every_unit() {
        assert_eq!(grpc_timeout("2H"), Some(Duration::from_secs(7200)));
        assert_eq!(grpc_timeout("250m"), Some(Duration::from_millis(250)));
        assert_eq!(grpc_timeout("7n"), Some(Duration::from_nanos(7)));
        for bad in ["", "m", "1", "1x", "-1S", "é"] {
            assert_eq!(grpc_timeout(bad), None, "{bad}");
        }
    }
}
