//! Cancellation of work that is no longer needed.
//!
//! A thread works under at most one flag. Loops that may run for long ask `is_set` every few
//! thousand steps and then just end; what they leave behind is thrown away, because a flag that
//! was set stays set and the caller asks once more at its end. The flag belongs
//! to the thread and is no argument: the loops are below layers that have no other use for it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

thread_local! {
    static CURRENT: RefCell<Option<Flag>> = const { RefCell::new(None) };
}

/// Set once, by any thread.
#[derive(Clone, Debug, Default)]
pub struct Flag(Arc<AtomicBool>);

impl Flag {
    pub fn set(&self) {
        self.0.store(true, Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
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
