//! A request that speaks gRPC.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;

use crate::admission::{admission, most_of, received, reserve, within};
use crate::body::ReadAhead;
use crate::call::{Answer, Failure, Opened};
use crate::grpc::Grpc;
use crate::messages::Messages;
use crate::methods::{Kind, Method};
use crate::peer::{HeldBytes, Peer};
use crate::request::BoxedResponse;
use crate::shared::Shared;
use crate::timeouts::deadline;

/// Answers a request; a failure of `checked` is its answer.
pub fn respond(
    shared: Arc<Shared>,
    peer: &Arc<Peer>,
    method: Method,
    headers: HeaderMap,
    body: ReadAhead,
    headers_held: Arc<HeldBytes>,
    checked: Result<(), Failure>,
) -> BoxedResponse {
    let (grpc, known) = Grpc::read(&headers);
    if let Err(failure) = checked.and(known) {
        return Box::pin(std::future::ready(grpc.answer(Err(failure))));
    }
    let deadline = deadline(&headers);
    let mut opened = Some(Opened {
        method: method.number,
        peer: peer.clone(),
        headers,
        headers_held,
        query: None,
        is_json: false,
        deadline,
        message: None,
        size: 0,
        is_excess: false,
        arrived: None,
    });
    let most = most_of(&shared, method);
    let held = HeldBytes::new(peer.clone());
    let mut messages = Messages::new(body, most, grpc.is_gzip, held);
    match method.kind {
        Kind::Unary => Box::pin(async move {
            let answer = unary(&shared, &mut opened, &mut messages, most);
            grpc.answer(within(deadline, pin!(answer)).await)
        }),
        Kind::ClientStream => {
            let (guard, answered, reading) = shared.calls.client_stream(opened.expect("a call"));
            shared.calls.start_reading(guard.id, messages, reading);
            Box::pin(async move {
                let _guard = guard;
                grpc.answer(within(deadline, pin!(received(answered))).await)
            })
        }
        Kind::BidiStream => {
            let (guard, started, reading) = shared.calls.stream(opened.expect("a call"));
            shared.calls.start_reading(guard.id, messages, reading);
            Box::pin(async move {
                let started = within(deadline, pin!(received(started))).await;
                grpc.stream(started.map(|started| (started, guard)), deadline)
            })
        }
        Kind::ServerStream => Box::pin(async move {
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
    let mut reading = pin!(messages.only());
    if let Some(mut reserved) = reserve(shared, size)
        && let Some(message) = reserved.read(reading.as_mut()).await
    {
        let (_guard, answered) = shared.calls.unary(with_message(opened, message?));
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
        read = reading => read,
    };
    match read {
        Ok(message) => received(shared.calls.has_read(guard.id, message)).await,
        Err(failure) => Err(guard.report(rejected, failure).await),
    }
}
