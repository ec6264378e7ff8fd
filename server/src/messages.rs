//! The messages in a request body of gRPC or of a stream, each with a prefix of five bytes.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use http_body::Body as _;

use crate::body::ReadAhead;
use crate::call::{
    Failure, INTERNAL, INVALID_ARGUMENT, PREFIX_BYTES, RESOURCE_EXHAUSTED, UNIMPLEMENTED,
};
use crate::gzip::inflate_in_turn;
use crate::peer::HeldBytes;

type Inflating = Pin<Box<dyn Future<Output = Result<Bytes, Failure>> + Send>>;

/// The messages of one body.
pub struct Messages {
    body: ReadAhead,
    /// The last received data: mostly whole messages, which are not copied.
    data: Bytes,
    /// The received part of a message that arrives in parts.
    part: BytesMut,
    /// A compressed message of this size.
    inflating: Option<(usize, Inflating)>,
    /// Counts the buffered bytes.
    held: HeldBytes,
    most: usize,
    may_be_gzip: bool,
}

impl Messages {
    /// `most`: maximum bytes of a message, compressed and inflated. `may_be_gzip`: by a header.
    pub fn new(body: ReadAhead, most: usize, may_be_gzip: bool, held: HeldBytes) -> Self {
        Messages {
            body,
            data: Bytes::new(),
            part: BytesMut::new(),
            inflating: None,
            held,
            most,
            may_be_gzip,
        }
    }

    /// Whether the next message is compressed, and its size; `None` if the request ends or fails
    /// before, which `next` reports.
    pub async fn prefix(&mut self) -> Option<(bool, usize)> {
        loop {
            let here = if self.part.is_empty() {
                &self.data[..]
            } else {
                &self.part
            };
            if let Some(size) = size(here) {
                let is_compressed = here[0] != 0;
                self.record();
                return Some((is_compressed, size));
            }
            let body = &mut self.body;
            let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
            self.add(frame?.ok()?.into_data().ok()?);
        }
    }

    /// The only message of a call.
    pub async fn only(&mut self) -> Result<Bytes, Failure> {
        let Some(message) = self.next().await.transpose()? else {
            return Err(Failure::new(UNIMPLEMENTED, "the request has no message"));
        };
        match self.next().await.transpose()? {
            None => Ok(message),
            Some(_) => Err(Failure::new(
                UNIMPLEMENTED,
                "the request has more than one message",
            )),
        }
    }

    /// Drops the data, and reads and drops more for a while: `h2` closes connections with many
    /// small frames for unread streams.
    pub fn discard(self) -> impl Future<Output = ()> {
        let mut body = self.body;
        async move { body.discard().await }
    }

    /// The next complete message; `None` if it has not arrived, or is to be inflated first.
    fn decode(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(size) = size(&self.data) else {
            return Ok(None);
        };
        if size > self.most {
            return Err(Failure::new(
                RESOURCE_EXHAUSTED,
                format!(
                    "the message has {size} bytes, and the limit is {}",
                    self.most
                ),
            ));
        }
        if self.data.len() < PREFIX_BYTES + size {
            return Ok(None);
        }
        let is_compressed = self.data[0] != 0;
        self.data.advance(PREFIX_BYTES);
        let message = self.data.split_to(size);
        match (is_compressed, self.may_be_gzip) {
            (false, _) => Ok(Some(message)),
            (true, true) => {
                self.inflating = Some((size, Box::pin(inflate_in_turn(message, self.most))));
                Ok(None)
            }
            (true, false) => Err(Failure::new(
                INTERNAL,
                "the message is compressed, and no header says how",
            )),
        }
    }

    fn add(&mut self, data: Bytes) {
        if self.data.is_empty() && self.part.is_empty() {
            self.data = data;
            return;
        }
        if self.part.is_empty() {
            let so_far = std::mem::take(&mut self.data);
            self.part.extend_from_slice(&so_far);
        }
        if self.part.capacity() < self.part.len() + data.len() {
            // As much as the message needs, but at most a few times what the peer has sent.
            let here = self.part.len() + data.len();
            let needed = size(&self.part).map_or(here, |size| PREFIX_BYTES + size);
            let capacity = needed.clamp(here, 4 * here);
            self.part.reserve(capacity - self.part.len());
        }
        self.part.extend_from_slice(&data);
        if size(&self.part)
            .is_some_and(|size| size > self.most || self.part.len() >= PREFIX_BYTES + size)
        {
            self.data = std::mem::take(&mut self.part).freeze();
        }
    }

    fn record(&mut self) {
        let inflating = self.inflating.as_ref().map_or(0, |(size, _)| *size);
        self.held.set(self.data.len() + self.part.len() + inflating);
    }
}

/// The size of the message that starts `data`; `None` if its prefix is incomplete.
fn size(data: &[u8]) -> Option<usize> {
    let prefix: [u8; 4] = data.get(1..PREFIX_BYTES)?.try_into().ok()?;
    Some(u32::from_be_bytes(prefix) as usize)
}

impl Stream for Messages {
    type Item = Result<Bytes, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some((_, inflating)) = &mut self.inflating {
                let message = ready!(inflating.as_mut().poll(context));
                self.inflating = None;
                self.record();
                return Poll::Ready(Some(message));
            }
            let message = self.decode().transpose();
            self.record();
            if message.is_some() {
                return Poll::Ready(message);
            }
            if self.inflating.is_some() {
                continue;
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.add(data);
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(Failure::unreadable(&error)))),
                None if self.data.is_empty() && self.part.is_empty() => return Poll::Ready(None),
                None => {
                    return Poll::Ready(Some(Err(Failure::new(
                        INVALID_ARGUMENT,
                        "the request ends within a message",
                    ))));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::call::prefixed;
    use crate::gzip::deflate;
    use crate::peer::Peers;

    #[tokio::test]
    async fn a_unary_call_has_exactly_one_message() {
        for (count, is_valid) in [(0, false), (1, true), (2, false)] {
            let body = ReadAhead::replaced(prefixed(b"a").repeat(count).into());
            let held = HeldBytes::new(Peers::new(0, 0).add("unix:".into(), None, None));
            let mut messages = Messages::new(body, 1, false, held);
            assert_eq!(messages.only().await.is_ok(), is_valid, "{count}");
        }
    }

    #[test]
    fn an_announced_size_reserves_a_few_times_what_has_arrived() {
        let held = HeldBytes::new(Peers::new(0, 0).add("unix:".into(), None, None));
        let body = ReadAhead::replaced(Bytes::new());
        let mut messages = Messages::new(body, 1 << 20, false, held);
        for part in [&[0, 0, 16, 0, 0][..], &[0; 11]] {
            messages.add(Bytes::from_static(part));
        }
        assert!(messages.part.capacity() <= 64);
    }

    #[tokio::test]
    async fn a_compressed_message_counts_while_it_waits_to_be_inflated() {
        let peers = Peers::new(1 << 30, 0);
        let held = HeldBytes::new(peers.add("unix:".into(), None, None));
        let mut data = deflate(&[1, 0, 0, 0, 0], &[7; 1 << 20]).unwrap();
        let size = data.len() - PREFIX_BYTES;
        data[1..PREFIX_BYTES].copy_from_slice(&(size as u32).to_be_bytes());
        let mut messages = Messages::new(ReadAhead::replaced(data.into()), 1 << 20, true, held);
        assert!(messages.next().now_or_never().is_none());
        assert_eq!(peers.held(), size);
        assert_eq!(messages.only().await.unwrap().len(), 1 << 20);
        assert_eq!(peers.held(), 0);
    }
}
