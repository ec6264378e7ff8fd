//! Tables in huge pages. Making one costs less than making the small pages that a text would touch,
//! and lookups wait less for the translation of addresses.

use std::alloc::{Layout, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;
#[cfg(target_os = "linux")]
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use memmap2::MmapMut;

/// Size of a huge page in bytes, and the least of a table in them.
const PAGE: usize = 2 << 20;

/// A slice of a fixed length. Where the system has no huge pages, it is in small ones.
#[derive(Debug)]
pub struct Huge<T> {
    start: NonNull<T>,
    len: usize,
    /// The number of forks before it was made.
    forks: usize,
    _memory: Memory<T>,
}

/// What a table is in. Large ones are mapped: in the heap they would leave gaps of pages that are
/// slow at first use, which a list of new text pays for (1.07 of the time).
#[derive(Debug)]
enum Memory<T> {
    Heap { _items: Vec<T> },
    Mapped { _pages: MmapMut },
}

impl<T: Copy> Huge<T> {
    /// Makes a slice of `len` times the item.
    pub fn filled(len: usize, item: T) -> Self {
        Huge::try_filled(len, item).unwrap_or_else(|| handle_alloc_error(Layout::new::<T>()))
    }

    /// Makes a slice of `len` times the item; None if there is not enough memory.
    pub fn try_filled(len: usize, item: T) -> Option<Self> {
        let size = Layout::array::<T>(len).ok()?.size();
        if size < PAGE || cfg!(miri) {
            let mut items = Vec::new();
            items.try_reserve_exact(len).ok()?;
            items.resize(len, item);
            return Some(Huge {
                start: NonNull::new(items.as_mut_ptr())?,
                len,
                forks: forks(),
                _memory: Memory::Heap { _items: items },
            });
        }
        let size = size.next_multiple_of(PAGE);
        // Small pages are at any address.
        let mut pages = MmapMut::map_anon(size.checked_add(PAGE)?).ok()?;
        let offset = pages.as_ptr().align_offset(PAGE);
        #[cfg(target_os = "linux")]
        // Without huge pages, the advice fails.
        let _ = pages.advise_range(memmap2::Advice::HugePage, offset, size);
        let start = NonNull::new(pages[offset..].as_mut_ptr())?.cast();
        for at in 0..len {
            // SAFETY: there is memory for `len` items from `start` on.
            unsafe { start.add(at).write(item) };
        }
        Some(Huge {
            start,
            len,
            forks: forks(),
            _memory: Memory::Mapped { _pages: pages },
        })
    }

    pub fn as_ptr(&self) -> *mut T {
        self.start.as_ptr()
    }

    /// Copies the slice if this process was forked since it was made. Otherwise the first write to
    /// each small part of a huge page would copy that part alone, and leave small pages.
    pub fn unshare(&mut self) {
        if self.forks != forks() {
            self.forks = forks();
            if let Some(mut copy) = Huge::try_filled(self.len, self[0]) {
                copy.copy_from_slice(self);
                *self = copy;
            }
        }
    }
}

/// Returns the number of forks that led from the first process that called this to this one.
pub fn forks() -> usize {
    static FORKS: AtomicUsize = AtomicUsize::new(0);
    #[cfg(target_os = "linux")]
    {
        static HANDLED: Once = Once::new();
        extern "C" fn after_fork() {
            FORKS.fetch_add(1, Relaxed);
        }
        // SAFETY: `after_fork` only adds to a number.
        HANDLED.call_once(|| _ = unsafe { libc::pthread_atfork(None, None, Some(after_fork)) });
    }
    FORKS.load(Relaxed)
}

impl<T: Copy> Deref for Huge<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `try_filled` has written these items.
        unsafe { slice::from_raw_parts(self.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for Huge<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is unique.
        unsafe { slice::from_raw_parts_mut(self.as_ptr(), self.len) }
    }
}

// SAFETY: it owns its items, as a vector does.
unsafe impl<T: Send> Send for Huge<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Huge<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    type Item = [u64; 32];

    #[test]
    fn large_tables_are_aligned_and_all_keep_their_items() {
        let large = PAGE / size_of::<Item>();
        for len in [1, large - 1, large, 3 * large + 5] {
            let mut table = Huge::<Item>::filled(len, [0; 32]);
            assert_eq!(table.len(), len);
            assert!(table.iter().all(|&item| item == [0; 32]));
            if cfg!(all(target_os = "linux", not(miri))) && len >= large {
                assert!(table.as_ptr().addr().is_multiple_of(PAGE));
            }
            table.fill([7; 32]);
            assert!(table.iter().all(|&item| item == [7; 32]));
        }
    }

    #[test]
    fn too_large_a_table_is_rejected() {
        for len in [usize::MAX, usize::MAX / 256, usize::MAX / 512] {
            assert!(Huge::<Item>::try_filled(len, [0; 32]).is_none());
        }
    }
}
