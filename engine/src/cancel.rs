//! Cancellation of work that is no longer needed.
//!
//! A thread works under at most one flag. Loops that may run for long ask `is_set` every few
//! thousand steps and then just end; what they leave behind is thrown away, because a flag that
//! was set stays set and the caller asks once more at its end. The flag belongs
//! to the thread and is no argument: the loops are below layers that have no other use for it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

thread_local! {
    static CURRENT: RefCell<Option<Flag>> = const { RefCell::new(None) };
}

/// Set once, by any thread or by time.
#[derive(Clone, Debug, Default)]
pub struct Flag {
    is_set: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Flag {
    /// A flag that sets itself after a time; `None`, or a time beyond all clocks: it does not.
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

/// The flag that this thread works under: to be handed to threads that help it.
pub fn current() -> Option<Flag> {
    CURRENT.with_borrow(Clone::clone)
}

/// Work under another flag, or under none, from here on.
pub fn work_under(flag: Option<Flag>) {
    CURRENT.set(flag);
}

/// Whether what this thread does is no longer wanted.
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
    fn a_flag_is_the_thread_s_own() {
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
