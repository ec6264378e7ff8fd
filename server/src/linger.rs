//! A socket that stays open for a while after its end was sent.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, copy, sink};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::settings::DISCARDED_BYTES;

/// Time for a peer to receive everything and to close its side.
const LINGER: Duration = Duration::from_secs(10);

/// A socket whose drop closes it at once, unless its end was sent and its peer may still send. Then
/// the runtime closes it, after the peer has closed its side. A system that receives data for a
/// closed socket, such as a WINDOW_UPDATE, resets the connection, and answers that are not sent yet
/// are lost.
///
/// `H` is dropped when the socket is closed.
pub struct Lingering<S, H>
where
    S: AsyncRead + Unpin + Send + 'static,
    H: Send + 'static,
{
    has_ended: bool,
    peer_has_sent: bool,
    peer_has_ended: bool,
    /// Always there until it is dropped. Boxed: futures would hold several copies of it.
    socket: Option<Box<(S, H)>>,
}

impl<S, H> Lingering<S, H>
where
    S: AsyncRead + Unpin + Send + 'static,
    H: Send + 'static,
{
    pub fn new(socket: S, held: H) -> Self {
        Lingering {
            has_ended: false,
            peer_has_sent: false,
            peer_has_ended: false,
            socket: Some(Box::new((socket, held))),
        }
    }

    /// Whether any byte was received.
    pub fn peer_has_sent(&self) -> bool {
        self.peer_has_sent
    }

    fn socket(&mut self) -> Pin<&mut S> {
        Pin::new(&mut self.socket.as_mut().expect("it is not dropped").0)
    }
}

impl<S, H> Drop for Lingering<S, H>
where
    S: AsyncRead + Unpin + Send + 'static,
    H: Send + 'static,
{
    fn drop(&mut self) {
        if let (true, false, Some(socket), Ok(runtime)) = (
            self.has_ended,
            self.peer_has_ended,
            self.socket.take(),
            Handle::try_current(),
        ) {
            runtime.spawn(async move {
                let (socket, _held) = *socket;
                let mut rest = socket.take(DISCARDED_BYTES as u64);
                let _ = timeout(LINGER, copy(&mut rest, &mut sink())).await;
            });
        }
    }
}

impl<S, H> AsyncRead for Lingering<S, H>
where
    S: AsyncRead + Unpin + Send + 'static,
    H: Send + Unpin + 'static,
{
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, room) = (buffer.filled().len(), buffer.remaining());
        let read = ready!(self.socket().poll_read(context, buffer));
        if buffer.filled().len() > before {
            self.peer_has_sent = true;
        } else if read.is_err() || room > 0 {
            self.peer_has_ended = true;
        }
        Poll::Ready(read)
    }
}

impl<S, H> AsyncWrite for Lingering<S, H>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Send + Unpin + 'static,
{
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.socket().poll_write(context, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.socket().poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket
            .as_ref()
            .is_some_and(|socket| socket.0.is_write_vectored())
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.socket().poll_shutdown(context))?;
        self.has_ended = true;
        Poll::Ready(Ok(()))
    }
}
