//! The messages of one stream that have arrived and that Python has not processed.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::peer::{HeldBytes, Peer};
use crate::settings::{STREAM_READ_AHEAD, STREAM_READ_AHEAD_BYTES};

/// Limits their number and bytes. The bytes count as the peer's until Python has processed the
/// message or has dropped the call.
pub struct Arrived {
    queue: Mutex<Queue>,
    has_capacity: Notify,
}

struct Queue {
    sizes: VecDeque<usize>,
    held: HeldBytes,
}

impl Arrived {
    fn new(peer: Arc<Peer>) -> Arc<Self> {
        Arc::new(Arrived {
            queue: Mutex::new(Queue {
                sizes: VecDeque::new(),
                held: HeldBytes::new(peer),
            }),
            has_capacity: Notify::new(),
        })
    }

    /// Waits until one more message may be read: its size is not known before.
    pub async fn capacity(&self) {
        while !self.has_capacity() {
            self.has_capacity.notified().await;
        }
    }

    fn has_capacity(&self) -> bool {
        let queue = self.queue.lock();
        queue.sizes.len() < STREAM_READ_AHEAD && queue.held.size() < STREAM_READ_AHEAD_BYTES
    }

    pub fn push(&self, size: usize) {
        let mut queue = self.queue.lock();
        queue.sizes.push_back(size);
        queue.held.grow(size);
    }

    /// Removes the first `count` messages, which Python has processed.
    pub fn remove(&self, count: usize) {
        let mut queue = self.queue.lock();
        let count = count.min(queue.sizes.len());
        let size: usize = queue.sizes.drain(..count).sum();
        let left = queue.held.size() - size;
        queue.held.set(left);
        drop(queue);
        self.has_capacity.notify_one();
    }
}

/// What the reader of a stream waits for: capacity for a message, and the end of the call.
pub struct Reading {
    pub arrived: Arc<Arrived>,
    pub over: oneshot::Receiver<()>,
}

/// The reader of a stream, which ends when this is dropped.
pub struct Reader {
    pub arrived: Arc<Arrived>,
    #[expect(dead_code, reason = "dropped with the call")]
    over: oneshot::Sender<()>,
}

pub fn reading(peer: &Arc<Peer>) -> (Reader, Reading) {
    let arrived = Arrived::new(peer.clone());
    let (sender, over) = oneshot::channel();
    let reader = Reader {
        arrived: arrived.clone(),
        over: sender,
    };
    (reader, Reading { arrived, over })
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::peer::Peers;

    #[test]
    fn messages_are_limited_by_number_and_by_bytes_and_count_until_removed() {
        let peers = Peers::new(1 << 30, 0);
        let arrived = Arrived::new(peers.add("unix:".into(), None, None));
        let has_capacity = || arrived.capacity().now_or_never().is_some();
        (1..STREAM_READ_AHEAD).for_each(|_| arrived.push(1));
        assert!(has_capacity());
        arrived.push(1);
        assert!(!has_capacity());
        arrived.remove(STREAM_READ_AHEAD - 1);
        assert!(has_capacity());
        arrived.push(STREAM_READ_AHEAD_BYTES);
        assert_eq!(peers.held(), STREAM_READ_AHEAD_BYTES + 1);
        assert!(!has_capacity());
        arrived.remove(1);
        assert!(!has_capacity());
        arrived.remove(8); // of which there is one
        assert!(has_capacity());
        assert_eq!(peers.held(), 0);
    }
}
