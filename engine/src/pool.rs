//! Working room for encoding, kept between calls and never shared by two at once.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;

use crate::cache::Cache;
use crate::merge::Merger;
use crate::recent::Recent;
use crate::split::Ends;

/// What one call of encode works with.
pub struct Room {
    pub ends: Ends,
    pub merger: Merger,
    pub cache: Cache,
    pub recent: Recent,
}

/// Something to work with that has a cache.
pub trait Workroom {
    /// One whose cache takes at most `cache_bytes`.
    fn new(cache_bytes: usize) -> Self;
}

impl Workroom for Room {
    fn new(cache_bytes: usize) -> Self {
        let recent = Recent::new(cache_bytes / 4);
        Room {
            ends: Ends::new(),
            merger: Merger::default(),
            cache: Cache::new(cache_bytes - recent.most_bytes()),
            recent,
        }
    }
}

/// A few rooms, each behind a lock that nobody waits for: a caller takes a free one, and
/// where none is free works without a cache.
pub struct Pool<R = Room> {
    rooms: Vec<Mutex<Option<Box<R>>>>,
    cache_bytes: usize,
}

impl<R: Workroom> Pool<R> {
    /// Rooms whose caches take at most `cache_bytes` together.
    pub fn new(cache_bytes: usize) -> Self {
        let rooms = 1 + thread::available_parallelism().map_or(1, usize::from);
        Pool {
            rooms: (0..rooms).map(|_| Mutex::new(None)).collect(),
            cache_bytes: cache_bytes / rooms,
        }
    }

    /// Work in a room.
    pub fn with<T>(&self, work: impl FnOnce(&mut R) -> T) -> T {
        match self.rooms.iter().find_map(try_lock) {
            Some(mut room) => {
                let bytes = self.cache_bytes;
                work(room.get_or_insert_with(|| Box::new(R::new(bytes))))
            }
            None => work(&mut R::new(0)),
        }
    }
}

fn try_lock<R>(room: &Mutex<Option<Box<R>>>) -> Option<MutexGuard<'_, Option<Box<R>>>> {
    match room.try_lock() {
        Ok(room) => Some(room),
        Err(TryLockError::WouldBlock) => None,
        // A panic left it half-way: begin with a new one.
        Err(TryLockError::Poisoned(poisoned)) => {
            room.clear_poison();
            let mut guard = poisoned.into_inner();
            *guard = None;
            Some(guard)
        }
    }
}
