//! Cancellation of work that is no longer needed.
//!
//! A thread works under at most one flag. Loops that may run for long check `is_set` every few
//! thousand steps, and then just end. Their partial results are dropped: a flag stays set, and the
//! caller checks it again at its end. The flag belongs to the thread and is not an argument,
//! because the loops are below layers that do not use it otherwise.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const YIELD_EVERY: Duration = Duration::from_micros(200);

thread_local! {
    static CURRENT: RefCell<Option<Flag>> = const { RefCell::new(None) };
    /// Time of the last yield; `None` if the thread must not yield.
    static YIELDED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A flag that is set once, by any thread or by its deadline.
#[derive(Clone, Debug, Default)]
pub struct Flag {
    is_set: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Flag {
    /// Makes a flag that sets itself after `most`. It does not if that is `None`, or later than the
    /// clock can represent.
    pub fn after(most: Option<Duration>) -> Self {
        Flag {
            is_set: Arc::default(),
            deadline: most.and_then(|most| Instant::now().checked_add(most)),
        }
    }

    pub fn set(&self) {
        self.is_set.store(true, Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.is_set.load(Relaxed) || self.deadline.is_some_and(|it| Instant::now() >= it)
    }
}

/// Returns this thread's flag, to pass on to threads that help it.
pub fn current() -> Option<Flag> {
    CURRENT.with_borrow(Clone::clone)
}

/// Sets or removes this thread's flag.
pub fn work_under(flag: Option<Flag>) {
    CURRENT.set(flag);
}

/// Runs work that yields its core at each `YIELD_EVERY`, if its flag has no time limit. Otherwise a
/// thread that shares the core may wait for a whole time slice: milliseconds.
pub fn yielding<T>(work: impl FnOnce() -> T) -> T {
    YIELDED.set(Some(Instant::now()));
    let done = work();
    YIELDED.set(None);
    done
}

/// Returns whether this thread's work was cancelled.
pub fn is_set() -> bool {
    CURRENT.with_borrow(|flag| {
        let Some(flag) = flag else { return false };
        let is_due = |at: Instant| at.elapsed() >= YIELD_EVERY;
        if flag.deadline.is_none() && YIELDED.get().is_some_and(is_due) {
            std::thread::yield_now();
            YIELDED.set(Some(Instant::now()));
        }
        flag.is_set()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_sets_itself_when_its_time_is_over() {
        assert!(Flag::after(Some(Duration::ZERO)).is_set());
        assert!(!Flag::after(Some(Duration::MAX)).is_set() && !Flag::after(None).is_set());
    }

    #[test]
    fn each_thread_has_its_own_flag() {
        let flag = Flag::default();
        assert!(!is_set());
        work_under(Some(flag.clone()));
        assert!(!is_set());
        flag.set();
        assert!(is_set());
        let helper = current();
        std::thread::spawn(move || {
            assert!(!is_set());
            work_under(helper);
            assert!(is_set());
        })
        .join()
        .expect("the helper is well");
        work_under(None);
        assert!(!is_set());
    }
}
