//! The other end of a connection: who it is, what it has not taken yet, how often it gave up.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// One connection, shared by all of its calls.
pub struct Peer {
    /// As gRPC writes it: `ipv4:127.0.0.1:4711`, `ipv6:[::1]:4711` or `unix:`.
    pub name: String,
    pub address: Option<IpAddr>,
    /// The client certificate that was verified, as DER.
    pub certificate: Option<Vec<u8>>,
    /// Bytes of answers that were handed to HTTP and are not sent yet.
    pub unsent: AtomicUsize,
    /// Unary calls whose large messages wait unread.
    pub unread_calls: AtomicUsize,
    /// Told when the connection is to be closed for abuse.
    pub evicted: Notify,
    abandoned: Mutex<(Instant, u32)>,
}

impl Peer {
    pub fn new(name: String, address: Option<IpAddr>, certificate: Option<Vec<u8>>) -> Self {
        Peer {
            name,
            address,
            certificate,
            unsent: AtomicUsize::new(0),
            unread_calls: AtomicUsize::new(0),
            evicted: Notify::new(),
            abandoned: Mutex::new((Instant::now(), 0)),
        }
    }

    /// Count a call that the peer gave up; above `limit` within a second, evict the peer.
    pub fn abandon(&self, limit: u32) {
        if limit == 0 {
            return;
        }
        let mut abandoned = self.abandoned.lock();
        if abandoned.0.elapsed() > Duration::from_secs(1) {
            *abandoned = (Instant::now(), 0);
        }
        abandoned.1 += 1;
        if abandoned.1 > limit {
            self.evicted.notify_one();
        }
    }
}

/// Bytes on their way to a peer, counted until HTTP has sent them.
pub struct Unsent {
    data: Vec<u8>,
    peer: std::sync::Arc<Peer>,
}

impl Unsent {
    pub fn count(data: Vec<u8>, peer: std::sync::Arc<Peer>) -> Bytes {
        peer.unsent.fetch_add(data.len(), Relaxed);
        Bytes::from_owner(Unsent { data, peer })
    }
}

impl AsRef<[u8]> for Unsent {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.peer.unsent.fetch_sub(self.data.len(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn bytes_count_until_they_are_dropped() {
        let peer = Arc::new(Peer::new("unix:".into(), None, None));
        let bytes = Unsent::count(vec![0; 10], peer.clone());
        let part = bytes.slice(2..4);
        drop(bytes);
        assert_eq!(peer.unsent.load(Relaxed), 10);
        drop(part);
        assert_eq!(peer.unsent.load(Relaxed), 0);
    }

    #[test]
    fn a_peer_is_evicted_above_the_limit_and_not_at_it() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let peer = Peer::new("unix:".into(), None, None);
        let evicted = || {
            runtime.block_on(async {
                tokio::time::timeout(Duration::from_millis(1), peer.evicted.notified())
                    .await
                    .is_ok()
            })
        };
        (0..3).for_each(|_| peer.abandon(3));
        assert!(!evicted());
        peer.abandon(3);
        assert!(evicted());
    }
}
