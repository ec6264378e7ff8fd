//! One call under way: where what Python says of it goes.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::call::{Answer, Command, Failure, Pairs, Started};
use crate::calls::StreamUnsent;
use crate::peer::Peer;

type Start = oneshot::Sender<Result<Started, Failure>>;

/// Where what Python says of a call goes.
#[derive(Default)]
pub struct Slot {
    pub peer: Option<Arc<Peer>>,
    pub admission: Option<oneshot::Sender<Result<(), Failure>>>,
    /// Receives the failure of an admitted call whose message is still being read.
    pub rejection: Option<oneshot::Sender<Failure>>,
    pub answer: Option<oneshot::Sender<Result<Answer, Failure>>>,
    pub start: Option<Start>,
    pub messages: Option<mpsc::UnboundedSender<Result<Bytes, Box<Failure>>>>,
    pub receiver: Option<mpsc::UnboundedReceiver<Result<Bytes, Box<Failure>>>>,
    pub credits: Option<Credits>,
    pub unsent: Option<Arc<StreamUnsent>>,
    /// Python has ended the stream, and HTTP has not sent all of it yet.
    pub is_ending: bool,
}

/// Messages that may be read; no more once the call is over, so that its reader ends.
pub struct Credits(pub Arc<Semaphore>);

impl Drop for Credits {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Do to a call what Python says of it; nothing where it is over.
pub fn carry_out(slots: &mut HashMap<u64, Slot>, id: u64, command: Command) {
    let Some(slot) = slots.get_mut(&id) else {
        return;
    };
    match command {
        Command::Read(count) => match (slot.admission.take(), &slot.credits) {
            (Some(admission), _) => drop(admission.send(Ok(()))),
            (None, Some(credits)) => credits.0.add_permits(count),
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
                let _ = messages.send(Ok(message));
            }
        }
        Command::Close => end(slot),
        Command::Fail(failure) => {
            if let (None, Some(messages)) = (&slot.start, &slot.messages) {
                let _ = messages.send(Err(Box::new(failure)));
                return end(slot);
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

/// End a stream after the messages that it has; `Event::Ended` follows when they are sent.
fn end(slot: &mut Slot) {
    slot.messages = None;
    slot.credits = None;
    slot.is_ending = true;
}

fn start(slot: &mut Slot, headers: Pairs, trailers: Pairs) {
    if let (Some(to), Some(messages), Some(unsent)) =
        (slot.start.take(), slot.receiver.take(), slot.unsent.clone())
    {
        let _ = to.send(Ok(Started {
            headers,
            trailers,
            messages,
            unsent,
        }));
    }
}
