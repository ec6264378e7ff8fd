//! How much freed memory the process keeps, with glibc.

/// A larger piece of memory is returned to the system at once.
const KEPT_PIECE_BYTES: i32 = 4 << 20;
/// Of smaller ones, each thread keeps up to this much: some messages of the default maximum size.
/// Taking pages from the system again costs a call with 1 MB an eighth of its time.
const KEPT_BYTES: i32 = 16 << 20;

/// Sets these bounds, unless the environment has its own. By default glibc keeps twice the largest
/// piece that was freed so far, up to 64 MiB.
pub fn keep_freed() {
    let names = [
        "GLIBC_TUNABLES",
        "MALLOC_TRIM_THRESHOLD_",
        "MALLOC_MMAP_THRESHOLD_",
    ];
    if names.iter().any(|name| std::env::var_os(name).is_some()) {
        return;
    }
    // SAFETY: it changes two numbers under malloc's lock; a thread that allocates meanwhile reads the
    // old ones or the new ones.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT_PIECE_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
    }
}
