//! Cancellation of work that is no longer needed.
//!
//! A thread works under at most one flag. Loops that may run for long check `is_set` every few
//! thousand steps, and then just end. Their partial results are dropped: a flag stays set, and the
//! caller checks it again at its end. The flag belongs to the thread and is not an argument,
//! because the loops are below layers that do not use it otherwise.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

thread_local! {
    static CURRENT: RefCell<Option<Flag>> = const { RefCell::new(None) };
}

/// A flag that is set once, by any thread or when its time is over.
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
        if !self.is_set.load(Relaxed) {
            if self
                .deadline
                .is_none_or(|deadline| Instant::now() < deadline)
            {
                return false;
            }
            self.set();
        }
        true
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

/// Returns whether this thread's work was cancelled.
pub fn is_set() -> bool {
    CURRENT.with_borrow(|flag| flag.as_ref().is_some_and(Flag::is_set))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_sets_itself_when_its_time_is_over() {
        let (over, far) = (
            Flag::after(Some(Duration::ZERO)),
            Flag::after(Some(Duration::MAX)),
        );
        assert!(over.is_set() && over.clone().is_set());
        assert!(!far.is_set() && !Flag::after(None).is_set());
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
