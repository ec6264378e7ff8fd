//! Bodies of requests, with a time limit, and bodies of answers.

use std::convert::Infallible;
use std::error::Error as _;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};

use crate::call::{Failure, PREFIX_BYTES, RESOURCE_EXHAUSTED};
use crate::peer::{HeldBytes, Peer, Unsent};
use crate::settings::DISCARDED_BYTES;
use crate::{connect, grpc};

/// Time for the rest of a body to be read and dropped after its call is over.
const DISCARD: Duration = Duration::from_secs(5);

/// The message of an error if the caller has reset the stream or is gone.
const GONE: &str = "the caller is gone";

/// A request body with a time limit. It can be replaced by an empty message.
pub struct ReadAhead {
    /// What was received before, or replaces all of it.
    received: Option<Bytes>,
    /// The error after that.
    broken: Option<io::Error>,
    rest: Option<Incoming>,
    /// The caller of a unary call: a reset before the message is whole abandons the call.
    caller: Option<Arc<Peer>>,
    /// Counts the received bytes of a message that is buffered until it is complete.
    held: Option<HeldBytes>,
    timeout: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Maximum bytes.
    most: usize,
    /// Set if the body is larger, did not arrive in time, or is malformed.
    failure: Option<Arc<OnceLock<Failure>>>,
}

impl ReadAhead {
    /// `timeout`: for all of it, from the first moment that it has to be waited for. `caller`:
    /// counts the call as abandoned if the body breaks off. `held`: counts the received bytes.
    pub fn new(
        rest: Incoming,
        timeout: Option<Duration>,
        caller: Option<Arc<Peer>>,
        held: Option<HeldBytes>,
    ) -> Self {
        ReadAhead {
            received: None,
            broken: None,
            rest: Some(rest),
            caller,
            held,
            timeout,
            timer: None,
            most: usize::MAX,
            failure: None,
        }
    }

    /// Replaces the body of a call that is rejected before its message was read.
    pub fn message_unread(prefixed: bool) -> Self {
        let no_message: &[u8] = if prefixed { &[0; PREFIX_BYTES] } else { &[] };
        ReadAhead::replaced(Bytes::from_static(no_message))
    }

    /// Replaces a body that was read.
    pub fn replaced(data: Bytes) -> Self {
        ReadAhead {
            received: Some(data),
            broken: None,
            rest: None,
            caller: None,
            held: None,
            timeout: None,
            timer: None,
            most: usize::MAX,
            failure: None,
        }
    }

    /// Limits the bytes that `held` counts. Returns the failure, which is set if the body is
    /// larger, does not arrive in time, or is malformed.
    pub fn failure(&mut self, most: usize) -> Arc<OnceLock<Failure>> {
        self.most = most;
        self.failure.get_or_insert_default().clone()
    }

    fn fail(&self, failure: Failure) {
        if let Some(place) = &self.failure {
            let _ = place.set(failure);
        }
    }

    /// Receives a body before it is read, until it is complete or broken. May be dropped before.
    pub async fn receive(&mut self) {
        while let Some(frame) = poll_fn(|context| self.poll_rest(context)).await {
            let data = match frame.map(Frame::into_data) {
                Ok(data) => data.unwrap_or_default(),
                Err(error) => return self.broken = Some(error),
            };
            self.received = Some(match self.received.take() {
                None => data,
                Some(before) => {
                    let mut both = BytesMut::from(before); // copies the first frame only
                    both.extend_from_slice(&data);
                    both.freeze()
                }
            });
        }
    }

