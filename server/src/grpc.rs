//! gRPC over HTTP/2 on hyper's bodies, for nearly all calls. `connect` serves the other protocols.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, Version, header};
use http_body::Frame;
use tokio::time::{Sleep, sleep_until};

use crate::body::Body;
use crate::call::{
    Answer, DEADLINE_EXCEEDED, Failure, PREFIX_BYTES, Pairs, Started, UNIMPLEMENTED, add_pairs,
};
use crate::guard::{Guard, Guarded};
use crate::gzip::deflate;
use crate::peer::Unsent;
use crate::settings::{COMPRESS_FROM_BYTES, COMPRESS_UP_TO_BYTES};

/// Ready answers of a stream are joined up to this size, the default of HTTP/2's frames.
const FRAME_BYTES: usize = 16 << 10;
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Whether a request is gRPC over HTTP/2.
pub fn is_spoken(parts: &Parts) -> bool {
    parts.version == Version::HTTP_2
        && parts.method == Method::POST
        && content_type(&parts.headers).is_some()
}

fn content_type(headers: &HeaderMap) -> Option<&'static str> {
    match headers.get(header::CONTENT_TYPE)?.as_bytes() {
        b"application/grpc" => Some("application/grpc"),
        b"application/grpc+proto" => Some("application/grpc+proto"),
        _ => None,
    }
}

/// The gRPC options in a call's headers.
#[derive(Clone, Copy)]
pub struct Grpc {
    content_type: &'static str,
    /// Whether messages may be compressed. Only then are answers compressed, if the caller accepts
    /// it: gRPC clients always accept gzip.
    pub is_gzip: bool,
    answers_gzip: bool,
}

impl Grpc {
    /// Fails if the compression is unknown.
    pub fn read(headers: &HeaderMap) -> (Self, Result<(), Failure>) {
        let encoding = headers.get(ENCODING).map(HeaderValue::as_bytes);
        let is_gzip = encoding == Some(b"gzip");
        let accepted = headers
            .get(ACCEPT_ENCODING)
            .and_then(|it| it.to_str().ok())
            .is_some_and(|it| it.split(',').any(|name| name.trim() == "gzip"));
        let grpc = Grpc {
            content_type: content_type(headers).unwrap_or("application/grpc"),
            is_gzip,
            answers_gzip: is_gzip && accepted,
        };
        let known = match encoding {
            None | Some(b"identity" | b"gzip") => Ok(()),
            Some(_) => Err(Failure::new(
                UNIMPLEMENTED,
                "messages may be compressed with gzip, and with nothing else",
            )),
        };
        (grpc, known)
    }

    /// Builds the response of a unary answer or a failure.
    pub fn answer(self, answer: Result<Answer, Failure>) -> Response<Body> {
        match answer {
            Ok(answer) => {
                let message = self.compressed(answer.message).into_bytes();
                self.response(answer.headers, Content::Unary(message, answer.trailers))
            }
            Err(failure) => self.failure(failure),
        }
    }

    /// Builds the response of a stream of answers or a failure. The guard tells Python if the
    /// caller disconnects.
    pub fn stream(
        self,
        started: Result<(Started, Guard), Failure>,
        deadline: Option<Instant>,
    ) -> Response<Body> {
        match started {
            Ok((started, guard)) => {
                let answers = Answers {
                    grpc: self,
                    messages: started.messages,
                    guard: Some(guard.until(deadline)),
                    deadline: deadline.map(|deadline| Box::pin(sleep_until(deadline.into()))),
                    trailers: started.trailers,
                    last: None,
                };
                self.response(started.headers, Content::Stream(Box::new(answers)))
            }
            Err(failure) => self.failure(failure),
        }
    }

    fn failure(self, mut failure: Failure) -> Response<Body> {
        if !failure.headers.is_empty() {
            let headers = std::mem::take(&mut failure.headers);
            return self.response(headers, Content::Last(failed(failure).into()));
        }
        let mut response = self.response(Vec::new(), Content::None);
        response.headers_mut().extend(failed(failure));
        response
    }

    fn response(self, headers: Pairs, body: Content) -> Response<Body> {
        let mut response = Response::new(Body::Grpc(body));
        let map = response.headers_mut();
        map.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(self.content_type),
        );
        map.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity,gzip"));
        if self.answers_gzip {
            map.insert(ENCODING, HeaderValue::from_static("gzip"));
        }
        add_pairs(map, headers);
        response
    }

    /// A message with its prefix, compressed if the caller wants it and its size is worth it.
    fn compressed(self, mut message: Unsent) -> Unsent {
        let plain = &message.as_ref()[PREFIX_BYTES..];
        if !self.answers_gzip
            || !(COMPRESS_FROM_BYTES..=COMPRESS_UP_TO_BYTES).contains(&plain.len())
        {
            return message;
        }
        if let Some(mut data) = deflate(&[1, 0, 0, 0, 0], plain) {
            let size = (data.len() - PREFIX_BYTES) as u32;
            data[1..PREFIX_BYTES].copy_from_slice(&size.to_be_bytes());
            message.replace(data);
        }
        message
    }
}

