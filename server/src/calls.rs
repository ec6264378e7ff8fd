//! Calls in progress: their events go to Python, and its commands to the pending calls.
//!
//! Python takes events from the queue of `events`. One task of the runtime carries out its
//! `commands`. Neither side blocks the other.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::arrived::{Reading, reading};
use crate::call::{
    Answer, CANCELLED, Closed, Command, Event, Failure, Opened, PREFIX_BYTES, Pairs, Started,
    prefixed,
};
use crate::commands::Commands;
use crate::events::Events;
use crate::guard::Guard;
use crate::messages::Messages;
use crate::outgoing::Outgoing;
use crate::peer::Unsent;
use crate::pending_call::{self, PendingCall};
use crate::reservations::Reservations;

/// An id that no call has.
pub const NO_CALL: u64 = 0;

/// All calls of a transport.
pub struct Calls {
    events: Events,
    pending: Mutex<HashMap<u64, PendingCall>>,
    commands: Commands,
    ids: AtomicU64,
    /// Memory for messages of calls that Python has not admitted.
    pub reservations: Arc<Reservations>,
}

impl Calls {
    /// `wake` is an eventfd, written when the empty queue gets an event.
    pub fn new(wake: File) -> Arc<Self> {
        Arc::new(Calls {
            events: Events::new(wake),
            pending: Mutex::default(),
            commands: Commands::default(),
            ids: AtomicU64::new(1),
            reservations: Arc::default(),
        })
    }

    pub fn push(&self, id: u64, event: Event) {
        self.events.push(id, event);
    }

    /// Tells Python of a connection that was closed.
    pub fn push_closed(&self, closed: Closed) {
        self.push(NO_CALL, Event::Closed(Box::new(closed)));
    }

    /// See `Events`. `flush` must follow, once for several.
    pub fn take(&self, most: usize) -> (Vec<(u64, Event)>, bool) {
        let (events, has_more) = self.events.take(most);
        if events.len() > 1 && events.last().is_some_and(|(_, event)| event.is_large()) {
            // The large one is the last, and must not delay the answers to those before it.
            self.flush();
        } else {
            self.commands.begin_batch();
        }
        (events, has_more)
    }

    /// Carries out the commands since `take`.
    pub fn flush(&self) {
        self.commands.end_batch();
    }

    /// Calls in progress.
    pub fn open(&self) -> usize {
        self.pending.lock().len()
    }

    fn register(self: &Arc<Self>, call: PendingCall) -> Guard {
        let id = self.ids.fetch_add(1, Relaxed);
        self.pending.lock().insert(id, call);
        Guard {
            calls: self.clone(),
            id,
        }
    }

    /// Starts a unary call whose message has been read.
    pub fn unary(
        self: &Arc<Self>,
        opened: Opened,
    ) -> (Guard, oneshot::Receiver<Result<Answer, Failure>>) {
        let (answer, answered) = oneshot::channel();
        let peer = Some(opened.peer.clone());
        let guard = self.register(PendingCall {
            peer,
            answer: Some(answer),
            ..PendingCall::default()
        });
        self.events.push_opened(guard.id, Box::new(opened));
        (guard, answered)
    }

    /// Starts a unary call whose message is read when Python requests it.
    pub fn unread(
        self: &Arc<Self>,
        opened: Opened,
    ) -> (
        Guard,
        oneshot::Receiver<Result<(), Failure>>,
        oneshot::Receiver<Failure>,
    ) {
        let (admission, admitted) = oneshot::channel();
        let (rejection, rejected) = oneshot::channel();
        let peer = Some(opened.peer.clone());
        let guard = self.register(PendingCall {
            peer,
            admission: Some(admission),
            rejection: Some(rejection),
            ..PendingCall::default()
        });
        self.push(guard.id, Event::Opened(Box::new(opened)));
        (guard, admitted, rejected)
    }

