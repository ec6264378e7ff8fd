//! UTF-8 of text whose characters all have the same width, as in CPython's strings.
//!
//! CPython encodes one character after the other, and keeps a copy in the string. Here four are
//! encoded at a time, each in a lane of a vector, and a shuffle removes the unused bytes between
//! them.

#[cfg(target_arch = "x86_64")]
use crate::split::bytes::has_avx2;

/// Returns the UTF-8 of a text, given by its code points; None if the processor lacks the
/// instructions, there is a surrogate, or memory is short.
pub fn encoded<C: Copy + Into<u32>>(text: &[C]) -> Option<String> {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the processor has the instructions, as `has_avx2` returned true.
        return unsafe { lanes::encoded(text) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = text;
    None
}

#[cfg(target_arch = "x86_64")]
mod lanes {
    use std::arch::x86_64::*;

    /// For each combination of lengths of four characters, the bytes to keep of four lanes: bit i
    /// is set if character i takes two bytes or more, and bit 4 + i if it takes three.
    static KEPT: [[u8; 16]; 256] = {
        let mut kept = [[0; 16]; 256];
        let mut lengths = 0;
        while lengths < 256 {
            let (mut i, mut byte) = (0, 0);
            while byte < 16 {
                let [lane, place] = [byte / 4, byte % 4];
                if place < 1 + (lengths >> lane & 1) + (lengths >> (4 + lane) & 1) {
                    kept[lengths][i] = byte as u8;
                    i += 1;
                }
                byte += 1;
            }
            lengths += 1;
        }
        kept
    };

    #[target_feature(enable = "avx2,popcnt")]
    pub fn encoded<C: Copy + Into<u32>>(text: &[C]) -> Option<String> {
        let mut bytes = Vec::new();
        // The most bytes that a character of one, two or four bytes takes, and a vector.
        let most = (size_of::<C>() + 1).min(4) * text.len() + 16;
        bytes.try_reserve_exact(most).ok()?;
        let (groups, rest) = text.as_chunks::<16>();
        for group in groups {
            let points = group.map(C::into);
            if points.iter().fold(0, |all, point| all | point) < 0x80 {
                bytes.extend_from_slice(&points.map(|point| point as u8));
                continue;
            }
            for four in points.as_chunks::<4>().0 {
                if !push_four(*four, &mut bytes) {
                    push_each(four, &mut bytes)?;
                }
            }
        }
        push_each(rest, &mut bytes)?;
        bytes.shrink_to_fit();
        // SAFETY: only whole characters were pushed.
        Some(unsafe { String::from_utf8_unchecked(bytes) })
    }

    /// Pushes four characters below U+10000. Returns false, and pushes nothing, if there is another
    /// or a surrogate.
    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    fn push_four([a, b, c, d]: [u32; 4], bytes: &mut Vec<u8>) -> bool {
        let all = |value| _mm_set1_epi32(value);
        let or = |a, b| _mm_or_si128(a, b);
        let points = _mm_set_epi32(d as i32, c as i32, b as i32, a as i32);
        let [middle, first] = [_mm_srli_epi32::<6>(points), _mm_srli_epi32::<12>(points)];
        let trailing = |six| or(_mm_and_si128(six, all(0x3f)), all(0x80));
        let last = trailing(points);
        let two = or(or(middle, all(0xc0)), _mm_slli_epi32::<8>(last));
        let after_first = or(
            _mm_slli_epi32::<8>(trailing(middle)),
            _mm_slli_epi32::<16>(last),
        );
        let three = or(or(first, all(0xe0)), after_first);
        let is_two = _mm_cmpgt_epi32(points, all(0x7f));
        let is_three = _mm_cmpgt_epi32(points, all(0x7ff));
        let lanes = _mm_blendv_epi8(_mm_blendv_epi8(points, two, is_two), three, is_three);
        let is_surrogate = _mm_cmpeq_epi32(_mm_and_si128(points, all(0xf800)), all(0xd800));
        let is_above = _mm_cmpgt_epi32(_mm_srli_epi32::<16>(points), all(0));
        let is_other = or(is_above, is_surrogate);
        let bits = |lanes| _mm_movemask_ps(_mm_castsi128_ps(lanes)) as usize;
        if bits(is_other) != 0 {
            return false;
        }
        let lengths = bits(is_two) | bits(is_three) << 4;
        // SAFETY: the vector is as long as the array.
        let order = unsafe { _mm_loadu_si128(KEPT[lengths].as_ptr().cast()) };
        let kept = _mm_shuffle_epi8(lanes, order);
        let len = bytes.len() + 4 + lengths.count_ones() as usize;
        let halves = [_mm_cvtsi128_si64(kept), _mm_extract_epi64::<1>(kept)];
        bytes.extend_from_slice(halves.map(i64::to_le_bytes).as_flattened());
        bytes.truncate(len);
        true
    }

    /// Pushes characters; None if there is a surrogate.
    fn push_each<C: Copy + Into<u32>>(text: &[C], bytes: &mut Vec<u8>) -> Option<()> {
        text.iter().try_for_each(|&point| {
            let character = char::from_u32(point.into())?;
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            Some(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what `encoded` must return where it does not lack instructions.
    fn one_by_one(text: &[u32]) -> Option<String> {
        text.iter().map(|&point| char::from_u32(point)).collect()
    }

    #[test]
    fn each_character_is_encoded_in_each_lane() {
        if encoded(b"\xe9").is_none() {
            return;
        }
        let bad = [0xd800, 0xdfff, 0x11_0000, 0x8000_0041, u32::MAX];
        for point in (0..0x11_0000)
            .step_by(if cfg!(miri) { 997 } else { 1 })
            .chain(bad)
        {
            let mut text = [0x41, 0xe9, 0x4e2d, 0x41, 0x1f44d, 0x7ff, 0x800, 0x80].repeat(2);
            for lane in [0, 1, 2, 3, 4] {
                let before = std::mem::replace(&mut text[lane], point);
                assert_eq!(encoded(&text), one_by_one(&text), "{point:x}");
                text[lane] = before;
            }
        }
    }
}
