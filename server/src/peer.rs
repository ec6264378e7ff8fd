//! The other end of a connection: its identity, the bytes held for it, the calls it abandoned.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// All peers, and the bytes that are held for them: messages that are incomplete or wait for
/// Python, and unsent answers. If there are too many, the connection with the most is closed.
pub struct Peers {
    most: usize,
    max_abandoned: u32,
    bytes: AtomicUsize,
    /// The share of connections that are being closed.
    evicted: AtomicUsize,
    /// Calls that all connections abandoned, and new connections.
    recent: PerSecond,
    /// When there were last more of them in a second than one connection may abandon.
    last_flood: Mutex<Option<Instant>>,
    /// Whether the server drains.
    pub are_ending: AtomicBool,
    all: Mutex<Vec<Weak<Peer>>>,
}

impl Peers {
    /// At most `most` bytes, and `max_abandoned` calls of a connection in a second; 0: any number.
    pub fn new(most: usize, max_abandoned: u32) -> Arc<Self> {
        Arc::new(Peers {
            most,
            max_abandoned,
            bytes: AtomicUsize::new(0),
            evicted: AtomicUsize::new(0),
            recent: PerSecond::default(),
            last_flood: Mutex::default(),
            are_ending: AtomicBool::new(false),
            all: Mutex::default(),
        })
    }

    pub fn add(
        self: &Arc<Self>,
        name: String,
        address: Option<IpAddr>,
        certificate: Option<Vec<u8>>,
    ) -> Arc<Peer> {
        let peer = Arc::new(Peer {
            name,
            address,
            certificate,
            unsent: AtomicUsize::new(0),
            unread_calls: AtomicUsize::new(0),
            evicted: Notify::new(),
            opened: Instant::now(),
            peers: self.clone(),
            held: AtomicUsize::new(0),
            abandoned: PerSecond::default(),
        });
        self.all.lock().push(Arc::downgrade(&peer));
        self.count();
        peer
    }

    /// Bytes that are held for all peers.
    pub fn held(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Counts an abandoned call or a new connection.
    fn count(&self) {
        if self.max_abandoned > 0 && self.recent.add() > self.max_abandoned {
            *self.last_flood.lock() = Some(Instant::now());
        }
    }

    /// Whether there is a flood of abandoned calls or of new connections, or was one lately.
    pub fn is_flooded(&self) -> bool {
        let last = *self.last_flood.lock();
        last.is_some_and(|last| last.elapsed() < FLOOD)
    }

    fn close_the_largest(&self) {
        // Dropped without the lock, which the drop of a peer takes.
        let peers: Vec<_> = self.all.lock().iter().filter_map(Weak::upgrade).collect();
        let open = peers.iter().filter(|peer| !peer.is_evicted());
        if let Some(peer) = open.max_by_key(|peer| peer.held.load(Relaxed)) {
            let held = peer.held.fetch_or(EVICTED, Relaxed);
            if held & EVICTED == 0 {
                self.evicted.fetch_add(held, Relaxed);
                peer.evicted.notify_one();
            }
        }
    }
}

/// Time that a flood is expected to go on.
const FLOOD: Duration = Duration::from_secs(60);

/// A number in the current second.
struct PerSecond(Mutex<(Instant, u32)>);

impl Default for PerSecond {
    fn default() -> Self {
        PerSecond(Mutex::new((Instant::now(), 0)))
    }
}

impl PerSecond {
    /// Adds one. Returns their number.
    fn add(&self) -> u32 {
        let mut state = self.0.lock();
        if state.0.elapsed() > Duration::from_secs(1) {
            *state = (Instant::now(), 0);
        }
        state.1 += 1;
        state.1
    }
}

/// Marks the bytes of a peer that is being closed for them: each byte counts as evicted then,
/// whether it came before the mark or after.
const EVICTED: usize = 1 << (usize::BITS - 1);

/// One connection, shared by all of its calls.
pub struct Peer {
    /// Its address in gRPC's form: `ipv4:127.0.0.1:4711`, `ipv6:[::1]:4711` or `unix:`.
    pub name: String,
    pub address: Option<IpAddr>,
    /// The verified client certificate, as DER.
    pub certificate: Option<Vec<u8>>,
    /// Bytes of answers that HTTP has not sent yet.
    pub unsent: AtomicUsize,
    /// Number of unary calls whose large messages wait unread.
    pub unread_calls: AtomicUsize,
    /// Notified when the connection is to be closed for abuse.
    pub evicted: Notify,
    opened: Instant,
    peers: Arc<Peers>,
    held: AtomicUsize,
    abandoned: PerSecond,
}

impl Peer {
    /// Whether an answer of this size fits beside the unsent ones within `most`; one alone always
    /// does.
    pub fn has_room(&self, size: usize, most: usize) -> bool {
        let unsent = self.unsent.load(Relaxed);
        unsent == 0 || unsent + size <= most
    }

