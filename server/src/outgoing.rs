//! The queue of one stream's answers to HTTP.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::call::{Event, Failure};
use crate::calls::Calls;
use crate::peer::Unsent;
use crate::settings::STREAM_UNSENT_BYTES;

/// Answers that HTTP has not taken yet, and the stream's end. Most streams are idle: a channel
/// would hold memory for 32 messages of each.
pub struct Outgoing {
    id: u64,
    calls: Arc<Calls>,
    bytes: AtomicUsize,
    is_paused: AtomicBool,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Unsent>,
    end: Option<Result<(), Box<Failure>>>,
    waker: Option<Waker>,
}

impl Outgoing {
    pub fn new(id: u64, calls: Arc<Calls>) -> Arc<Self> {
        Arc::new(Outgoing {
            id,
            calls,
            bytes: AtomicUsize::new(0),
            is_paused: AtomicBool::new(false),
            queue: Mutex::default(),
        })
    }

    /// Counts a message before it is pushed. Returns whether more may follow at once.
    pub fn count(&self, size: usize) -> bool {
        let waiting = self.bytes.fetch_add(size, Relaxed) + size;
        let may_go_on = waiting < STREAM_UNSENT_BYTES;
        if !may_go_on {
            self.is_paused.store(true, Relaxed);
        }
        may_go_on
    }

    /// Adds a counted message.
    pub fn push(&self, message: Unsent) {
        self.change(|queue| queue.messages.push_back(message));
    }

    /// Ends the stream after its queued messages.
    pub fn end(&self, end: Result<(), Box<Failure>>) {
        self.change(|queue| queue.end = Some(end));
    }

    fn change(&self, change: impl FnOnce(&mut Queue)) {
        let waker = {
            let mut queue = self.queue.lock();
            change(&mut queue);
            queue.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The next message; `None` after a successful end.
    pub fn poll_next(&self, context: &Context<'_>) -> Poll<Option<Result<Unsent, Failure>>> {
        let message = {
            let mut queue = self.queue.lock();
            match (queue.messages.pop_front(), queue.end.take()) {
                (Some(message), end) => {
                    queue.end = end;
                    message
                }
                (None, Some(Ok(()))) => return Poll::Ready(None),
                (None, Some(Err(failure))) => return Poll::Ready(Some(Err(*failure))),
                (None, None) => {
                    queue.waker = Some(context.waker().clone());
                    return Poll::Pending;
                }
            }
        };
        let size = message.as_ref().len();
        let before = self.bytes.fetch_sub(size, Relaxed);
        if before - size < STREAM_UNSENT_BYTES / 2 && self.is_paused.swap(false, Relaxed) {
            self.calls.push(self.id, Event::Writable);
        }
        Poll::Ready(Some(Ok(message)))
    }
}
