//! A request that speaks Connect, gRPC-Web or JSON, which a library answers.

use std::pin::pin;
use std::sync::Arc;

use http::request::Parts;
use http::{Request, Response, header};
use tokio::sync::oneshot;

use crate::admission::{admission, most_of, reserve, within};
use crate::body::{Body, ReadAhead};
use crate::call::{Failure, Opened, PREFIX_BYTES, prefixed};
use crate::connect::{Admitted, Rejected, Requests};
use crate::guard::Guard;
use crate::gzip::inflate_in_turn;
use crate::headers::{self, content_type, is_json, is_prefixed};
use crate::help;
use crate::messages::Messages;
use crate::methods::{Kind, Method};
use crate::peer::{HeldBytes, Peer};
use crate::settings::SMALL_BYTES;
use crate::shared::Shared;
use crate::timeouts::{deadline, shorten};

/// Answers a request; a failure of `checked` is its answer. `method` is given for streams, and for
/// unary POST calls, which may wait for admission.
pub async fn respond(
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    method: Option<Method>,
    mut parts: Parts,
    mut body: ReadAhead,
    headers_held: Arc<HeldBytes>,
    checked: Result<(), Failure>,
) -> Response<Body> {
    let shared = &*shared;
    parts.extensions.insert(peer.clone());
    parts.extensions.insert(parts.uri.clone());
    parts.extensions.insert(headers_held.clone());
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
    let mut reserved = size.and_then(|size| reserve(shared, size));
    let deadline = deadline(&parts.headers);
    body.failure(most_of_body(&parts, most_of(shared, method))); // before any of it is received
    let ready = async {
        if let Some(reserved) = &mut reserved
            && reserved.read(pin!(body.receive())).await.is_some()
        {
            return Ok(None);
        }
        let opened = Opened {
            method: method.number,
            peer,
            headers: parts.headers.clone(),
            headers_held,
            query: None,
            is_json: is_json(&parts.headers),
            deadline,
            message: None,
            size: size.unwrap_or(shared.settings.max_message_bytes),
            is_excess: false,
            arrived: None,
        };
        admission(shared, opened).await.map(Some)
    };
    let ready = within(deadline, pin!(ready)).await;
    match ready {
        Ok(admitted) => {
            if let Some(deadline) = deadline {
                shorten(&mut parts.headers, deadline);
            }
            if let Some((guard, _)) = &admitted {
                parts.extensions.insert(Admitted(guard.id));
            }
            answer(shared, parts, body, admitted).await
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
    let requests = Requests::new(Messages::new(body, most, is_gzip, HeldBytes::new(peer)));
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
    let unread = body.failure(most_of_body(&parts, most));
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

/// Maximum bytes of a body with a message of at most `most`.
fn most_of_body(parts: &Parts, most: usize) -> usize {
    most + usize::from(is_prefixed(&parts.headers)) * PREFIX_BYTES
}

/// Replaces a body of one compressed message by one that is inflated, in turn with others: the
/// library would hold up other callers.
async fn inflated(parts: &mut Parts, body: ReadAhead, most: usize) -> Result<ReadAhead, Failure> {
    parts.headers.remove(header::CONTENT_LENGTH);
    if is_prefixed(&parts.headers) {
        // The header stays: it says that answers may be compressed.
        let peer = parts.extensions.get().cloned().expect("inserted above");
        let message = Messages::new(body, most, true, HeldBytes::new(peer))
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
        body.discard_in_background();
    }
    for name in ["grpc-encoding", "content-encoding", "content-length"] {
        parts.headers.remove(name);
    }
    parts.extensions.insert(Rejected(failure));
    pass_on(shared, parts, ReadAhead::message_unread(is_prefixed)).await
}
