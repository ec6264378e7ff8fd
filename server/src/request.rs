//! One request: the protocol that it speaks, its limits, and its admission.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method as HttpMethod, Request, Response, header};
use hyper::body::Incoming;
use tokio::sync::oneshot;

use crate::body::{Body, ReadAhead};
use crate::call::{
    Answer, Failure, Opened, PREFIX_BYTES, RESOURCE_EXHAUSTED, UNIMPLEMENTED, prefixed,
};
use crate::calls::Reserved;
use crate::connect::{Admitted, Kind, Method, Rejected, Requests};
use crate::connection::Shared;
use crate::grpc::{self, Grpc};
use crate::guard::Guard;
use crate::gzip::inflate_in_turn;
use crate::headers::{self, content_type, is_json, is_prefixed, lower_case_type};
use crate::help;
use crate::messages::Messages;
use crate::peer::{Held, Peer};
use crate::settings::SMALL_BYTES;
use crate::timeouts::{self, deadline, shorten};

/// The future of a response. It is boxed, so that its kilobyte is freed once a stream has started. To
/// keep it small, futures capture what they own and never pass it on.
pub type Responding = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// Memory of a header beside what HTTP/2 counts.
const HEADER_BYTES: usize = 80;

/// Answers a request.
pub fn respond(shared: &Arc<Shared>, peer: &Arc<Peer>, request: Request<Incoming>) -> Responding {
    let (mut parts, body) = request.into_parts();
    lower_case_type(&mut parts.headers);
    let method = shared.protocols.method(parts.uri.path()).copied();
    if let Some(help) = help::instead_of_call(&parts, method.is_some(), &shared.protocols) {
        let timeout = Some(shared.settings.message_timeout);
        discard(ReadAhead::new(body, timeout, None, None));
        return Box::pin(std::future::ready(help));
    }
    let is_unary = method.is_some_and(|method| method.kind == Kind::Unary);
    let is_stream = method.is_some_and(|it| is_stream(it, &parts));
    let timeout = (!is_stream).then_some(shared.settings.message_timeout);
    let size = headers::size(&parts);
    let mut headers_held = Held::new(peer.clone());
    headers_held.grow(size + parts.headers.len() * HEADER_BYTES);
    let caller = is_unary.then(|| peer.clone());
    let checked = if size > shared.settings.max_header_bytes as usize {
        Err(too_many_headers(size, shared.settings.max_header_bytes))
    } else if method.is_none() {
        // Without its body, which its caller may never end.
        Err(Failure::new(UNIMPLEMENTED, "no RPC has this path"))
    } else {
        timeouts::check(&parts.headers)
    };
    match method.filter(|_| grpc::is_spoken(&parts)) {
        Some(method) => by_grpc(
            shared.clone(),
            peer,
            method,
            parts.headers,
            ReadAhead::new(body, timeout, caller, None),
            headers_held,
            checked,
        ),
        None => Box::pin(by_protocols(
            shared.clone(),
            peer.clone(),
            method.filter(|_| is_stream || is_unary && parts.method == HttpMethod::POST),
            parts,
            // The messages of a stream are counted one by one.
            ReadAhead::new(
                body,
                timeout,
                caller,
                (!is_stream).then(|| Held::new(peer.clone())),
            ),
            headers_held,
            checked,
        )),
    }
}

fn by_grpc(
    shared: Arc<Shared>,
    peer: &Arc<Peer>,
    method: Method,
    headers: HeaderMap,
    body: ReadAhead,
    headers_held: Held,
    checked: Result<(), Failure>,
) -> Responding {
    let (grpc, known) = Grpc::read(&headers);
    if let Err(failure) = checked.and(known) {
        return Box::pin(std::future::ready(grpc.answer(Err(failure))));
    }
    let deadline = deadline(&headers);
    let mut opened = Some(Opened {
        method: method.number,
        peer: peer.clone(),
        headers,
        query: None,
        is_json: false,
        deadline,
        message: None,
        size: 0,
        is_excess: false,
        arrived: None,
    });
    let most = most_of(&shared, method);
    let held = Held::new(peer.clone());
    let mut messages = Messages::new(body, most, grpc.is_gzip, held);
    match method.kind {
        Kind::Unary => Box::pin(async move {
            let _headers = headers_held;
            let answer = unary(&shared, &mut opened, &mut messages, most);
            grpc.answer(within(deadline, pin!(answer)).await)
        }),
        Kind::ClientStream => {
            let (guard, answered, reading) = shared.calls.client_stream(opened.expect("a call"));
            shared.calls.start_reading(guard.id, messages, reading);
            Box::pin(async move {
                let _held = (guard, headers_held);
                grpc.answer(within(deadline, pin!(received(answered))).await)
            })
        }
        Kind::BidiStream => {
            let (guard, started, reading) = shared.calls.stream(opened.expect("a call"));
            shared.calls.start_reading(guard.id, messages, reading);
            Box::pin(async move {
                let _headers = headers_held;
                let started = within(deadline, pin!(received(started))).await;
                grpc.stream(started.map(|started| (started, guard)), deadline)
            })
        }
        Kind::ServerStream => Box::pin(async move {
            let _headers = headers_held;
            let started = async {
                let opened = with_message(&mut opened, messages.only().await?);
                let (guard, started, _) = shared.calls.stream(opened);
                Ok((received(started).await?, guard))
            };
            grpc.stream(within(deadline, pin!(started)).await, deadline)
        }),
    }
}

