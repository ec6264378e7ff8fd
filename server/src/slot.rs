//! One call in progress: it receives Python's commands.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::arrived::Reader;
use crate::call::{Answer, Command, Failure, Pairs, Started};
use crate::outgoing::Outgoing;
use crate::peer::Peer;

type Start = oneshot::Sender<Result<Started, Failure>>;

/// The receiver of Python's commands for one call.
#[derive(Default)]
pub struct Slot {
    pub peer: Option<Arc<Peer>>,
    pub admission: Option<oneshot::Sender<Result<(), Failure>>>,
    /// Receives the failure of an admitted call whose message is still being read.
    pub rejection: Option<oneshot::Sender<Failure>>,
    pub answer: Option<oneshot::Sender<Result<Answer, Failure>>>,
    pub start: Option<Start>,
    pub messages: Option<Arc<Outgoing>>,
    pub reader: Option<Reader>,
    /// Python has ended the stream, and HTTP has not sent all of it yet.
    pub is_ending: bool,
}

/// Applies a command to a call; no effect if the call is over.
pub fn carry_out(slots: &mut HashMap<u64, Slot>, id: u64, command: Command) {
    let Some(slot) = slots.get_mut(&id) else {
        return;
    };
    match command {
        Command::Read(count) => match (slot.admission.take(), &slot.reader) {
            (Some(admission), _) => drop(admission.send(Ok(()))),
            (None, Some(reader)) => reader.arrived.remove(count),
            (None, None) => {}
        },
        Command::Answer(answer) => {
            if let Some(Slot {
                answer: Some(to), ..
            }) = slots.remove(&id)
            {
                let _ = to.send(Ok(answer));
            }
        }
        Command::Start(headers, trailers) => start(slot, headers, trailers),
        Command::Send(message) => {
            if let Some(messages) = &slot.messages {
                messages.push(message);
            }
        }
        Command::Close => end(slot, Ok(())),
        Command::Fail(failure) => {
            if slot.start.is_none() && slot.messages.is_some() {
                return end(slot, Err(Box::new(failure)));
            }
            let Some(slot) = slots.remove(&id) else {
                return;
            };
            if let Some(admission) = slot.admission {
                let _ = admission.send(Err(failure));
            } else if let Some(answer) = slot.answer {
                let _ = answer.send(Err(failure));
            } else if let Some(start) = slot.start {
                let _ = start.send(Err(failure));
            } else if let Some(rejection) = slot.rejection {
                let _ = rejection.send(failure);
            }
        }
    }
}

/// Ends a stream after its queued messages. `Event::Ended` follows when they are sent.
fn end(slot: &mut Slot, end: Result<(), Box<Failure>>) {
    if let Some(messages) = slot.messages.take() {
        messages.end(end);
    }
    slot.reader = None;
    slot.is_ending = true;
}

fn start(slot: &mut Slot, headers: Pairs, trailers: Pairs) {
    if let (Some(to), Some(messages)) = (slot.start.take(), slot.messages.clone()) {
        let _ = to.send(Ok(Started {
            headers,
            trailers,
            messages,
        }));
    }
}
