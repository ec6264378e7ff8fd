//! Ends a call when its HTTP side is dropped.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep_until;

use crate::call::{Event, Failure, INVALID_ARGUMENT, RESOURCE_EXHAUSTED};
use crate::calls::Calls;

/// Tells Python that a call was dropped, unless it is over.
pub struct Guard {
    pub calls: Arc<Calls>,
    pub id: u64,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.calls.end(self.id);
    }
}

impl Guard {
    /// Tells Python that the message of a call that `Calls::unread` started cannot be read. Returns
    /// Python's failure, received by `rejected`; `failure` if Python has none.
    pub async fn report(&self, rejected: oneshot::Receiver<Failure>, failure: Failure) -> Failure {
        let is_callers = matches!(failure.code, INVALID_ARGUMENT | RESOURCE_EXHAUSTED);
        if !is_callers || rejected.is_terminated() {
            return failure;
        }
        let broken = Event::Broken(failure.code, failure.message.clone());
        self.calls.push(self.id, broken);
        rejected.await.unwrap_or(failure)
    }

    /// Drops it at the deadline, even if HTTP requests no answer because the caller reads none.
    pub fn until(self, deadline: Option<Instant>) -> Guarded {
        let Some(deadline) = deadline else {
            return Guarded::Forever(self);
        };
        Guarded::Until(tokio::spawn(async move {
            let _guard = self;
            sleep_until(deadline.into()).await;
        }))
    }
}

/// A guard that is dropped with this, or earlier.
pub enum Guarded {
    Forever(Guard),
    Until(JoinHandle<()>),
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Guarded::Until(timer) = self {
            timer.abort();
        }
    }
}