    /// Polls what was not received before.
    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Some(rest) = &mut self.rest else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(frame) = Pin::new(rest).poll_frame(context) {
            let frame = frame.map(|frame| frame.map_err(fault));
            match (&mut self.held, &frame) {
                (Some(held), Some(Ok(frame))) => {
                    held.grow(frame.data_ref().map_or(0, Bytes::len));
                    if held.size() > self.most {
                        self.fail(Failure::new(RESOURCE_EXHAUSTED, "the message is too large"));
                        return Poll::Ready(Some(Err(io::ErrorKind::FileTooLarge.into())));
                    }
                }
                (_, Some(Err(error))) => {
                    self.fail(Failure::unreadable(error));
                    if error.kind() == io::ErrorKind::ConnectionAborted
                        && let Some(caller) = self.caller.take()
                    {
                        caller.abandon();
                    }
                }
                _ => {}
            }
            return Poll::Ready(frame);
        }
        if let Some(timeout) = self.timeout {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
            if timer.as_mut().poll(context).is_ready() {
                self.fail(Failure::stalled());
                return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
            }
        }
        Poll::Pending
    }

    /// Reads all of it.
    pub async fn read_whole(mut self) -> Result<Bytes, Failure> {
        let mut data = BytesMut::new();
        while let Some(frame) = poll_fn(|context| Pin::new(&mut self).poll_frame(context)).await {
            let frame = frame.map_err(|error| Failure::unreadable(&error))?;
            data.extend_from_slice(frame.data_ref().map_or(&[], |part| part));
        }
        Ok(data.freeze())
    }

    /// Starts to read and drop the rest, as `discard` does, while the call is answered.
    pub fn discard_in_background(mut self) {
        tokio::spawn(async move { self.discard().await });
    }

    /// Reads and drops the rest, up to bounds: a peer that is still sending may treat the end of an
    /// HTTP/1.1 connection, or of an HTTP/2 stream (curl 7.88), as an error and never see the
    /// answer.
    pub async fn discard(&mut self) {
        (self.caller, self.held) = (None, None);
        let discard = async {
            let mut left = DISCARDED_BYTES;
            while let Some(Ok(frame)) =
                poll_fn(|context| Pin::new(&mut *self).poll_frame(context)).await
            {
                left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
                if left == 0 {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(DISCARD, discard).await;
    }
}

impl http_body::Body for ReadAhead {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(data) = self.received.take() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        match self.broken.take() {
            Some(error) => Poll::Ready(Some(Err(error))),
            None => self.poll_rest(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.received.is_none()
            && self.broken.is_none()
            && self
                .rest
                .as_ref()
                .is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.received, &self.rest) {
            (None, Some(rest)) => rest.size_hint(),
            _ => SizeHint::default(),
        }
    }
}

/// Why a body cannot be read: HTTP/1.1 is malformed, or the caller is gone.
fn fault(error: hyper::Error) -> io::Error {
    let source = error.source().and_then(|it| it.downcast_ref::<io::Error>());
    match source.map(|source| (source.kind(), source)) {
        Some((kind @ (io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData), source)) => {
            io::Error::new(kind, source.to_string())
        }
        _ => io::Error::new(io::ErrorKind::ConnectionAborted, GONE),
    }
}

/// The body of an answer.
pub enum Body {
    Grpc(grpc::Content),
    Protocols(Box<connect::Body>),
    Recounted(Box<Recounted<connect::Body>>),
}

/// A body that was encoded again: its bytes count, in place of the answer's, until they are sent.
pub struct Recounted<B> {
    body: B,
    peer: Arc<Peer>,
    /// The data of a body that is complete from the start. HTTP may request them much later.
    first: Option<Frame<Bytes>>,
}

impl<B: http_body::Body<Data = Bytes, Error = Infallible> + Unpin> Recounted<B> {
    pub fn stream(body: B, peer: Arc<Peer>) -> Self {
        Recounted {
            body,
            peer,
            first: None,
        }
    }

    pub fn whole(body: B, peer: Arc<Peer>) -> Self {
        let mut body = Recounted::stream(body, peer);
        if let Poll::Ready(Some(Ok(frame))) = body.poll(&mut Context::from_waker(Waker::noop())) {
            body.first = Some(frame);
        }
        body
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(frame) = self.first.take() {
            return Poll::Ready(Some(Ok(frame)));
        }
        let count = |data: Bytes| Unsent::new(data.into(), self.peer.clone()).into_bytes();
        let polled = Pin::new(&mut self.body).poll_frame(context);
        polled.map_ok(|frame| frame.map_data(count))
    }
}

impl From<Recounted<connect::Body>> for Body {
    fn from(body: Recounted<connect::Body>) -> Self {
        Body::Recounted(Box::new(body))
    }
}

impl Body {
    pub fn whole(content: Bytes) -> Self {
        Body::Protocols(Box::new(connect::Body::Full(content.into())))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Body::Grpc(body) => body.poll_frame(context),
            Body::Protocols(body) => Pin::new(body).poll_frame(context),
            Body::Recounted(body) => body.poll(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Grpc(body) => body.is_end_stream(),
            Body::Protocols(body) => body.is_end_stream(),
            Body::Recounted(body) => body.first.is_none() && body.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Grpc(_) | Body::Recounted(_) => SizeHint::default(),
            Body::Protocols(body) => body.size_hint(),
        }
    }
}
