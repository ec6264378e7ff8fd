//! Memory for larger messages that are read before their calls are admitted.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::settings::{ARRIVAL_TIME, SMALL_BYTES, UNADMITTED_BYTES};

/// What all calls have reserved. A message that is announced and withheld counts in full, so it
/// must give way: otherwise one connection could reserve all, for as long as a message may take.
#[derive(Default)]
pub struct Reservations(Mutex<State>);

#[derive(Default)]
struct State {
    bytes: usize,
    last: u64,
    /// Those of messages that are not complete, the oldest first.
    arriving: BTreeMap<u64, Arriving>,
}

struct Arriving {
    size: usize,
    since: Instant,
    #[expect(dead_code, reason = "dropped with the reservation")]
    withdrawn: oneshot::Sender<()>,
}

impl Reservations {
    /// Reserves memory for a message, and may withdraw that of messages that have been arriving for
    /// `ARRIVAL_TIME`. Returns `None` if the message must wait for admission, as small ones
    /// never do.
    pub fn reserve(self: &Arc<Self>, size: usize) -> Option<Reserved> {
        if size <= SMALL_BYTES {
            return Some(Reserved(None));
        }
        let mut state = self.0.lock();
        while state.bytes >= UNADMITTED_BYTES {
            let oldest = state.arriving.first_entry()?;
            if oldest.get().since.elapsed() < ARRIVAL_TIME {
                return None;
            }
            state.bytes -= oldest.remove().size;
        }
        let (sender, withdrawn) = oneshot::channel();
        state.bytes += size;
        state.last += 1;
        let id = state.last;
        let arriving = Arriving {
            size,
            since: Instant::now(),
            withdrawn: sender,
        };
        state.arriving.insert(id, arriving);
        Some(Reserved(Some(Reservation {
            all: self.clone(),
            id,
            size,
            has_arrived: false,
            withdrawn,
        })))
    }
}

/// Reserved memory for a message, until dropped; none for a small one.
pub struct Reserved(Option<Reservation>);

struct Reservation {
    all: Arc<Reservations>,
    id: u64,
    size: usize,
    has_arrived: bool,
    withdrawn: oneshot::Receiver<()>,
}

impl Reserved {
    /// Waits until the message is read; `None` if its memory is withdrawn before.
    pub async fn read<T>(&mut self, reading: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        let Some(reservation) = &mut self.0 else {
            return Some(reading.await);
        };
        tokio::select! {
            biased;
            read = reading => {
                let mut state = reservation.all.0.lock();
                reservation.has_arrived = state.arriving.remove(&reservation.id).is_some();
                Some(read)
            }
            _ = &mut reservation.withdrawn => None,
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.all.0.lock();
        if state.arriving.remove(&self.id).is_some() || self.has_arrived {
            state.bytes -= self.size;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;

    use futures_util::FutureExt;
    use tokio::time::advance;

    use super::*;

    const HALF: usize = UNADMITTED_BYTES / 2;

    #[test]
    fn large_messages_are_reserved_again_once_others_are_over() {
        let all = Arc::new(Reservations::default());
        let (first, second) = (all.reserve(HALF), all.reserve(HALF));
        assert!(first.is_some() && second.is_some());
        assert!(all.reserve(HALF).is_none());
        assert!(all.reserve(SMALL_BYTES).is_some());
        drop(first);
        assert!(all.reserve(HALF).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_message_that_has_not_arrived_in_time_gives_way_and_counts_no_more() {
        let all = Arc::new(Reservations::default());
        let mut complete = all.reserve(HALF).unwrap();
        assert!(complete.read(pin!(ready(()))).await.is_some());
        let mut withheld = all.reserve(HALF).unwrap();
        advance(ARRIVAL_TIME / 2).await;
        assert!(all.reserve(HALF).is_none());
        advance(ARRIVAL_TIME / 2).await;
        let other = all.reserve(HALF);
        assert!(other.is_some());
        assert!(withheld.read(pin!(pending::<()>())).now_or_never() == Some(None));
        drop(withheld);
        assert_eq!(all.0.lock().bytes, UNADMITTED_BYTES);
        advance(ARRIVAL_TIME / 2).await;
        assert!(all.reserve(HALF).is_none()); // one is complete, and the other is new
        drop((complete, other));
        assert_eq!(all.0.lock().bytes, 0);
    }
}