    /// Passes on the message of a call that `unread` started.
    pub fn has_read(&self, id: u64, message: Bytes) -> oneshot::Receiver<Result<Answer, Failure>> {
        let (answer, answered) = oneshot::channel();
        if let Some(call) = self.pending.lock().get_mut(&id) {
            call.answer = Some(answer);
            call.rejection = None;
        }
        self.push(id, Event::Message(message));
        answered
    }

    /// Starts a call with a stream of messages and one answer.
    pub fn client_stream(
        self: &Arc<Self>,
        mut opened: Opened,
    ) -> (Guard, oneshot::Receiver<Result<Answer, Failure>>, Reading) {
        let (answer, answered) = oneshot::channel();
        let (reader, reading) = reading(&opened.peer);
        opened.arrived = Some(reader.arrived.clone());
        let peer = Some(opened.peer.clone());
        let guard = self.register(PendingCall {
            peer,
            answer: Some(answer),
            reader: Some(reader),
            ..PendingCall::default()
        });
        self.push(guard.id, Event::Opened(Box::new(opened)));
        (guard, answered, reading)
    }

    /// Starts a call with a stream of answers. A message that was read follows, so that it is freed
    /// before the call ends.
    pub fn stream(
        self: &Arc<Self>,
        mut opened: Opened,
    ) -> (Guard, oneshot::Receiver<Result<Started, Failure>>, Reading) {
        let (start, started) = oneshot::channel();
        let (reader, reading) = reading(&opened.peer);
        opened.arrived = Some(reader.arrived.clone());
        let guard = self.register(PendingCall {
            peer: Some(opened.peer.clone()),
            start: Some(start),
            reader: Some(reader),
            ..PendingCall::default()
        });
        if let Some(call) = self.pending.lock().get_mut(&guard.id) {
            call.messages = Some(Outgoing::new(guard.id, self.clone()));
        }
        let message = opened.message.take();
        self.push(guard.id, Event::Opened(Box::new(opened)));
        if let Some(message) = message {
            self.push(guard.id, Event::Message(message));
            self.push(guard.id, Event::End);
        }
        (guard, started, reading)
    }

    /// Reads the messages of a stream until its call is over, then drops further data.
    pub fn start_reading(self: &Arc<Self>, id: u64, mut messages: Messages, reading: Reading) {
        let calls = self.clone();
        tokio::spawn(async move {
            calls.read(id, &mut messages, reading).await;
            messages.discard().await;
        });
    }

    /// Reads messages until the call is over, a few ahead of Python.
    async fn read<S>(&self, id: u64, messages: &mut S, mut reading: Reading)
    where
        S: Stream<Item = Result<Bytes, Failure>> + Unpin,
    {
        loop {
            let next = async {
                reading.arrived.capacity().await;
                messages.next().await
            };
            let event = tokio::select! {
                biased;
                next = next => match next {
                    Some(Ok(message)) => {
                        reading.arrived.push(message.len());
                        Event::Message(message)
                    }
                    Some(Err(failure)) if failure.code == CANCELLED => Event::Cancelled,
                    Some(Err(failure)) => Event::Broken(failure.code, failure.message),
                    None => Event::End,
                },
                _ = &mut reading.over => return,
            };
            let is_last = !matches!(event, Event::Message(_));
            self.events.push_of_stream(id, event);
            if is_last {
                return;
            }
        }
    }

    /// Sends a command to a call; no effect if the call is over.
    pub fn command(&self, id: u64, command: Command) {
        self.commands.push(id, command);
    }

    /// Sends a message of a stream. Returns whether more may follow at once.
    pub fn send(&self, id: u64, message: &[u8]) -> bool {
        let (peer, may_go_on) = match self.pending.lock().get(&id) {
            Some(PendingCall {
                peer: Some(peer),
                messages: Some(messages),
                ..
            }) => (peer.clone(), messages.count(PREFIX_BYTES + message.len())),
            _ => return true,
        };
        let message = Unsent::new(prefixed(message), peer);
        self.command(id, Command::Send(message));
        may_go_on
    }

