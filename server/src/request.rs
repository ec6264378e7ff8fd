//! One request: the protocol that it speaks, and the limit on its metadata.

use std::pin::Pin;
use std::sync::Arc;

use http::request::Parts;
use http::{Method as HttpMethod, Request, Response};
use hyper::body::Incoming;

use crate::body::{Body, ReadAhead};
use crate::call::{Failure, RESOURCE_EXHAUSTED, UNIMPLEMENTED};
use crate::connect::{Kind, Method};
use crate::connection::Shared;
use crate::headers::{self, is_prefixed, lower_case_type};
use crate::peer::{HeldBytes, Peer};
use crate::{connect_request, grpc, grpc_request, help, timeouts};

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
