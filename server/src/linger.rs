//! A socket that stays open for a while after its end was sent.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, copy, sink};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time for a peer to receive everything and to close its side.
const LINGER: Duration = Duration::from_secs(10);
/// Maximum bytes that are read meanwhile.
const DISCARDED_BYTES: u64 = 1 << 20;

/// A socket that returns to `Closing` when it is dropped, if its end was sent and its peer may still
/// send. A system that receives data for a closed socket, such as a WINDOW_UPDATE, resets the
/// connection, and answers that are not sent yet are lost.
pub struct Lingering<S> {
    /// `None` once the peer has closed its side.
    returns: Option<oneshot::Sender<S>>,
    has_ended: bool,
    /// Always there until it is dropped.
    socket: Option<S>,
}

/// The socket after its connection.
pub struct Closing<S>(oneshot::Receiver<S>);

impl<S: Unpin> Lingering<S> {
    pub fn new(socket: S) -> (Self, Closing<S>) {
        let (returns, returned) = oneshot::channel();
        let lingering = Lingering {
            returns: Some(returns),
            has_ended: false,
            socket: Some(socket),
        };
        (lingering, Closing(returned))
    }

    fn socket(&mut self) -> Pin<&mut S> {
        Pin::new(self.socket.as_mut().expect("it is not dropped"))
    }
}

impl<S: AsyncRead + Unpin> Closing<S> {
    /// Waits until the socket may be closed.
    pub async fn wait(self) {
        let Ok(socket) = self.0.await else { return };
        let mut rest = socket.take(DISCARDED_BYTES);
        let mut nowhere = sink();
        let reading = copy(&mut rest, &mut nowhere);
        let _ = timeout(LINGER, reading).await;
    }
}

impl<S> Drop for Lingering<S> {
    fn drop(&mut self) {
        if let (true, Some(returns), Some(socket)) =
            (self.has_ended, self.returns.take(), self.socket.take())
        {
            let _ = returns.send(socket);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, room) = (buffer.filled().len(), buffer.remaining());
        let read = ready!(self.socket().poll_read(context, buffer));
        if read.is_err() || (room > 0 && buffer.filled().len() == before) {
            self.returns = None;
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
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
            .is_some_and(AsyncWrite::is_write_vectored)
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
