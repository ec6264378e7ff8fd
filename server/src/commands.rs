//! The queue of Python's commands to calls.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::call::Command;

/// Maximum commands that are carried out together: more of a batch would delay the first ones.
const MAX_TOGETHER: usize = 64;

/// Commands, each with the id of its call, that are not carried out yet.
///
/// Those of a batch wait for its end: waking the transport's thread for each one would cost as much
/// as half of a small call.
#[derive(Default)]
pub struct Commands {
    waiting: Mutex<Vec<(u64, Command)>>,
    wake: Notify,
    is_batch: AtomicBool,
}

impl Commands {
    pub fn begin_batch(&self) {
        self.is_batch.store(true, Relaxed);
    }

    /// Ends the batch, if there is one.
    pub fn end_batch(&self) {
        if self.is_batch.swap(false, Relaxed) && !self.waiting.lock().is_empty() {
            self.wake.notify_one();
        }
    }

    pub fn push(&self, id: u64, command: Command) {
        let wakes = {
            let mut waiting = self.waiting.lock();
            waiting.push((id, command));
            let is_batch = self.is_batch.load(Relaxed);
            waiting.len() == if is_batch { MAX_TOGETHER } else { 1 }
        };
        if wakes {
            self.wake.notify_one();
        }
    }

    /// Takes the commands to carry out now, once there are any.
    pub async fn next(&self) -> Vec<(u64, Command)> {
        self.wake.notified().await;
        std::mem::take(&mut *self.waiting.lock())
    }
}
