//! Tables in huge pages. Making one costs less than making the small pages that a text would touch,
//! and lookups wait less for the translation of addresses.

use std::alloc::{Layout, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

use mapping::Mapping;

/// Size of a huge page in bytes, and the least of a table in them.
const PAGE: usize = 2 << 20;

/// A slice of a fixed length. Where the system has no huge pages, or for a short slice, it is in
/// ordinary memory.
#[derive(Debug)]
pub struct Huge<T> {
    start: NonNull<T>,
    len: usize,
    /// The memory that `start` points into.
    _owner: Result<Mapping, Vec<T>>,
}

impl<T: Copy + Default> Huge<T> {
    /// Makes a slice of default items.
    pub fn filled(len: usize) -> Self {
        Huge::try_filled(len).unwrap_or_else(|| handle_alloc_error(Layout::new::<T>()))
    }

    /// Makes a slice of default items; None if there is not enough memory.
    pub fn try_filled(len: usize) -> Option<Self> {
        let bytes = size_of::<T>().checked_mul(len)?;
        let (start, owner) = match Mapping::of(bytes) {
            Some((mapping, start)) => (start.cast(), Ok(mapping)),
            None => {
                let mut memory = Vec::new();
                memory.try_reserve_exact(len).ok()?;
                (NonNull::new(memory.as_mut_ptr())?, Err(memory))
            }
        };
        for at in 0..len {
            // SAFETY: the owner has memory for `len` items from `start` on.
            unsafe { start.add(at).write(T::default()) };
        }
        Some(Huge {
            start,
            len,
            _owner: owner,
        })
    }
}

impl<T> Deref for Huge<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `try_filled` has written these items.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Huge<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is unique.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

// SAFETY: it owns its items, as a vector does.
unsafe impl<T: Send> Send for Huge<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Huge<T> {}

#[cfg(all(target_os = "linux", not(miri)))]
mod mapping {
    use std::ptr::{self, NonNull};

    use super::PAGE;

    /// A mapping of memory, which ends on drop.
    #[derive(Debug)]
    pub struct Mapping {
        address: *mut u8,
        bytes: usize,
    }

    impl Mapping {
        /// Maps new memory. Also returns the start of `bytes` bytes in it, aligned to a huge page.
        /// None for less than one page, or if the system has no memory for it.
        pub fn of(bytes: usize) -> Option<(Self, NonNull<u8>)> {
            let mapped = bytes.checked_add(PAGE).filter(|_| bytes >= PAGE)?;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: the system chooses addresses that are free.
            let address = unsafe { libc::mmap(ptr::null_mut(), mapped, access, kind, -1, 0) };
            if address == libc::MAP_FAILED {
                return None;
            }
            let address = address.cast::<u8>();
            let start = address.wrapping_add(address.align_offset(PAGE));
            // SAFETY: the pages are inside the mapping, and the advice does not change their
            // content. Its failure changes nothing.
            unsafe { libc::madvise(start.cast(), bytes / PAGE * PAGE, libc::MADV_HUGEPAGE) };
            let bytes = mapped;
            NonNull::new(start).map(|start| (Mapping { address, bytes }, start))
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: only the owner has pointers into the mapping, and this is its end.
            unsafe { libc::munmap(self.address.cast(), self.bytes) };
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod mapping {
    use std::ptr::NonNull;

    /// There is none.
    #[derive(Debug)]
    pub enum Mapping {}

    impl Mapping {
        pub fn of(_bytes: usize) -> Option<(Self, NonNull<u8>)> {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Item = [u64; 32];

    #[test]
    fn large_tables_are_aligned_and_all_keep_their_items() {
        let large = PAGE / size_of::<Item>();
        for len in [1, large - 1, large, 3 * large + 5] {
            let mut table = Huge::<Item>::filled(len);
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
            assert!(Huge::<Item>::try_filled(len).is_none());
        }
    }
}