    /// Answers a unary call.
    pub fn answer(&self, id: u64, message: &[u8], headers: Pairs, trailers: Pairs) {
        let peer = match self.pending.lock().get(&id) {
            Some(PendingCall {
                peer: Some(peer), ..
            }) => peer.clone(),
            _ => return,
        };
        let message = Unsent::new(prefixed(message), peer);
        self.command(
            id,
            Command::Answer(Answer {
                message,
                headers,
                trailers,
            }),
        );
    }

    /// Ends a call that its HTTP side has dropped, and tells Python unless it is over.
    pub fn end(&self, id: u64) {
        let call = self.pending.lock().remove(&id);
        if let Some(call) = call {
            if call.is_ending {
                self.push(id, Event::Ended);
            } else {
                self.events.push_cancelled(id);
            }
        }
    }

    /// Counts a call that has no valid credentials.
    pub fn count_as_abandoned(&self, id: u64) {
        if let Some(PendingCall {
            peer: Some(peer), ..
        }) = self.pending.lock().get(&id)
        {
            peer.abandon();
        }
    }

    /// Carries out Python's commands; never returns.
    pub async fn hand_out(self: Arc<Self>) {
        loop {
            let commands = self.commands.next().await;
            let mut pending = self.pending.lock();
            for (id, command) in commands {
                pending_call::carry_out(&mut pending, id, command);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::call::INVALID_ARGUMENT;
    use crate::events::tests::opened;
    use crate::settings::{SMALL_BYTES, STREAM_READ_AHEAD_BYTES};

    #[test]
    fn commands_wait_for_flush_unless_a_large_call_would_delay_them() {
        let calls = Calls::new(File::options().write(true).open("/dev/null").unwrap());
        let are_carried_out = || calls.commands.next().now_or_never().is_some();
        let large = || calls.events.push_opened(1, opened(SMALL_BYTES + 1));
        large();
        large();
        for _ in 0..2 {
            assert_eq!(calls.take(8).0.len(), 1);
            calls.command(1, Command::Close);
            assert!(!are_carried_out());
        }
        calls.push(2, Event::Cancelled);
        large();
        assert_eq!(calls.take(8).0.len(), 2);
        assert!(are_carried_out());
        calls.command(2, Command::Close);
        assert!(are_carried_out());
        calls.flush();
        assert!(!are_carried_out());
    }

    #[test]
    fn a_stream_that_its_caller_resets_is_cancelled_and_not_broken() {
        let calls = Calls::new(File::options().write(true).open("/dev/null").unwrap());
        for (code, is_cancelled) in [(CANCELLED, true), (INVALID_ARGUMENT, false)] {
            let mut messages = futures_util::stream::iter([Err(Failure::new(code, "reset"))]);
            let (_reader, reading) = reading(&opened(0).peer);
            assert!(
                calls
                    .read(1, &mut messages, reading)
                    .now_or_never()
                    .is_some()
            );
            let (events, _) = calls.take(8);
            assert_eq!(matches!(events[..], [(1, Event::Cancelled)]), is_cancelled);
        }
    }

    #[test]
    fn a_stream_is_read_ahead_of_python_up_to_a_size() {
        let calls = Calls::new(File::options().write(true).open("/dev/null").unwrap());
        let half = || Ok(Bytes::from_static(&[0; STREAM_READ_AHEAD_BYTES / 2]));
        let mut messages = futures_util::stream::iter((0..5).map(|_| half()));
        let (reader, reading) = reading(&opened(0).peer);
        let mut read = std::pin::pin!(calls.read(1, &mut messages, reading));
        for (processed, expected) in [(0, 2), (1, 1), (2, 2)] {
            reader.arrived.remove(processed);
            assert!(read.as_mut().now_or_never().is_none());
            assert_eq!(calls.take(8).0.len(), expected);
        }
    }
}
