//! The queue of events of calls: an eventfd wakes Python, which reads many at once.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;

use parking_lot::Mutex;

use crate::call::{Event, Opened};
use crate::settings::TAKE_BYTES;

/// Events of calls by id. Messages of open streams have a separate queue: otherwise one caller's
/// streams could delay every new call. Large calls have a third one: Python gets one of them at a
/// time, after the small ones.
pub struct Events {
    queues: Mutex<Queues>,
    wake: File,
}

#[derive(Default)]
struct Queues {
    calls: VecDeque<(u64, Event)>,
    /// In order for each stream.
    streams: VecDeque<(u64, Event)>,
    large: VecDeque<(u64, Event)>,
}

impl Queues {
    fn len(&self) -> usize {
        self.calls.len() + self.streams.len() + self.large.len()
    }
}

impl Events {
    /// `wake` is an eventfd, written when the empty queue gets an event.
    pub fn new(wake: File) -> Self {
        Events {
            queues: Mutex::default(),
            wake,
        }
    }

    pub fn push(&self, id: u64, event: Event) {
        self.add(|queues| queues.calls.push_back((id, event)));
    }

    /// Pushes an event of an open stream, which is returned after all events of `push`.
    pub fn push_of_stream(&self, id: u64, event: Event) {
        self.add(|queues| queues.streams.push_back((id, event)));
    }

    /// Pushes a new call with its message. A large one is returned after all other events.
    pub fn push_opened(&self, id: u64, opened: Box<Opened>) {
        let event = Event::Opened(opened);
        self.add(|queues| {
            let queue = if event.is_large() {
                &mut queues.large
            } else {
                &mut queues.calls
            };
            queue.push_back((id, event));
        });
    }

    /// Pushes a cancellation, or removes the call if it is large and Python has not seen it.
    pub fn push_cancelled(&self, id: u64) {
        self.add(
            |queues| match queues.large.iter().position(|(large, _)| *large == id) {
                Some(place) => drop(queues.large.remove(place)),
                None => queues.calls.push_back((id, Event::Cancelled)),
            },
        );
    }

    fn add(&self, add: impl FnOnce(&mut Queues)) {
        let was_empty = {
            let mut queues = self.queues.lock();
            let before = queues.len();
            add(&mut queues);
            before == 0 && queues.len() > 0
        };
        if was_empty {
            // Full: Python was woken and has not read it yet.
            let _ = (&self.wake).write(&1u64.to_ne_bytes());
        }
    }

    /// Returns at most `most` events of calls, then those of streams that fit, at least a quarter
    /// of `most`, then one large call; and whether there are more. `TAKE_BYTES` bounds the messages
    /// of calls, and those of streams.
    pub fn take(&self, most: usize) -> (Vec<(u64, Event)>, bool) {
        let mut queues = self.queues.lock();
        let calls = within(&queues.calls, most);
        // Calls without an end must not stop the streams.
        let streams = within(&queues.streams, (most - calls).max(most / 4));
        let mut taken: Vec<_> = queues.calls.drain(..calls).collect();
        taken.extend(queues.streams.drain(..streams));
        taken.extend(queues.large.pop_front());
        (taken, queues.len() > 0)
    }
}

/// The number of events, at most `most`, whose messages have at most `TAKE_BYTES`; one in any case.
fn within(queue: &VecDeque<(u64, Event)>, most: usize) -> usize {
    let mut size = 0;
    let fits = |(_, event): &&(u64, Event)| {
        let is_first = size == 0;
        if let Event::Message(message) = event {
            size += message.len();
        }
        is_first || size <= TAKE_BYTES
    };
    queue.iter().take(most).take_while(fits).count()
}

#[cfg(test)]
pub mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::peer::{HeldBytes, Peers};
    use crate::settings::SMALL_BYTES;

    fn events() -> Events {
        Events::new(File::options().write(true).open("/dev/null").unwrap())
    }

    fn ids(events: &[(u64, Event)]) -> Vec<u64> {
        events.iter().map(|(id, _)| *id).collect()
    }

    #[test]
    fn a_new_call_is_taken_before_the_messages_of_streams() {
        let events = events();
        (0..100).for_each(|_| events.push_of_stream(1, Event::End));
        events.push(2, Event::Cancelled);
        let (taken, has_more) = events.take(8);
        assert_eq!(ids(&taken), [2, 1, 1, 1, 1, 1, 1, 1]);
        assert!(has_more);
    }

    #[test]
    fn streams_go_on_beside_calls_without_an_end() {
        let events = events();
        (0..100).for_each(|_| events.push(1, Event::Cancelled));
        (0..2).for_each(|_| events.push_of_stream(2, Event::End));
        let (taken, has_more) = events.take(8);
        assert_eq!(ids(&taken), [1, 1, 1, 1, 1, 1, 1, 1, 2, 2]);
        assert!(has_more);
        assert_eq!(events.take(1000).0.len(), 92);
        assert!(!events.take(1).1);
    }

    #[test]
    fn large_messages_are_taken_one_at_a_time_and_small_ones_together() {
        let events = events();
        let message = |size: usize| Event::Message(vec![0; size].into());
        for size in [
            TAKE_BYTES + 1,
            TAKE_BYTES,
            TAKE_BYTES / 2,
            TAKE_BYTES / 2,
            1,
        ] {
            events.push(1, message(size));
            events.push_of_stream(2, message(size));
        }
        for expected in [1, 1, 2, 1] {
            assert_eq!(events.take(100).0.len(), 2 * expected);
        }
        assert!(!events.take(100).1);
    }

    pub fn opened(size: usize) -> Box<Opened> {
        let peer = Peers::new(0, 0).add("unix:".into(), None, None);
        Box::new(Opened {
            method: 0,
            headers: http::HeaderMap::new(),
            headers_held: Arc::new(HeldBytes::new(peer.clone())),
            peer,
            query: None,
            is_json: false,
            deadline: None,
            message: Some(vec![0; size].into()),
            size,
            is_excess: false,
            arrived: None,
        })
    }

    #[test]
    fn large_calls_are_taken_one_at_a_time_after_everything_else() {
        let events = events();
        (1..4).for_each(|id| events.push_opened(id, opened(SMALL_BYTES + 1)));
        events.push_opened(4, opened(SMALL_BYTES));
        events.push_of_stream(5, Event::End);
        let (taken, has_more) = events.take(8);
        assert_eq!(ids(&taken), [4, 5, 1]);
        assert!(has_more);
        events.push_cancelled(2); // Python never sees it
        events.push_cancelled(1);
        assert_eq!(ids(&events.take(8).0), [1, 3]);
        assert!(!events.take(8).1);
    }
}
