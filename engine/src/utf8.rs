//! UTF-8 of text whose characters all have the same width, as in CPython's strings, and back.
//!
//! CPython converts one character after the other, and keeps the UTF-8 in the string. Here four
//! are converted at a time, each in a lane of a vector. A shuffle removes the unused bytes between
//! them, or moves the bytes of each to its lane.

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

/// Returns the number of characters of a text, and whether one is above U+FFFF; None if most of the
/// text is ASCII, or all of it Latin-1, which CPython decodes as fast.
pub fn decoded_len(text: &str) -> Option<(usize, bool)> {
    let count = text.chars().count();
    let highest = text.bytes().fold(0, |highest, byte| byte.max(highest));
    (text.len() > count + count / 4 && highest > 0xc3).then_some((count, highest >= 0xf0))
}

/// Writes the code points of a text to `points`.
///
/// Panics if their number differs, or if one does not fit.
pub fn decode<C: Copy + From<u16> + TryFrom<u32>>(text: &str, points: &mut [C]) {
    let (mut at, mut done) = (0, 0);
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the processor has the instructions, as `has_avx2` returned true.
        (at, done) = unsafe { lanes::decode(text, points) };
    }
    for character in text[at..].chars() {
        done = write(points, done, character);
    }
    assert_eq!(done, points.len());
}

/// Writes a character at `done`. Returns the place after it.
#[inline(always)]
fn write<C: TryFrom<u32>>(points: &mut [C], done: usize, character: char) -> usize {
    points[done] = C::try_from(character as u32).unwrap_or_else(|_| panic!("{character:?}"));
    done + 1
}

#[cfg(target_arch = "x86_64")]
mod lanes {
    use std::arch::x86_64::*;
    use std::mem::MaybeUninit;

    use crate::split::bytes::{Avx2, BLOCK, InstructionSet};

    /// For each mask of the bytes after the first that start a character, the bytes of four
    /// characters in their lanes, each with the last byte first.
    static PLACED: [[u8; 16]; 1 << 12] = {
        let mut placed = [[0x80; 16]; 1 << 12];
        let mut starts = 0;
        while starts < 1 << 12 {
            let (mut byte, mut lane) = (0usize, 0);
            while lane < 4 && byte < 12 {
                let len = 1 + (starts >> byte | 4usize).trailing_zeros() as usize;
                let mut place = 0;
                while place < len {
                    placed[starts][4 * lane + place] = (byte + len - 1 - place) as u8;
                    place += 1;
                }
                (byte, lane) = (byte + len, lane + 1);
            }
            starts += 1;
        }
        placed
    };