    /// Count a call that was cancelled or has no valid credentials. Above the limit within a
    /// second, evict the peer.
    pub fn abandon(&self) {
        let limit = self.peers.max_abandoned;
        if limit == 0 {
            return;
        }
        self.peers.count();
        if self.abandoned.add() > limit {
            self.evicted.notify_one();
        }
    }

    /// Whether its connection is to end with its next answer, before it is closed at `most_age`: a
    /// request that arrives as an idle HTTP/1.1 connection is closed is lost.
    pub fn is_ending(&self, most_age: Option<Duration>) -> bool {
        let is_old = most_age.is_some_and(|age| self.opened.elapsed() >= age / 10 * 9);
        is_old || self.peers.are_ending.load(Relaxed)
    }

    /// The reason of its eviction.
    pub fn fault(&self) -> &'static str {
        if self.is_evicted() {
            "max_buffered_bytes is reached, and this connection holds the most bytes"
        } else {
            "more calls than max_abandoned_per_second were cancelled or had no valid credentials"
        }
    }

    fn is_evicted(&self) -> bool {
        self.held.load(Relaxed) & EVICTED != 0
    }

    fn hold(&self, size: usize) {
        let held = self.held.fetch_add(size, Relaxed);
        let peers = &self.peers;
        let bytes = peers.bytes.fetch_add(size, Relaxed) + size;
        if held & EVICTED != 0 {
            peers.evicted.fetch_add(size, Relaxed);
        } else if bytes.saturating_sub(peers.evicted.load(Relaxed)) > peers.most {
            peers.close_the_largest();
        }
    }

    fn release(&self, size: usize) {
        let held = self.held.fetch_sub(size, Relaxed);
        self.peers.bytes.fetch_sub(size, Relaxed);
        if held & EVICTED != 0 {
            self.peers.evicted.fetch_sub(size, Relaxed);
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let mut all = self.peers.all.lock();
        all.retain(|peer| peer.strong_count() > 0);
    }
}

/// Bytes of messages, counted until dropped.
pub struct HeldBytes {
    peer: Arc<Peer>,
    size: usize,
}

impl HeldBytes {
    pub fn new(peer: Arc<Peer>) -> Self {
        HeldBytes { peer, size: 0 }
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn grow(&mut self, size: usize) {
        self.peer.hold(size);
        self.size += size;
    }

    pub fn set(&mut self, size: usize) {
        if size > self.size {
            self.peer.hold(size - self.size);
        } else if size < self.size {
            self.peer.release(self.size - size);
        }
        self.size = size;
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.peer.release(self.size);
    }
}

/// Bytes on their way to a peer, counted until HTTP has sent them.
pub struct Unsent {
    data: Vec<u8>,
    peer: Arc<Peer>,
}

impl Unsent {
    pub fn new(data: Vec<u8>, peer: Arc<Peer>) -> Self {
        peer.unsent.fetch_add(data.len(), Relaxed);
        peer.hold(data.len());
        Unsent { data, peer }
    }

    pub fn replace(&mut self, data: Vec<u8>) {
        *self = Unsent::new(data, self.peer.clone());
    }

