//! Scratch memory for encoding. It is kept between calls and used by one call at a time.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;

use crate::cache::Cache;
use crate::cache::lookup::Lookup;
use crate::cache::recent::Recent;
use crate::cache::segments::Seen;
use crate::cancel;
use crate::merge::Merger;
use crate::output::Ids;
use crate::split::Ends;
use crate::vocabulary::Vocabulary;
use crate::vocabulary::rank_table::RankTable;

/// The scratch memory of one call.
pub struct Scratch {
    pub ends: Ends,
    pub merger: Merger,
    pub cache: Cache,
    pub recent: Recent,
    pub seen: Seen,
    pub ids: Ids,
    /// Bytes that were encoded since `is_cancelled` last checked the flag.
    pub unchecked: usize,
}

/// Bytes between two checks of the flag, which reads the clock.
const CHECK_EVERY: usize = 4096;

impl Scratch {
    /// Makes scratch memory with a cache of at most `cache_bytes` bytes.
    pub fn new(cache_bytes: usize, table: &RankTable) -> Self {
        let mut recent = Recent::new(cache_bytes / 4);
        recent.fill(table);
        Scratch {
            ends: Ends::new(),
            merger: Merger::default(),
            cache: Cache::new(cache_bytes.saturating_sub(recent.bytes())),
            recent,
            seen: Seen::default(),
            ids: Ids::default(),
            unchecked: 0,
        }
    }

    /// Returns whether this thread's work was cancelled, as far as it was checked.
    pub fn is_cancelled(&mut self) -> bool {
        let is_set = self.unchecked >= CHECK_EVERY && cancel::is_set();
        if !is_set {
            self.unchecked %= CHECK_EVERY;
        }
        is_set
    }

    /// Returns the ends of the pre-tokens found last, and the lookup for them.
    #[inline(always)]
    pub fn lookup<'a>(&'a mut self, vocabulary: &'a Vocabulary) -> (&'a [usize], Lookup<'a>) {
        self.recent.unshare();
        let lookup = Lookup {
            vocabulary,
            merger: &mut self.merger,
            cache: &mut self.cache,
            recent: &mut self.recent,
            seen: &mut self.seen,
            ids: &mut self.ids,
        };
        (self.ends.as_slice(), lookup)
    }
}

/// Scratch memory for one call per processor, and one more. A call takes a free one without
/// waiting. If none is free, the call works without a cache.
pub struct Pool<R = Scratch> {
    scratches: Vec<Mutex<Option<Box<R>>>>,
    cache_bytes: usize,
    make: Box<dyn Fn(usize) -> R + Send + Sync>,
}

impl<R> Pool<R> {
    /// Makes a pool whose caches together use at most `cache_bytes` bytes. `make` makes scratch
    /// memory from the bytes of its cache.
    pub fn new(cache_bytes: usize, make: impl Fn(usize) -> R + Send + Sync + 'static) -> Self {
        let scratches = 1 + thread::available_parallelism().map_or(1, usize::from);
        Pool {
            scratches: (0..scratches).map(|_| Mutex::new(None)).collect(),
            cache_bytes: cache_bytes / scratches,
            make: Box::new(make),
        }
    }

    /// Runs `work` with scratch memory.
    pub fn with<T>(&self, work: impl FnOnce(&mut R) -> T) -> T {
        match self.scratches.iter().find_map(try_lock) {
            Some(mut scratch) => {
                work(scratch.get_or_insert_with(|| Box::new((self.make)(self.cache_bytes))))
            }
            None => work(&mut (self.make)(0)),
        }
    }
}

fn try_lock<R>(scratch: &Mutex<Option<Box<R>>>) -> Option<MutexGuard<'_, Option<Box<R>>>> {
    match scratch.try_lock() {
        Ok(scratch) => Some(scratch),
        Err(TryLockError::WouldBlock) => None,
        // A panic left it in an invalid state, so it is replaced.
        Err(TryLockError::Poisoned(poisoned)) => {
            scratch.clear_poison();
            let mut guard = poisoned.into_inner();
            *guard = None;
            Some(guard)
        }
    }
}
