//! Tables in huge pages. Making one costs less than making the small pages that a text would touch,
//! and lookups wait less for the translation of addresses.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
#[cfg(all(target_os = "linux", not(miri)))]
use std::ptr;
use std::ptr::NonNull;
use std::slice;

/// Size of a huge page in bytes, and the least of a table in them.
const PAGE: usize = 2 << 20;

/// A slice of a fixed length. Where the system has no huge pages, or for a short slice, it is in
/// ordinary memory.
#[derive(Debug)]
pub struct Huge<T> {
    start: NonNull<T>,
    len: usize,
    layout: Layout,
}

impl<T: Copy> Huge<T> {
    /// Makes a slice of `len` times the item.
    pub fn filled(len: usize, item: T) -> Self {
        Huge::try_filled(len, item).unwrap_or_else(|| handle_alloc_error(Layout::new::<T>()))
    }

    /// Makes a slice of `len` times the item; None if there is not enough memory.
    pub fn try_filled(len: usize, item: T) -> Option<Self> {
        // Memory is never empty.
        let mut layout = Layout::array::<T>(len.max(1)).ok()?;
        if layout.size() >= PAGE {
            layout = layout.align_to(PAGE).ok()?.pad_to_align();
        }
        let start = allocate(layout)?.cast();
        for at in 0..len {
            // SAFETY: there is memory for `len` items from `start` on.
            unsafe { start.add(at).write(item) };
        }
        Some(Huge { start, len, layout })
    }
}

impl<T> Huge<T> {
    pub fn as_ptr(&self) -> *mut T {
        self.start.as_ptr()
    }
}

impl<T> Drop for Huge<T> {
    fn drop(&mut self) {
        // Its items need no drop, as they are `Copy`.
        release(self.start.cast(), self.layout);
    }
}

impl<T> Deref for Huge<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `try_filled` has written these items.
        unsafe { slice::from_raw_parts(self.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Huge<T> {
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

/// Allocates memory. Huge pages are mapped: in the heap they would leave gaps of pages that are slow
/// at first use, which a list of new text pays for (1.07 of the time).
fn allocate(layout: Layout) -> Option<NonNull<u8>> {
    #[cfg(all(target_os = "linux", not(miri)))]
    if layout.align() == PAGE {
        let (bytes, mapped) = (layout.size(), layout.size().checked_add(PAGE)?);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: the system chooses addresses that are free.
        let address = unsafe { libc::mmap(ptr::null_mut(), mapped, access, kind, -1, 0) };
        if address == libc::MAP_FAILED {
            return None;
        }
        let before = address.cast::<u8>().align_offset(PAGE);
        let start = address.wrapping_byte_add(before);
        // SAFETY: all of it is inside the mapping: first what is before and after the memory, then the
        // memory, whose content the advice does not change. Failures change nothing.
        unsafe {
            libc::munmap(address, before);
            libc::munmap(start.byte_add(bytes), PAGE - before);
            libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
        }
        return NonNull::new(start.cast());
    }
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { alloc(layout) })
}

/// Frees memory that `allocate` returned for the layout.
fn release(start: NonNull<u8>, layout: Layout) {
    #[cfg(all(target_os = "linux", not(miri)))]
    if layout.align() == PAGE {
        // SAFETY: the caller owns the memory, and has no pointers into it after this.
        unsafe { libc::munmap(start.as_ptr().cast(), layout.size()) };
        return;
    }
    // SAFETY: as above, and it was allocated with this layout.
    unsafe { dealloc(start.as_ptr(), layout) };
}

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