/// A call with its message.
fn with_message(opened: &mut Option<Opened>, message: Bytes) -> Opened {
    Opened {
        size: message.len(),
        message: Some(message),
        ..opened.take().expect("a call is opened once")
    }
}

/// Answers a unary gRPC call.
async fn unary(
    shared: &Shared,
    opened: &mut Option<Opened>,
    messages: &mut Messages,
    most: usize,
) -> Result<Answer, Failure> {
    let size = match messages.prefix().await {
        // Its inflated size is unknown, but bounded.
        Some((true, size)) => most.max(size),
        Some((false, size)) => size,
        None => 0,
    };
    if let Some(_reserved) = reserve(shared, size) {
        let message = messages.only().await?;
        let (_guard, answered) = shared.calls.unary(with_message(opened, message));
        return received(answered).await;
    }
    let unread = Opened {
        size,
        ..opened.take().expect("a call is opened once")
    };
    let (guard, mut rejected) = admission(shared, unread).await?;
    let read = tokio::select! {
        biased; // a rejected call has no answer
        Ok(failure) = &mut rejected => return Err(failure),
        read = messages.only() => read,
    };
    match read {
        Ok(message) => received(shared.calls.has_read(guard.id, message)).await,
        Err(failure) => Err(guard.report(rejected, failure).await),
    }
}

/// Answers by the other protocols. `method` is given for streams, and for unary POST calls, which may
/// wait for admission.
async fn by_protocols(
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    method: Option<Method>,
    mut parts: Parts,
    body: ReadAhead,
    _headers_held: Held,
    checked: Result<(), Failure>,
) -> Response<Body> {
    let shared = &*shared;
    parts.extensions.insert(peer.clone());
    parts.extensions.insert(parts.uri.clone());
    if let Err(failure) = checked {
        return reject(shared, parts, Some(body), failure).await;
    }
    let Some(method) = method else {
        return answer(shared, parts, body, None).await;
    };
    if method.kind != Kind::Unary {
        return stream(shared, parts, peer, body, most_of(shared, method)).await;
    }
    let size = headers::message_size(&parts.headers);
    if let Some(_reserved) = size.and_then(|size| reserve(shared, size)) {
        return answer(shared, parts, body, None).await;
    }
    let deadline = deadline(&parts.headers);
    let opened = Opened {
        method: method.number,
        peer,
        headers: parts.headers.clone(),
        query: None,
        is_json: is_json(&parts.headers),
        deadline,
        message: None,
        size: size.unwrap_or(shared.settings.max_message_bytes),
        is_excess: false,
        arrived: None,
    };
    match within(deadline, pin!(admission(shared, opened))).await {
        Ok((guard, rejected)) => {
            if let Some(deadline) = deadline {
                shorten(&mut parts.headers, deadline);
            }
            parts.extensions.insert(Admitted(guard.id));
            answer(shared, parts, body, Some((guard, rejected))).await
        }
        Err(failure) => reject(shared, parts, Some(body), failure).await,
    }
}

/// Answers a call with a stream of messages.
async fn stream(
    shared: &Shared,
    mut parts: Parts,
    peer: Arc<Peer>,
    body: ReadAhead,
    most: usize,
) -> Response<Body> {
    let is_gzip = headers::is_gzip(&parts.headers);
    let requests = Requests::new(Messages::new(body, most, is_gzip, Held::new(peer)));
    parts.extensions.insert(requests.clone());
    let response = pass_on(shared, parts, ReadAhead::message_unread(false)).await;
    if let Some(unread) = requests.take() {
        tokio::spawn(unread.discard()); // the library has rejected the call
    }
    response
}

/// Answers a request by its protocol. The library takes a body that cannot be read for an internal
/// error, so that answer is replaced. `admitted`: a call whose message Python has requested.
async fn answer(
    shared: &Shared,
    parts: Parts,
    mut body: ReadAhead,
    mut admitted: Option<(Guard, oneshot::Receiver<Failure>)>,
) -> Response<Body> {
    let method = shared.protocols.method(parts.uri.path());
    let most = method.map_or(SMALL_BYTES, |method| most_of(shared, *method));
    let prefix = usize::from(is_prefixed(&parts.headers)) * PREFIX_BYTES;
    let unread = body.failure(most + prefix);
    let rejection = async {
        match &mut admitted {
            Some((_, rejected)) => rejected.await.ok(),
            None => None,
        }
    };
    let response = async {
        let mut parts = parts.clone();
        if headers::is_gzip(&parts.headers) {
            let deadline = deadline(&parts.headers);
            body = within(deadline, pin!(inflated(&mut parts, body, most))).await?;
            if let Some(deadline) = deadline {
                shorten(&mut parts.headers, deadline);
            }
        }
        Ok(pass_on(shared, parts, body).await)
    };
    let response = tokio::select! {
        biased; // a rejected call has no answer
        Some(failure) = rejection => return reject(shared, parts, None, failure).await,
        response = response => response,
    };
    let mut failure = match (unread.get(), response) {
        (Some(failure), _) => failure.clone(),
        (None, Err(failure)) => failure,
        (None, Ok(response)) => return response,
    };
    if let Some((guard, rejected)) = admitted {
        failure = guard.report(rejected, failure).await;
    }
    let version = parts.version;
    help::unread(reject(shared, parts, None, failure).await, version)
}

