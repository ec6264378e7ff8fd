//! Classifies 64 bytes at once: one bit mask per kind of byte.

/// Number of bytes in a block.
pub const BLOCK: usize = 64;

/// Masks of a block: bit `i` is set if byte `i` is of the kind. All kinds after `caseless`
/// are ASCII.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Bytes that are not ASCII.
    pub wide: u64,
    /// Bytes of a non-ASCII character after its first byte.
    pub trailing: u64,
    /// First bytes of characters of three bytes whose first two bytes tell that they are letters
    /// without case: most of Chinese and Korean.
    pub caseless: u64,
    pub upper: u64,
    pub lower: u64,
    pub digit: u64,
    /// U+0020.
    pub space: u64,
    /// White space other than line feed and carriage return, U+0020 included.
    pub blank: u64,
    pub newline: u64,
    pub apostrophe: u64,
    pub slash: u64,
}

/// A set of processor instructions that classify the bytes of a block.
pub trait InstructionSet {
    fn kinds(block: &[u8; BLOCK]) -> Kinds;
}

/// The instructions that every processor of the architecture has.
pub struct Plain;

#[cfg(not(target_arch = "x86_64"))]
impl InstructionSet for Plain {
    #[inline(always)]
    fn kinds(block: &[u8; BLOCK]) -> Kinds {
        kinds_one_by_one(block)
    }
}

/// AVX2: 32 bytes at a time, and bit-count instructions. See `has_avx2`.
#[cfg(target_arch = "x86_64")]
pub struct Avx2;

/// Returns whether the processor supports the instructions of `Avx2`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

/// Classifies as many bytes at a time as a vector has. The set must be used only where the processor
/// has the features.
#[cfg(target_arch = "x86_64")]
macro_rules! kinds_by_vectors {
    ($set:ty, $features:literal, $vector:ident, $mask:ty, $load:ident, $all:ident, $add:ident,
     $greater:ident, $equal:ident, $or:ident, $and_not:ident, $bits:ident) => {
        impl InstructionSet for $set {
            #[inline(always)]
            fn kinds(block: &[u8; BLOCK]) -> Kinds {
                use std::arch::x86_64::*;
                #[target_feature(enable = $features)]
                #[inline]
                fn kinds(block: &[u8; BLOCK]) -> Kinds {
                    const BYTES: usize = size_of::<$vector>();
                    let mut kinds = Kinds::default();
                    let [mut yi_or_hangul, mut hangul_or_jamo, mut from_b0, mut to_9d] = [0; 4];
                    for from in (0..BLOCK).step_by(BYTES) {
                        // SAFETY: the block has that many bytes from there on.
                        let bytes = unsafe { $load(block[from..from + BYTES].as_ptr().cast()) };
                        // Selects bytes in low..=high with one signed comparison, after moving `low`
                        // to the minimum.
                        let between = |low: u8, high: u8| {
                            let moved = $add(bytes, $all((0x80 - low as i32) as i8));
                            $greater($all(((high - low) as i32 + 1 - 0x80) as i8), moved)
                        };
                        let equal = |byte: u8| $equal(bytes, $all(byte as i8));
                        let bits = |found: $vector| ($bits(found) as $mask as u64) << from;
                        let newline = $or(equal(b'\n'), equal(b'\r'));
                        let space = equal(b' ');
                        let blank = $or(space, $and_not(newline, between(b'\t', b'\r')));
                        kinds.wide |= bits(bytes);
                        kinds.trailing |= bits(between(0x80, 0xbf));
                        kinds.upper |= bits(between(b'A', b'Z'));
                        kinds.lower |= bits(between(b'a', b'z'));
                        kinds.digit |= bits(between(b'0', b'9'));
                        kinds.space |= bits(space);
                        kinds.blank |= bits(blank);
                        kinds.newline |= bits(newline);
                        kinds.apostrophe |= bits(equal(b'\''));
                        kinds.slash |= bits(equal(b'/'));
                        if kinds.wide != 0 {
                            kinds.caseless |= bits($or(between(0xe5, 0xe9), between(0xeb, 0xec)));
                            yi_or_hangul |= bits(equal(0xea));
                            hangul_or_jamo |= bits(equal(0xed));
                            from_b0 |= bits(between(0xb0, 0xbf));
                            to_9d |= bits(between(0x80, 0x9d));
                        }
                    }
                    kinds.caseless |= yi_or_hangul & from_b0 >> 1 | hangul_or_jamo & to_9d >> 1;
                    kinds
                }
                // SAFETY: the processor has the features.
                unsafe { kinds(block) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
kinds_by_vectors! {
    Plain, "sse2", __m128i, u16, _mm_loadu_si128, _mm_set1_epi8, _mm_add_epi8, _mm_cmpgt_epi8,
    _mm_cmpeq_epi8, _mm_or_si128, _mm_andnot_si128, _mm_movemask_epi8
}

#[cfg(target_arch = "x86_64")]
kinds_by_vectors! {
    Avx2, "avx2,bmi1,bmi2,lzcnt,popcnt", __m256i, u32, _mm256_loadu_si256, _mm256_set1_epi8,
    _mm256_add_epi8, _mm256_cmpgt_epi8, _mm256_cmpeq_epi8, _mm256_or_si256, _mm256_andnot_si256,
    _mm256_movemask_epi8
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn kinds_one_by_one(block: &[u8; BLOCK]) -> Kinds {
    let mut kinds = Kinds::default();
    for (i, &byte) in block.iter().enumerate() {
        let bit = |is: bool| (is as u64) << i;
        kinds.wide |= bit(byte >= 0x80);
        kinds.trailing |= bit(byte & 0xc0 == 0x80);
        kinds.upper |= bit(byte.is_ascii_uppercase());
        kinds.lower |= bit(byte.is_ascii_lowercase());
        kinds.digit |= bit(byte.is_ascii_digit());
        kinds.space |= bit(byte == b' ');
        kinds.blank |= bit(matches!(byte, b' ' | b'\t' | 0x0b | 0x0c));
        kinds.newline |= bit(matches!(byte, b'\n' | b'\r'));
        kinds.apostrophe |= bit(byte == b'\'');
        kinds.slash |= bit(byte == b'/');
        let next = block.get(i + 1).copied().unwrap_or(0);
        kinds.caseless |= bit(match byte {
            0xea => matches!(next, 0xb0..=0xbf),
            0xed => matches!(next, 0x80..=0x9d),
            _ => matches!(byte, 0xe5..=0xe9 | 0xeb..=0xec),
        });
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_instruction_sets_classify_every_byte_alike() {
        for shift in 0..=255u8 {
            let block: [u8; BLOCK] = std::array::from_fn(|i| (i as u8).wrapping_mul(0x5b) ^ shift);
            let expected = kinds_one_by_one(&block);
            assert_eq!(Plain::kinds(&block), expected, "shift {shift}");
            #[cfg(target_arch = "x86_64")]
            if has_avx2() {
                assert_eq!(Avx2::kinds(&block), expected, "shift {shift}");
            }
        }
    }
}
