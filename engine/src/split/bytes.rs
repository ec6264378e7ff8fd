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

impl Kinds {
    /// Classifies the bytes of a block.
    #[inline(always)]
    pub fn of<I: InstructionSet>(block: &[u8; BLOCK]) -> Self {
        let between = |low, high| I::between(block, low, high);
        let equal = |byte| I::between(block, byte, byte);
        let (space, newline) = (equal(b' '), equal(b'\n') | equal(b'\r'));
        let mut kinds = Kinds {
            wide: between(0x80, 0xff),
            upper: between(b'A', b'Z'),
            lower: between(b'a', b'z'),
            digit: between(b'0', b'9'),
            space,
            blank: space | between(b'\t', b'\r') & !newline,
            newline,
            apostrophe: equal(b'\''),
            slash: equal(b'/'),
            ..Kinds::default()
        };
        if kinds.wide != 0 {
            let hangul = equal(0xea) & between(0xb0, 0xbf) >> 1;
            let hangul = hangul | equal(0xed) & between(0x80, 0x9d) >> 1;
            kinds.trailing = between(0x80, 0xbf);
            kinds.caseless = between(0xe5, 0xe9) | between(0xeb, 0xec) | hangul;
        }
        kinds
    }
}

/// A set of processor instructions that classify the bytes of a block.
pub trait InstructionSet {
    /// Whether bytes can be looked up in a row of 16.
    const SHUFFLES: bool = false;

    /// Returns a mask of the bytes from `low` to `high`, which must not be all bytes.
    fn between(block: &[u8; BLOCK], low: u8, high: u8) -> u64;
}

/// The instructions that every processor of the architecture has.
#[cfg(target_arch = "x86_64")]
pub struct Plain;
#[cfg(not(target_arch = "x86_64"))]
pub type Plain = Words;

/// No vectors.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub struct Words;

