//! One request: its answer, by the protocol that it speaks.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::request::Parts;
use http::{HeaderValue, Method as HttpMethod, Request, Response, header};
use hyper::body::Incoming;

use crate::body::{Body, ReadAhead};
use crate::call::{Failure, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNIMPLEMENTED};
use crate::headers::{self, is_prefixed, lower_case_type};
use crate::methods::{Kind, Method};
use crate::peer::{HeldBytes, Peer};
use crate::shared::Shared;
use crate::{connect_request, cors, grpc, grpc_request, help, timeouts};

/// The future of a response. It is boxed, so that its kilobyte is freed once a stream has started.
/// To keep it small, futures capture what they own and never pass it on.
pub type BoxedResponse = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// Memory of a header beside what HTTP/2 counts.
const HEADER_BYTES: usize = 80;

/// The answer to a request. A request that is cancelled before it counts as abandoned.
pub struct ResponseFuture {
    response: BoxedResponse,
    origin: Option<HeaderValue>,
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    is_http1: bool,
    is_answered: bool,
}

impl Future for ResponseFuture {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut response = ready!(self.response.as_mut().poll(context));
        if let Some(origin) = self.origin.take() {
            cors::allow(response.headers_mut(), origin);
        }
        let most_age = self.shared.settings.max_connection_age;
        if self.is_http1 && self.peer.is_ending(most_age) {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        self.is_answered = true;
        Poll::Ready(Ok(response))
    }
}

impl Drop for ResponseFuture {
    fn drop(&mut self) {
        if !self.is_answered {
            self.peer.abandon();
        }
    }
}

/// Answers a request: a preflight of CORS, a file, or a call.
pub fn answer(
    shared: &Arc<Shared>,
    peer: &Arc<Peer>,
    request: Request<Incoming>,
) -> ResponseFuture {
    let origin = cors::allowed(&shared.settings.cors_origins, &request);
    let is_http1 = request.version() < http::Version::HTTP_2;
    let at_once = if let (Some(origin), true) = (&origin, cors::is_preflight(&request)) {
        let requested = request
            .headers()
            .get(header::ACCESS_CONTROL_REQUEST_HEADERS);
        Some(cors::preflight(origin.clone(), requested))
    } else {
        shared.files.answer(&request)
    };
    ResponseFuture {
        response: match at_once {
            Some(response) => Box::pin(std::future::ready(response.map(Body::whole))),
            None => respond(shared, peer, request),
        },
        origin,
        shared: shared.clone(),
        peer: peer.clone(),
        is_http1,
        is_answered: false,
    }
}

/// Answers a call.
fn respond(shared: &Arc<Shared>, peer: &Arc<Peer>, request: Request<Incoming>) -> BoxedResponse {
    let (mut parts, body) = request.into_parts();
    lower_case_type(&mut parts.headers);
    let method = shared.protocols.method(parts.uri.path()).copied();
    if let Some(help) = help::instead_of_call(&parts, method.is_some(), &shared.protocols) {
        let timeout = Some(shared.settings.message_timeout);
        ReadAhead::new(body, timeout, None, None).discard_in_background();
        return Box::pin(std::future::ready(help));
    }
    let is_unary = method.is_some_and(|method| method.kind == Kind::Unary);
    let is_stream = method.is_some_and(|it| is_stream(it, &parts));
    let timeout = (!is_stream).then_some(shared.settings.message_timeout);
    let size = headers::size(&parts);
    let mut headers_held = HeldBytes::new(peer.clone());
    headers_held.grow(size + parts.headers.len() * HEADER_BYTES);
    let headers_held = Arc::new(headers_held);
    let caller = is_unary.then(|| peer.clone());
    let checked = if size > shared.settings.max_metadata_bytes as usize {
        Err(too_much_metadata(size, shared.settings.max_metadata_bytes))
    } else if method.is_none() {
        // Without its body, which its caller may never end.
        Err(Failure::new(UNIMPLEMENTED, "no RPC has this path"))
    } else if method.is_some_and(|it| it.kind != Kind::Unary) && !is_prefixed(&parts.headers) {
        // Python would wait for its messages for ever.
        let problem = "this RPC is a stream: send Protocol Buffers, by content-type: \
            application/connect+proto";
        Err(Failure::new(INVALID_ARGUMENT, problem))
    } else {
        timeouts::check(&parts.headers)
    };
    match method.filter(|_| grpc::is_spoken(&parts)) {
        Some(method) => grpc_request::respond(
            shared.clone(),
            peer,
            method,
            parts.headers,
            ReadAhead::new(body, timeout, caller, None),
            headers_held,
            checked,
        ),
        None => Box::pin(connect_request::respond(
            shared.clone(),
            peer.clone(),
            method.filter(|_| is_stream || is_unary && parts.method == HttpMethod::POST),
            parts,
            // The messages of a stream are counted one by one.
            ReadAhead::new(
                body,
                timeout,
                caller,
                (!is_stream).then(|| HeldBytes::new(peer.clone())),
            ),
            headers_held,
            checked,
        )),
    }
}

fn too_much_metadata(size: usize, limit: u32) -> Failure {
    Failure::new(
        RESOURCE_EXHAUSTED,
        format!("the metadata have {size} bytes, and max_metadata_bytes permits {limit}"),
    )
}

/// Whether the messages of a request are a stream.
fn is_stream(method: Method, parts: &Parts) -> bool {
    matches!(method.kind, Kind::ClientStream | Kind::BidiStream)
        && parts.method == HttpMethod::POST
        && is_prefixed(&parts.headers)
}
