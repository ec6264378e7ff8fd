//! Parallel work on one large input.

pub mod chunks;

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::cancel;

/// Minimum size in bytes of an input that is shared between threads. At this size, starting and
/// joining threads costs some 6 % more CPU time; for smaller inputs, more.
const SHARED_FROM: usize = 512 * 1024;

/// Minimum size of a chunk, in bytes.
const LEAST_PART: usize = 64 * 1024;

/// Maximum size of a chunk, in bytes, which bounds the wait for the last chunk.
const MAX_PART: usize = 1024 * 1024;

/// Settings for sharing one input between threads.
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    threads: usize,
    from: usize,
    least_chunk: usize,
}

impl Sharing {
    /// Uses up to `threads` threads, including the caller's; 0 for one per core that the process
    /// may use.
    pub fn among(threads: usize) -> Self {
        Sharing {
            threads: cores_or(threads),
            from: SHARED_FROM,
            least_chunk: LEAST_PART,
        }
    }

    /// Returns the number of threads to use for an input of `bytes` bytes.
    pub fn threads_for(self, bytes: usize) -> usize {
        if self.threads == 1 || bytes < self.from {
            return 1;
        }
        self.threads.min(bytes / self.least_chunk).max(1)
    }

    /// Returns the size of chunks, in bytes: a few chunks for each thread, because some take
    /// longer.
    pub fn part_for(self, bytes: usize) -> usize {
        (bytes / (4 * self.threads)).clamp(self.least_chunk, MAX_PART.max(self.least_chunk))
    }
}

/// Returns `threads`, or the number of cores that the process may use if it is 0.
pub fn cores_or(threads: usize) -> usize {
    match threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        some => some,
    }
}

/// Applies `work` to each item on up to `threads` threads, and returns the results in order. An
/// idle thread takes the next item. Uses fewer threads if the system refuses to start more.
pub fn map<T: Send, R: Send>(
    threads: usize,
    items: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let items = Mutex::new(items.enumerate());
    // A panic in another thread soon ends the whole call; the iterator itself is intact.
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        let mut done = Vec::new();
        while let Some((index, item)) = next() {
            done.push((index, work(item)));
        }
        done
    };
    let flag = cancel::current();
    let help = || {
        cancel::work_under(flag.clone());
        run()
    };
    let mut all = thread::scope(|scope| {
        let start = |_| thread::Builder::new().spawn_scoped(scope, help).ok();
        let others: Vec<_> = (1..threads).map_while(start).collect();
        let mut all = run();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|&(index, _)| index);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::panic::catch_unwind;
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn the_requested_number_of_threads_work() {
        let all_here = Barrier::new(3);
        let threads = map(3, 0..3, |_| {
            all_here.wait();
            thread::current().id()
        });
        assert_eq!(threads.into_iter().collect::<HashSet<_>>().len(), 3);
    }

    #[test]
    fn a_panic_on_any_thread_reaches_the_caller() {
        let caught = catch_unwind(|| map(2, 0..100, |n| assert!(n != 50, "fifty")));
        let panic = caught.expect_err("it panicked");
        assert_eq!(panic.downcast_ref(), Some(&"fifty"));
    }

    #[test]
    fn small_inputs_stay_on_the_calling_thread() {
        let sharing = Sharing::among(8);
        assert_eq!(sharing.threads_for(SHARED_FROM - 1), 1);
        assert_eq!(sharing.threads_for(SHARED_FROM), 8);
        assert_eq!(Sharing::among(1).threads_for(1 << 40), 1);
    }
}
