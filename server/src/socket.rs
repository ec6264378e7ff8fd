//! The socket of a connection after its first bytes were read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A socket that returns bytes again that were read before.
///
/// It does not offer vectored writes: with them h2 (0.4) writes each answer of 256 bytes or more
/// separately, and without them it joins answers below 1,024 bytes.
pub struct Rewound<S> {
    first: Bytes,
    socket: S,
}

impl<S> Rewound<S> {
    /// `first`: the bytes that were read before.
    pub fn new(first: Bytes, socket: S) -> Self {
        Rewound { first, socket }
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

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
