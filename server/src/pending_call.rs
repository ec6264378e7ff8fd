//! One pending call: it receives Python's commands.

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
pub struct PendingCall {
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
pub fn carry_out(pending: &mut HashMap<u64, PendingCall>, id: u64, command: Command) {
    let Some(call) = pending.get_mut(&id) else {
        return;
    };
    match command {
        Command::Read(count) => match (call.admission.take(), &call.reader) {
            (Some(admission), _) => drop(admission.send(Ok(()))),
            (None, Some(reader)) => reader.arrived.remove(count),
            (None, None) => {}
        },
        Command::Answer(answer) => {
            if let Some(PendingCall {
                answer: Some(to), ..
            }) = pending.remove(&id)
            {
                let _ = to.send(Ok(answer));
            }
        }
        Command::Start(headers, trailers) => start(call, headers, trailers),
        Command::Send(message) => {
            if let Some(messages) = &call.messages {
                messages.push(message);
            }
        }
        Command::Close => end(call, Ok(())),
        Command::Fail(failure) => {
            if call.start.is_none() && call.messages.is_some() {
                return end(call, Err(Box::new(failure)));
            }
            let Some(call) = pending.remove(&id) else {
                return;
            };
            if let Some(admission) = call.admission {
                let _ = admission.send(Err(failure));
            } else if let Some(answer) = call.answer {
                let _ = answer.send(Err(failure));
            } else if let Some(start) = call.start {
                let _ = start.send(Err(failure));
            } else if let Some(rejection) = call.rejection {
                let _ = rejection.send(failure);
            }
        }
    }
}

/// Ends a stream after its queued messages. `Event::Ended` follows when they are sent.
fn end(call: &mut PendingCall, end: Result<(), Box<Failure>>) {
    if let Some(messages) = call.messages.take() {
        messages.end(end);
    }
    call.reader = None;
    call.is_ending = true;
}

fn start(call: &mut PendingCall, headers: Pairs, trailers: Pairs) {
    if let (Some(to), Some(messages)) = (call.start.take(), call.messages.clone()) {
        let _ = to.send(Ok(Started {
            headers,
            trailers,
            messages,
        }));
    }
}
