//! What a call waits for: memory for its message, admission, its answer and its deadline.

use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use tokio::sync::oneshot;

use crate::call::{Failure, Opened};
use crate::grpc;
use crate::guard::Guard;
use crate::methods::Method;
use crate::peer::Peer;
use crate::reservations::Reserved;
use crate::settings::SMALL_BYTES;
use crate::shared::Shared;

/// Waits for Python's answer.
pub async fn received<T>(receiver: oneshot::Receiver<Result<T, Failure>>) -> Result<T, Failure> {
    receiver
        .await
        .unwrap_or_else(|_| Err(Failure::unanswered()))
}

/// Fails a future at its deadline.
pub async fn within<T>(
    deadline: Option<Instant>,
    future: Pin<&mut impl Future<Output = Result<T, Failure>>>,
) -> Result<T, Failure> {
    match deadline {
        None => future.await,
        Some(deadline) => tokio::time::timeout_at(deadline.into(), future)
            .await
            .unwrap_or_else(|_| Err(grpc::deadline_exceeded())),
    }
}

/// Maximum bytes of a message, compressed and inflated.
pub fn most_of(shared: &Shared, method: Method) -> usize {
    if method.is_small {
        SMALL_BYTES
    } else {
        shared.settings.max_message_bytes
    }
}

/// Reserves memory for a message that is read before its call is admitted, until the call is over.
pub fn reserve(shared: &Shared, size: usize) -> Option<Reserved> {
    let most = shared.settings.read_ahead_bytes.max(SMALL_BYTES);
    let is_wanted = size <= most.min(shared.settings.max_message_bytes);
    is_wanted
        .then(|| shared.calls.reservations.reserve(size))
        .flatten()
}

/// Waits until Python requests the message of a call or rejects the call.
pub async fn admission(
    shared: &Shared,
    mut opened: Opened,
) -> Result<(Guard, oneshot::Receiver<Failure>), Failure> {
    let peer = opened.peer.clone();
    // Until its message is read, which reopens its flow-control window.
    let unread = peer.unread_calls.fetch_add(1, Relaxed);
    let _unread = Unread(&peer);
    opened.is_excess = unread >= shared.settings.max_unread_calls;
    let (guard, admitted, rejected) = shared.calls.unread(opened);
    received(admitted).await?;
    Ok((guard, rejected))
}

struct Unread<'a>(&'a Peer);

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        self.0.unread_calls.fetch_sub(1, Relaxed);
    }
}
