//! Work on one large input, shared out over threads.

pub mod chunks;

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::cancel;

/// Inputs of fewer bytes are worked on by the thread that asks: starting others, and joining what
/// they did, costs some 6 % more CPU time for a text of this size, and the more the smaller it is.
const SHARED_FROM: usize = 512 * 1024;

/// The least that a thread takes at once.
const LEAST_PART: usize = 64 * 1024;

/// The most of it, so that no thread waits long for the one that took the last.
const MOST_PART: usize = 1024 * 1024;

/// How the work on one input is shared out.
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    threads: usize,
    from: usize,
    least_chunk: usize,
}

impl Sharing {
    /// Up to `threads` threads, the caller's among them; 0 for one for each core that the
    /// process may use.
    pub fn among(threads: usize) -> Self {
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        Sharing {
            threads: if threads == 0 { cores() } else { threads },
            from: SHARED_FROM,
            least_chunk: LEAST_PART,
        }
    }

    /// For inputs from `from` bytes on, in chunks of at least `least_chunk`: so that a test meets
    /// what only large inputs meet otherwise.
    #[cfg(test)]
    pub fn of_small(threads: usize, from: usize, least_chunk: usize) -> Self {
        Sharing {
            threads,
            from,
            least_chunk,
        }
    }

    /// How many threads an input of this many bytes is worth.
    pub fn threads_for(self, bytes: usize) -> usize {
        if self.threads == 1 || bytes < self.from {
            return 1;
        }
        self.threads.min(bytes / self.least_chunk).max(1)
    }

    /// How many bytes a chunk should have: a few chunks for each thread, as some take longer.
    pub fn part_for(self, bytes: usize) -> usize {
        (bytes / (4 * self.threads)).clamp(self.least_chunk, MOST_PART.max(self.least_chunk))
    }
}

/// What `work` makes of each item, in order, on up to `threads` threads: whichever is free takes
/// the next item. Fewer where the system refuses to start more.
pub fn map<T: Send, R: Send>(
    threads: usize,
    items: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let items = Mutex::new(items.enumerate());
    // A panic elsewhere ends all of it soon; the items are as good as before.
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
    fn results_are_in_the_order_of_the_items() {
        for threads in 1..5 {
            let squares = map(threads, 0..1000_u64, |n| n * n);
            assert!(squares.into_iter().eq((0..1000).map(|n| n * n)));
        }
        assert!(map(3, 0..0, |n: u64| n).is_empty());
    }

    #[test]
    fn as_many_threads_work_as_were_asked_for() {
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
    fn small_inputs_are_worked_on_by_the_caller() {
        let sharing = Sharing::among(8);
        assert_eq!(sharing.threads_for(SHARED_FROM - 1), 1);
        assert_eq!(sharing.threads_for(SHARED_FROM), 8);
        assert_eq!(Sharing::among(1).threads_for(1 << 40), 1);
    }
}
