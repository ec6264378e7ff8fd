//! The queue of events of calls: an eventfd wakes Python, which reads many at once.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;

use parking_lot::Mutex;

use crate::call::Event;

/// Events of calls, by the call's number. What comes on open streams has a queue of its own:
/// otherwise one caller's streams, each some messages ahead, would hold up every new call.
pub struct Events {
    queues: Mutex<Queues>,
    wake: File,
}

#[derive(Default)]
struct Queues {
    calls: VecDeque<(u64, Event)>,
    /// In its order for each stream.
    streams: VecDeque<(u64, Event)>,
}

impl Queues {
    fn len(&self) -> usize {
        self.calls.len() + self.streams.len()
    }
}

impl Events {
    /// `wake` gets eight bytes whenever there are events where there were none.
    pub fn new(wake: File) -> Self {
        Events {
            queues: Mutex::default(),
            wake,
        }
    }

    pub fn push(&self, id: u64, event: Event) {
        self.add(|queues| queues.calls.push_back((id, event)));
    }

    /// Push an event of an open stream: it is returned after everything that `push` has added.
    pub fn push_of_stream(&self, id: u64, event: Event) {
        self.add(|queues| queues.streams.push_back((id, event)));
    }

    fn add(&self, add: impl FnOnce(&mut Queues)) {
        let was_empty = {
            let mut queues = self.queues.lock();
            add(&mut queues);
            queues.len() == 1
        };
        if was_empty {
            // Full: Python was woken already and has not looked yet.
            let _ = (&self.wake).write(&1u64.to_ne_bytes());
        }
    }

    /// At most `most` events of calls, then those of streams that fit beside them, at least a quarter
    /// of `most`; and whether there are more.
    pub fn take(&self, most: usize) -> (Vec<(u64, Event)>, bool) {
        let mut queues = self.queues.lock();
        let calls = queues.calls.len().min(most);
        // Calls without an end must not stop the streams.
        let streams = queues.streams.len().min((most - calls).max(most / 4));
        let mut taken: Vec<_> = queues.calls.drain(..calls).collect();
        taken.extend(queues.streams.drain(..streams));
        (taken, queues.len() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