    /// Decodes a text up to less than a block before its end. Returns how many bytes, and
    /// characters, were decoded.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub fn decode<C: Copy + From<u16> + TryFrom<u32>>(
        text: &str,
        points: &mut [C],
    ) -> (usize, usize) {
        let (mut at, mut done) = (0, 0);
        while let Some(block) = text.as_bytes()[at..].first_chunk() {
            let starts = !Avx2::between(block, 0x80, 0xbf) >> 1;
            let far = Avx2::between(block, 0xf0, 0xff);
            let mut place = 0;
            while let Some(bytes) = block[place..BLOCK - 1].first_chunk::<16>() {
                if far >> place & 0xfff != 0 {
                    let character = text[at + place..].chars().next().unwrap_or_default();
                    done = super::write(points, done, character);
                    place += character.len_utf8();
                } else if (starts >> place) as u16 == !0 {
                    points[done..done + 16]
                        .copy_from_slice(&bytes.map(|byte| C::from(byte.into())));
                    (place, done) = (place + 16, done + 16);
                } else {
                    let starts = (starts >> place) as usize;
                    let four = four(bytes, starts & 0xfff).map(C::from);
                    points[done..done + 4].copy_from_slice(&four);
                    let fourth = (0..3).fold(starts, |starts, _| starts & (starts - 1));
                    (place, done) = (place + 1 + fourth.trailing_zeros() as usize, done + 4);
                }
            }
            at += place;
        }
        (at, done)
    }

    /// Returns the first four characters, of at most three bytes each.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn four(bytes: &[u8; 16], starts: usize) -> [u16; 4] {
        // SAFETY: the vectors are as long as the arrays.
        let [bytes, order] =
            unsafe { [bytes, &PLACED[starts]].map(|bytes| _mm_loadu_si128(bytes.as_ptr().cast())) };
        let lanes = _mm_shuffle_epi8(bytes, order);
        let masked = |lanes, mask| _mm_and_si128(lanes, _mm_set1_epi32(mask));
        // Of the last bytes, only ASCII characters have the bit 0x40.
        let last = masked(lanes, 0x7f);
        let middle = masked(_mm_srli_epi32::<2>(lanes), 0x3f << 6);
        let first = masked(_mm_srli_epi32::<4>(lanes), 0xf << 12);
        let points = _mm_or_si128(_mm_or_si128(first, middle), last);
        let points = _mm_cvtsi128_si64(_mm_packus_epi32(points, points)) as u64;
        [0, 16, 32, 48].map(|shift| (points >> shift) as u16)
    }

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
        let places = bytes.spare_capacity_mut();
        let mut done = 0;
        let mut write = |(encoded, len): ([u8; 16], usize)| {
            places[done..done + 16].copy_from_slice(&encoded.map(MaybeUninit::new));
            done += len;
        };
        let (groups, rest) = text.as_chunks::<16>();
        for group in groups {
            let points = group.map(C::into);
            if points.iter().fold(0, |all, point| all | point) < 0x80 {
                write((points.map(|point| point as u8), 16));
                continue;
            }
            for four in points.as_chunks::<4>().0 {
                match four_encoded(*four) {
                    Some(encoded) => write(encoded),
                    None => {
                        for &point in four {
                            write(one_encoded(point)?);
                        }
                    }
                }
            }
        }
        for &point in rest {
            write(one_encoded(point.into())?);
        }
        // Not shrunk: it is used once, and the rest would be lost to the next text.
        // SAFETY: as many bytes were written, of whole characters.
        unsafe {
            bytes.set_len(done);
            Some(String::from_utf8_unchecked(bytes))
        }
    }

    /// Returns the UTF-8 of four characters below U+10000, followed by other bytes, and its length;
    /// None if there is another or a surrogate.
    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    fn four_encoded([a, b, c, d]: [u32; 4]) -> Option<([u8; 16], usize)> {
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
            return None;
        }
        let lengths = bits(is_two) | bits(is_three) << 4;
        // SAFETY: the vector is as long as the array.
        let order = unsafe { _mm_loadu_si128(KEPT[lengths].as_ptr().cast()) };
        let kept = _mm_shuffle_epi8(lanes, order);
        let mut bytes = [0; 16];
        // SAFETY: as above.
        unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), kept) };
        Some((bytes, 4 + lengths.count_ones() as usize))
    }

    /// Returns the UTF-8 of a character as `four_encoded` does; None if it is a surrogate.
    fn one_encoded(point: u32) -> Option<([u8; 16], usize)> {
        let mut bytes = [0; 16];
        let len = char::from_u32(point)?.encode_utf8(&mut bytes).len();
        Some((bytes, len))
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

    #[test]
    fn each_character_is_decoded_in_each_lane() {
        for character in ('\0'..=char::MAX).step_by(if cfg!(miri) { 997 } else { 1 }) {
            let more = format!("{character}\u{d55c}{character}a{character}\u{e9}\u{800}");
            for before in ["", "a", "\u{e9}", "\u{4e2d}\u{7ff}a"] {
                let text = format!("{before}{more}").repeat(5);
                let expected: Vec<u32> = text.chars().map(u32::from).collect();
                let is_far = character > '\u{ffff}';
                assert_eq!(decoded_len(&text), Some((expected.len(), is_far)), "{text}");
                let mut points = vec![0; expected.len()];
                decode::<u32>(&text, &mut points);
                assert_eq!(points, expected, "{text}");
                if !is_far {
                    let mut points = vec![0; expected.len()];
                    decode::<u16>(&text, &mut points);
                    assert!(points.into_iter().map(u32::from).eq(expected), "{text}");
                }
            }
        }
    }
}
