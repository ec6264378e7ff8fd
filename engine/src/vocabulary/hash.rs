//! A hash of short byte strings: two multiplications for up to 16 bytes.

pub const K0: u64 = 0x9e37_79b9_7f4a_7c15;
pub const K1: u64 = 0xd1b5_4a32_d192_ed03;

/// Returns the exclusive or of the halves of the 128-bit product.
#[inline(always)]
pub fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// Returns a hash of a number.
#[inline(always)]
pub fn hash_number(number: u64) -> u64 {
    fold(number ^ K0, K1)
}

/// Returns a hash of any bytes.
pub fn hash(bytes: &[u8]) -> u64 {
    let mut state = bytes.len() as u64 ^ K1;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        state = fold(state ^ u64::from_le_bytes(*word), K0);
    }
    // It may share bytes with the word before it: copying fewer bytes costs more.
    let last = bytes.last_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; 8];
        padded[..rest.len()].copy_from_slice(rest);
        padded
    });
    fold(fold(state ^ u64::from_le_bytes(last), K1), K0)
}