    pub fn append(&mut self, more: &[u8]) {
        self.peer.unsent.fetch_add(more.len(), Relaxed);
        self.peer.hold(more.len());
        self.data.extend_from_slice(more);
    }

    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
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
        self.peer.release(self.data.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(peers: &Arc<Peers>) -> Arc<Peer> {
        peers.add("unix:".into(), None, None)
    }

    fn is_evicted(peer: &Peer) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let most = Duration::from_millis(1);
            tokio::time::timeout(most, peer.evicted.notified())
                .await
                .is_ok()
        })
    }

    #[test]
    fn bytes_count_until_they_are_dropped() {
        let peer = peer(&Peers::new(100, 3));
        let mut message = Unsent::new(vec![0; 30], peer.clone());
        message.replace(vec![0; 6]);
        message.append(&[0; 4]);
        let bytes = message.into_bytes();
        let part = bytes.slice(2..4);
        drop(bytes);
        assert_eq!(peer.unsent.load(Relaxed), 10);
        assert_eq!(peer.peers.bytes.load(Relaxed), 10);
        drop(part);
        assert_eq!(peer.unsent.load(Relaxed), 0);
        assert_eq!(peer.peers.bytes.load(Relaxed), 0);
    }

    #[test]
    fn the_peer_that_holds_most_is_evicted_and_no_other_meanwhile() {
        let peers = Peers::new(100, 3);
        let (large, small) = (peer(&peers), peer(&peers));
        let mut message = HeldBytes::new(large.clone());
        message.grow(60);
        let answer = Unsent::new(vec![0; 40], small.clone());
        assert!(!is_evicted(&large) && !is_evicted(&small));
        let more = Unsent::new(vec![0; 50], small.clone());
        assert!(is_evicted(&small) && !is_evicted(&large)); // it has 90 now
        message.grow(30);
        assert!(!is_evicted(&large)); // enough is free once the other is closed
        message.grow(20);
        assert!(is_evicted(&large));
        drop((answer, more, message, small, large));
        assert_eq!(peers.bytes.load(Relaxed), 0);
        assert_eq!(peers.evicted.load(Relaxed), 0);
        assert!(peers.all.lock().is_empty());
    }

    #[test]
    fn peers_leave_and_release_bytes_while_others_are_evicted() {
        let peers = Peers::new(0, 3);
        let leave = || (0..100_000).for_each(|_| drop(Unsent::new(vec![0], peer(&peers))));
        std::thread::scope(|scope| {
            scope.spawn(leave);
            leave();
        });
        assert_eq!(peers.bytes.load(Relaxed), 0);
        assert_eq!(peers.evicted.load(Relaxed), 0);
        assert!(peers.all.lock().is_empty());
    }

    #[test]
    fn a_connection_ends_with_an_answer_at_its_age_or_when_the_server_drains() {
        let peer = peer(&Peers::new(100, 3));
        assert!(peer.is_ending(Some(Duration::ZERO)));
        assert!(!peer.is_ending(Some(Duration::MAX)) && !peer.is_ending(None));
        peer.peers.are_ending.store(true, Relaxed);
        assert!(peer.is_ending(None));
    }

    #[test]
    fn abandoned_calls_and_new_connections_of_all_peers_are_a_flood() {
        let peers = Peers::new(100, 5);
        let opened: Vec<_> = (0..3).map(|_| peer(&peers)).collect();
        opened.iter().take(2).for_each(|peer| peer.abandon());
        assert!(!peers.is_flooded());
        opened[2].abandon();
        assert!(peers.is_flooded());
        assert!(!opened.iter().any(|peer| is_evicted(peer)));
    }

    #[test]
    fn a_peer_is_evicted_above_the_limit_and_not_at_it() {
        let peer = peer(&Peers::new(100, 3));
        (0..3).for_each(|_| peer.abandon());
        assert!(!is_evicted(&peer));
        peer.abandon();
        assert!(is_evicted(&peer));
    }
}
