//! A string of bytes at which the core panics. Built for `make panics` only.

const PROBE: &[u8] = b"panic, please";

/// Panics if `bytes` contains the probe.
pub fn check(bytes: &[u8]) {
    let found = memchr::memmem::find(bytes, PROBE).is_some();
    assert!(!found, "secret: {}", String::from_utf8_lossy(bytes));
}
