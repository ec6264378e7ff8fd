//! Scratch memory for encoding, kept between calls and never shared by two at once.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;

use crate::cache::Cache;
use crate::cache::lookup::Lookup;
use crate::cache::recent::Recent;
use crate::merge::Merger;
use crate::split::{BATCH, Ends};
use crate::vocabulary::Vocabulary;

/// What one call of encode works with.
pub struct Scratch {
    pub ends: Ends,
    pub merger: Merger,
    pub cache: Cache,
    pub recent: Recent,
    /// How many short pre-tokens of the last batch were not recent.
    pub missed: usize,
}

impl Scratch {
    /// The ends of the pre-tokens that were found, and what looks them up.
    #[inline(always)]
    pub fn lookup<'a>(&'a mut self, vocabulary: &'a Vocabulary) -> (&'a [usize], Lookup<'a>) {
        let lookup = Lookup {
            vocabulary,
            merger: &mut self.merger,
            cache: &mut self.cache,
            recent: &mut self.recent,
            missed: &mut self.missed,
        };
        (self.ends.as_slice(), lookup)
    }
}

/// Scratch memory that has a cache.
pub trait NewScratch {
    /// One whose cache takes at most `cache_bytes`.
    fn new(cache_bytes: usize) -> Self;
}

impl NewScratch for Scratch {
    fn new(cache_bytes: usize) -> Self {
        let recent = Recent::new(cache_bytes / 4);
        Scratch {
            ends: Ends::new(),
            merger: Merger::default(),
            cache: Cache::new(cache_bytes - recent.most_bytes()),
            recent,
            missed: usize::MAX / BATCH,
        }
    }
}

/// Scratch memory for as many calls at once as there are processors, and one more. A call takes
/// what is free, without waiting; if none is free, it works without a cache.
pub struct Pool<R = Scratch> {
    scratches: Vec<Mutex<Option<Box<R>>>>,
    cache_bytes: usize,
}

impl<R: NewScratch> Pool<R> {
    /// A pool whose caches take at most `cache_bytes` together.
    pub fn new(cache_bytes: usize) -> Self {
        let scratches = 1 + thread::available_parallelism().map_or(1, usize::from);
        Pool {
            scratches: (0..scratches).map(|_| Mutex::new(None)).collect(),
            cache_bytes: cache_bytes / scratches,
        }
    }

    /// Run `work` with scratch memory.
    pub fn with<T>(&self, work: impl FnOnce(&mut R) -> T) -> T {
        match self.scratches.iter().find_map(try_lock) {
            Some(mut scratch) => {
                let bytes = self.cache_bytes;
                work(scratch.get_or_insert_with(|| Box::new(R::new(bytes))))
            }
            None => work(&mut R::new(0)),
        }
    }
}

fn try_lock<R>(scratch: &Mutex<Option<Box<R>>>) -> Option<MutexGuard<'_, Option<Box<R>>>> {
    match scratch.try_lock() {
        Ok(scratch) => Some(scratch),
        Err(TryLockError::WouldBlock) => None,
        // A panic left it half-way: begin with a new one.
        Err(TryLockError::Poisoned(poisoned)) => {
            scratch.clear_poison();
            let mut guard = poisoned.into_inner();
            *guard = None;
            Some(guard)
        }
    }
}