/// Replaces a body of one compressed message by one that is inflated, in turn with others: the library
/// would hold up other callers.
async fn inflated(parts: &mut Parts, body: ReadAhead, most: usize) -> Result<ReadAhead, Failure> {
    parts.headers.remove(header::CONTENT_LENGTH);
    if is_prefixed(&parts.headers) {
        // The header stays: it says that answers may be compressed.
        let peer = parts.extensions.get().cloned().expect("inserted above");
        let message = Messages::new(body, most, true, Held::new(peer))
            .only()
            .await?;
        return Ok(ReadAhead::replaced(prefixed(&message).into()));
    }
    parts.headers.remove(header::CONTENT_ENCODING);
    let data = body.read_whole().await?;
    Ok(ReadAhead::replaced(inflate_in_turn(data, most).await?))
}

async fn pass_on(shared: &Shared, parts: Parts, body: ReadAhead) -> Response<Body> {
    let request = Request::from_parts(parts, body);
    help::explain(shared.protocols.answer(request).await)
}

/// Waits for Python's answer.
async fn received<T>(receiver: oneshot::Receiver<Result<T, Failure>>) -> Result<T, Failure> {
    receiver
        .await
        .unwrap_or_else(|_| Err(Failure::unanswered()))
}

/// Fails a future at its deadline.
async fn within<T>(
    deadline: Option<Instant>,
    future: Pin<&mut impl Future<Output = Result<T, Failure>>>,
) -> Result<T, Failure> {
    match deadline {
        None => future.await,
        Some(deadline) => tokio::time::timeout_at(deadline.into(), future)
            .await
            .unwrap_or_else(|_| Err(grpc::deadline_exceeded())),
    }
}

/// Maximum bytes of a message, compressed and inflated.
fn most_of(shared: &Shared, method: Method) -> usize {
    if method.is_small {
        SMALL_BYTES
    } else {
        shared.settings.max_message_bytes
    }
}

/// Reserves room for a message that is read before its call is admitted, until the call is over.
fn reserve(shared: &Shared, size: usize) -> Option<Reserved> {
    let most = shared.settings.read_ahead_bytes.max(SMALL_BYTES);
    let is_wanted = size <= most.min(shared.settings.max_message_bytes);
    is_wanted.then(|| shared.calls.reserve(size)).flatten()
}

/// Fails a call whose message stays unread: the protocol gets an empty one instead.
async fn reject(
    shared: &Shared,
    mut parts: Parts,
    body: Option<ReadAhead>,
    failure: Failure,
) -> Response<Body> {
    let is_prefixed = content_type(&parts.headers) != b"application/json"
        && content_type(&parts.headers) != b"application/proto";
    if let Some(body) = body {
        discard(body);
    }
    for name in ["grpc-encoding", "content-encoding", "content-length"] {
        parts.headers.remove(name);
    }
    parts.extensions.insert(Rejected(failure));
    pass_on(shared, parts, ReadAhead::message_unread(is_prefixed)).await
}

/// Reads and drops a body while its call is answered.
fn discard(mut body: ReadAhead) {
    tokio::spawn(async move { body.discard().await });
}

fn too_many_headers(size: usize, limit: u32) -> Failure {
    Failure::new(
        RESOURCE_EXHAUSTED,
        format!("the metadata have {size} bytes, and the limit is {limit}"),
    )
}

/// Waits until Python requests the message of a call or rejects the call.
async fn admission(
    shared: &Shared,
    mut opened: Opened,
) -> Result<(Guard, oneshot::Receiver<Failure>), Failure> {
    let peer = opened.peer.clone();
    // Until its message is read, which reopens its flow-control window.
    let unread = peer.unread_calls.fetch_add(1, Relaxed);
    let _unread = Unread(&peer);
    opened.is_excess = unread >= shared.settings.max_unread_calls;
    let (guard, admitted, rejected) = shared.calls.unread(opened);
    received(admitted).await?;
    Ok((guard, rejected))
}

struct Unread<'a>(&'a Peer);

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        self.0.unread_calls.fetch_sub(1, Relaxed);
    }
}

/// Whether the messages of a request are a stream.
fn is_stream(method: Method, parts: &Parts) -> bool {
    matches!(method.kind, Kind::ClientStream | Kind::BidiStream)
        && parts.method == HttpMethod::POST
        && is_prefixed(&parts.headers)
}