/// The body of an answer.
pub enum Content {
    /// A response without a body.
    None,
    Unary(Bytes, Pairs),
    Stream(Box<Answers>),
    Last(Box<HeaderMap>),
}

impl Content {
    pub fn is_end_stream(&self) -> bool {
        matches!(self, Content::None)
    }

    pub fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = match std::mem::replace(self, Content::None) {
            Content::None => return Poll::Ready(None),
            Content::Unary(message, trailers) => {
                *self = Content::Last(succeeded(trailers).into());
                Frame::data(message)
            }
            Content::Last(trailers) => Frame::trailers(*trailers),
            Content::Stream(mut answers) => match answers.poll(context) {
                Poll::Pending => {
                    *self = Content::Stream(answers);
                    return Poll::Pending;
                }
                Poll::Ready(Some(data)) => {
                    *self = Content::Stream(answers);
                    Frame::data(data)
                }
                Poll::Ready(None) => Frame::trailers(answers.end()),
            },
        };
        Poll::Ready(Some(Ok(frame)))
    }
}

/// The answers of a stream.
pub struct Answers {
    grpc: Grpc,
    messages: std::sync::Arc<crate::outgoing::Outgoing>,
    guard: Option<Guarded>,
    deadline: Option<Pin<Box<Sleep>>>,
    trailers: Pairs,
    /// Its end, once known.
    last: Option<Result<(), Failure>>,
}

impl Answers {
    /// All ready answers, joined; `None` at the end.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut joined: Option<Unsent> = None;
        while self.last.is_none()
            && joined
                .as_ref()
                .is_none_or(|it| it.as_ref().len() < FRAME_BYTES)
        {
            match self.messages.poll_next(context) {
                Poll::Ready(Some(Ok(message))) => {
                    let message = self.grpc.compressed(message);
                    match &mut joined {
                        None => joined = Some(message),
                        Some(joined) => joined.append(message.as_ref()),
                    }
                }
                Poll::Ready(Some(Err(failure))) => self.last = Some(Err(failure)),
                Poll::Ready(None) => self.last = Some(Ok(())),
                Poll::Pending if joined.is_none() => {
                    let timer = self.deadline.as_mut().map(|it| it.as_mut().poll(context));
                    if timer.is_none_or(|timer| timer.is_pending()) {
                        return Poll::Pending;
                    }
                    self.guard = None;
                    self.last = Some(Err(deadline_exceeded()));
                }
                Poll::Pending => break,
            }
        }
        Poll::Ready(joined.map(Unsent::into_bytes))
    }

    fn end(&mut self) -> HeaderMap {
        match self.last.take() {
            Some(Err(failure)) => failed(failure),
            _ => succeeded(std::mem::take(&mut self.trailers)),
        }
    }
}

/// The failure of a call at its deadline.
pub fn deadline_exceeded() -> Failure {
    Failure::new(DEADLINE_EXCEEDED, "the deadline was exceeded")
}

fn succeeded(trailers: Pairs) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(1 + trailers.len());
    map.insert(STATUS, HeaderValue::from_static("0"));
    add_pairs(&mut map, trailers);
    map
}

fn failed(failure: Failure) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(3 + failure.trailers.len());
    map.insert(STATUS, HeaderValue::from(failure.code));
    if let Ok(message) = HeaderValue::from_str(&percent_encoded(&failure.message)) {
        map.insert(MESSAGE, message);
    }
    if !failure.details.is_empty()
        && let Ok(details) = HeaderValue::from_str(&STANDARD_NO_PAD.encode(status(&failure)))
    {
        map.insert(DETAILS, details);
    }
    add_pairs(&mut map, failure.trailers);
    map
}

/// Percent-encodes the percent sign and everything that is not printable ASCII, as gRPC requires.
fn percent_encoded(message: &str) -> String {
    let mut encoded = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b'%' | ..b' ' | 0x7F.. => encoded.push_str(&format!("%{byte:02X}")),
            _ => encoded.push(byte.into()),
        }
    }
    encoded
}

/// A `google.rpc.Status`: code, message, and details, each a `google.protobuf.Any`.
fn status(failure: &Failure) -> Vec<u8> {
    let mut status = vec![1 << 3];
    varint(failure.code as usize, &mut status);
    field(2, failure.message.as_bytes(), &mut status);
    for (name, value, _) in &failure.details {
        let mut any = Vec::new();
        field(
            1,
            format!("type.googleapis.com/{name}").as_bytes(),
            &mut any,
        );
        field(2, value, &mut any);
        field(3, &any, &mut status);
    }
    status
}

fn field(number: u8, content: &[u8], message: &mut Vec<u8>) {
    const LENGTH_DELIMITED: u8 = 2;
    message.push(number << 3 | LENGTH_DELIMITED);
    varint(content.len(), message);
    message.extend_from_slice(content);
}

fn varint(mut value: usize, message: &mut Vec<u8>) {
    while value > 0x7F {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}
