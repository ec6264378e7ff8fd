//! Answers and failures of calls, as the types of `connectrpc`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use connectrpc::{
    ConnectError, EncodedBody, EncodedStream, ErrorCode, ErrorDetail, RequestContext, Response,
};
use futures_util::Stream;
use http::HeaderMap;

use crate::call::{Answer, Failure, PREFIX_BYTES, Pairs, Started, add_pairs};
use crate::guard::Guarded;
use crate::outgoing::Outgoing;
use crate::peer::Unsent;
use crate::settings::COMPRESS_UP_TO_BYTES;

type Received<T> = Result<Result<T, Failure>, tokio::sync::oneshot::error::RecvError>;

/// Whether answers to a call are compressed: for gRPC if its messages are, because gRPC clients
/// always accept gzip; for Connect if the client accepts it.
pub fn wants_gzip(context: &RequestContext) -> bool {
    let content_type = context.headers().get(http::header::CONTENT_TYPE);
    let is_grpc = content_type.is_some_and(|it| it.as_bytes().starts_with(b"application/grpc"));
    !is_grpc
        || context
            .headers()
            .get("grpc-encoding")
            .is_some_and(|it| it == "gzip")
}

/// Compression as the policy has it, or none.
pub fn unless(wants_gzip: bool) -> Option<bool> {
    if wants_gzip { None } else { Some(false) }
}

pub fn answer(
    received: Received<Answer>,
    wants_gzip: bool,
) -> Result<Response<EncodedBody>, ConnectError> {
    match received {
        Ok(Ok(answer)) => {
            let message = content(answer.message);
            let is_compressible = wants_gzip && message.len() <= COMPRESS_UP_TO_BYTES;
            let mut response = Response::new(EncodedBody::Contiguous(message));
            response.headers = header_map(answer.headers);
            response.trailers = header_map(answer.trailers);
            Ok(if is_compressible {
                response
            } else {
                response.compress(false)
            })
        }
        Ok(Err(failure)) => Err(error(failure)),
        Err(_) => Err(error(Failure::unanswered())),
    }
}

pub fn begin(started: Started, guard: Guarded) -> Response<EncodedStream> {
    let mut response: Response<EncodedStream> = Response::new(Box::pin(Answers {
        messages: started.messages,
        guard,
    }));
    response.headers = header_map(started.headers);
    response.trailers = header_map(started.trailers);
    response
}

/// A message without gRPC's prefix.
fn content(message: Unsent) -> Bytes {
    message.into_bytes().split_off(PREFIX_BYTES)
}

/// The answers of a stream. Its guard tells Python when the caller is gone.
struct Answers {
    messages: Arc<Outgoing>,
    #[expect(dead_code, reason = "dropped with the stream")]
    guard: Guarded,
}

impl Stream for Answers {
    type Item = Result<EncodedBody, ConnectError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.messages.poll_next(context).map(|next| {
            next.map(|message| match message {
                Ok(message) => Ok(EncodedBody::Contiguous(content(message))),
                Err(failure) => Err(error(failure)),
            })
        })
    }
}

pub fn error(failure: Failure) -> ConnectError {
    let code = ErrorCode::from_grpc_code(failure.code).unwrap_or(ErrorCode::Unknown);
    let mut error = ConnectError::new(code, failure.message);
    for (type_url, value, json) in failure.details {
        error = error.with_detail(ErrorDetail {
            type_url,
            value: Some(STANDARD_NO_PAD.encode(value)),
            debug: serde_json::from_str(&json).ok(),
        });
    }
    error
        .with_headers(header_map(failure.headers))
        .with_trailers(header_map(failure.trailers))
}

pub fn unknown() -> ConnectError {
    ConnectError::internal("the call has no method, no peer or no messages")
}

fn header_map(pairs: Pairs) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(pairs.len());
    add_pairs(&mut map, pairs);
    map
}