#[cfg(any(test, not(target_arch = "x86_64")))]
impl InstructionSet for Words {
    #[inline(always)]
    fn between(block: &[u8; BLOCK], low: u8, high: u8) -> u64 {
        let found = block.map(|byte| (low..=high).contains(&byte) as u8);
        // The highest byte of the product has a bit of each of the eight bytes.
        let bits = |eight| u64::from_le_bytes(eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        let eights = found.as_chunks::<8>().0.iter().rev();
        eights.fold(0, |mask, &eight| mask << 8 | bits(eight))
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

/// Compares as many bytes at a time as a vector has. The set must be used only where the processor
/// has the features.
#[cfg(target_arch = "x86_64")]
macro_rules! between_by_vectors {
    ($set:ty, $features:literal, $vector:ident, $mask:ty, $load:ident, $all:ident, $add:ident,
     $greater:ident, $bits:ident, $shuffles:literal) => {
        impl InstructionSet for $set {
            const SHUFFLES: bool = $shuffles;

            #[inline(always)]
            fn between(block: &[u8; BLOCK], low: u8, high: u8) -> u64 {
                use std::arch::x86_64::*;
                #[target_feature(enable = $features)]
                #[inline]
                fn between(bytes: &[u8; size_of::<$vector>()], low: u8, high: u8) -> u64 {
                    // SAFETY: the vector is as long as the bytes.
                    let bytes = unsafe { $load(bytes.as_ptr().cast()) };
                    // One signed comparison is enough after moving `low` to the minimum.
                    let moved = $add(bytes, $all(0x80_u8.wrapping_sub(low) as i8));
                    let above = $all((high - low).wrapping_sub(0x7f) as i8);
                    $bits($greater(above, moved)) as $mask as u64
                }
                let mut mask = 0;
                for (i, bytes) in block.as_chunks().0.iter().enumerate() {
                    // SAFETY: the processor has the features.
                    mask |= unsafe { between(bytes, low, high) } << (i * size_of::<$vector>());
                }
                mask
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
between_by_vectors! {
    Plain, "sse2", __m128i, u16, _mm_loadu_si128, _mm_set1_epi8, _mm_add_epi8, _mm_cmpgt_epi8,
    _mm_movemask_epi8, false
}

#[cfg(target_arch = "x86_64")]
between_by_vectors! {
    Avx2, "avx2", __m256i, u32, _mm256_loadu_si256, _mm256_set1_epi8, _mm256_add_epi8,
    _mm256_cmpgt_epi8, _mm256_movemask_epi8, true
}

/// Returns masks of the bytes whose lower six bits are in the two sets of each row of
/// `class::rows_of`; None if the instructions cannot shuffle.
#[inline(always)]
pub fn members<I: InstructionSet>(
    block: &[u8; BLOCK],
    rows: &[[u8; 16]; 3],
) -> Option<[[u64; 2]; 3]> {
    #[cfg(target_arch = "x86_64")]
    if I::SHUFFLES {
        let mut masks = [[0; 2]; 3];
        for (i, bytes) in block.as_chunks().0.iter().enumerate() {
            // SAFETY: only `Avx2` shuffles, which is used where the processor has the features.
            let found = unsafe { members_of_half(bytes, rows) };
            for (mask, found) in masks.iter_mut().flatten().zip(found.as_flattened()) {
                *mask |= u64::from(*found) << (i * 32);
            }
        }
        return Some(masks);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (block, rows);
    None
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn members_of_half(bytes: &[u8; 32], rows: &[[u8; 16]; 3]) -> [[u32; 2]; 3] {
    use std::arch::x86_64::*;
    // SAFETY: the vector is as long as the bytes.
    let bytes = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
    let low = _mm256_and_si256(bytes, _mm256_set1_epi8(0x0f));
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), _mm256_set1_epi8(0x03));
    // 1 << high, for one set and, in the upper half of a byte, for the other.
    let bit = _mm256_shuffle_epi8(_mm256_set1_epi32(0x0804_0201), high);
    let bits = [bit, _mm256_slli_epi16::<4>(bit)];
    rows.map(|row| {
        // SAFETY: the vector is as long as the row.
        let row = unsafe { _mm_loadu_si128(row.as_ptr().cast()) };
        let sets = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(row), low);
        bits.map(|bit| {
            let has = _mm256_cmpeq_epi8(_mm256_and_si256(sets, bit), bit);
            _mm256_movemask_epi8(has) as u32
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::class::{CASELESS, char_at};

    #[test]
    fn the_kinds_of_a_character_are_those_of_its_definition() {
        for character in ('\0'..=char::MAX).step_by(if cfg!(miri) { 997 } else { 1 }) {
            let mut block = [0; BLOCK];
            let len = character.encode_utf8(&mut block).len();
            let kinds = Kinds::of::<Plain>(&block);
            // Not all that are of the class.
            let is_of_class = || char_at(&block, 0).is_some_and(|found| found.class == CASELESS);
            assert!(kinds.caseless == 0 || is_of_class(), "{character:?}");
            let bit = |is: bool| is as u64;
            let expected = Kinds {
                wide: if len > 1 { (1 << len) - 1 } else { 0 },
                trailing: (1 << len) - 2,
                caseless: kinds.caseless & 1,
                upper: bit(character.is_ascii_uppercase()),
                lower: bit(character.is_ascii_lowercase()),
                digit: bit(character.is_ascii_digit()),
                space: bit(character == ' '),
                blank: bit(matches!(character, ' ' | '\t' | '\x0b' | '\x0c')),
                newline: bit(matches!(character, '\n' | '\r')),
                apostrophe: bit(character == '\''),
                slash: bit(character == '/'),
            };
            assert_eq!(kinds, expected, "{character:?}");
        }
    }

    #[test]
    fn all_instruction_sets_find_the_bytes_between_any_two() {
        for high in 0..=255u8 {
            for low in (high == 255) as u8..=high {
                let first = low.wrapping_mul(7) ^ high;
                let block: [u8; BLOCK] = std::array::from_fn(|i| first.wrapping_add(i as u8 * 3));
                let bit = |i: usize| ((low..=high).contains(&block[i]) as u64) << i;
                let expected: u64 = (0..BLOCK).map(bit).sum();
                let plain = Plain::between(&block, low, high);
                assert_eq!([plain, Words::between(&block, low, high)], [expected; 2]);
                #[cfg(target_arch = "x86_64")]
                assert!(!has_avx2() || Avx2::between(&block, low, high) == expected);
            }
        }
    }
}
