//! The socket of a connection after its first bytes were read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Without vectored writes h2 (0.4) writes this much of a larger frame, and then the rest.
const START_BYTES: usize = 1024;

/// GOAWAY that ends no call: any stream may be the last, NO_ERROR (RFC 9113, section 6.8).
const GOAWAY: &[u8] = b"\0\0\x08\x07\0\0\0\0\0\x7f\xff\xff\xff\0\0\0\0";

/// A socket that returns bytes again that were read before, writes a frame at once, and can send a
/// GOAWAY of its own.
///
/// It does not offer vectored writes: with them h2 writes each answer of 256 bytes or more
/// separately, and without them it joins answers below 1,024 bytes.
pub struct Rewound<S> {
    first: Bytes,
    socket: S,
    /// The start of a frame, until its rest is written or h2 flushes.
    start: Vec<u8>,
    goaway: Arc<AtomicBool>,
}

impl<S> Rewound<S> {
    /// `first`: the bytes that were read before.
    pub fn new(first: Bytes, socket: S) -> Self {
        Rewound {
            first,
            socket,
            start: Vec::new(),
            goaway: Arc::default(),
        }
    }

    /// While it is set, the next flush of HTTP/2, which comes between two frames, sends GOAWAY and
    /// clears it.
    pub fn goaway(&self) -> Arc<AtomicBool> {
        self.goaway.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.socket).poll_read(context, buffer);
        }
        let size = self.first.len().min(buffer.remaining());
        buffer.put_slice(&self.first.split_to(size));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Rewound<S> {
    /// Writes the held start and data after it. Returns how much of the data, once no start is
    /// held.
    fn poll_write_start(
        &mut self,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut of_data = 0;
        while !self.start.is_empty() {
            let both = [IoSlice::new(&self.start), IoSlice::new(data)];
            let written = ready!(Pin::new(&mut self.socket).poll_write_vectored(context, &both))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            of_data = written.saturating_sub(self.start.len());
            self.start.drain(..written - of_data);
        }
        self.start = Vec::new(); // an idle connection keeps no memory for it
        Poll::Ready(Ok(of_data))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.start.is_empty() && data.len() == START_BYTES {
            self.start.extend_from_slice(data);
            return Poll::Ready(Ok(data.len()));
        }
        match ready!(self.poll_write_start(context, data))? {
            0 => Pin::new(&mut self.socket).poll_write(context, data),
            of_data => Poll::Ready(Ok(of_data)),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.goaway.swap(false, Relaxed) {
            self.start.extend_from_slice(GOAWAY);
        }
        ready!(self.poll_write_start(context, &[]))?;
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_start(context, &[]))?;
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// Each write, of at most `most` bytes.
    struct Writes {
        most: usize,
        writes: Vec<Vec<u8>>,
    }

    impl AsyncWrite for Writes {
        fn poll_write(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            data: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(context, &[IoSlice::new(data)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            parts: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let mut data: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
            data.truncate(self.most);
            let size = data.len();
            self.writes.push(data);
            Poll::Ready(Ok(size))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_frame_is_written_at_once_and_nothing_is_lost() {
        for most in [1, 1000, START_BYTES, 1500, 4000] {
            let writes = Vec::new();
            let mut socket = Rewound::new(Bytes::new(), Writes { most, writes });
            for size in [10, START_BYTES, 2000, START_BYTES, START_BYTES, START_BYTES] {
                socket.write_all(&vec![size as u8; size]).await.unwrap();
            }
            socket.flush().await.unwrap();
            assert_eq!(socket.start.capacity(), 0);
            let writes = socket.socket.writes;
            if most == 4000 {
                let sizes: Vec<_> = writes.iter().map(Vec::len).collect();
                assert_eq!(sizes, [10, 3024, 2048, 1024]);
            }
            let sent = [(10, 10), (0, 1024), (208, 2000), (0, 3072)];
            let sent = sent.map(|(byte, size)| vec![byte; size]).concat();
            assert_eq!(writes.concat(), sent);
        }
    }
}
