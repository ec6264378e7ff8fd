//! Character classes: everything that a split pattern can distinguish.

/// The version of the Unicode Character Database that `regex-syntax` and the classes come from.
pub const UNICODE_VERSION: &str = "16.0.0";

/// Row of `BLOCKS` for the 128 code points from 128 × the index.
static INDEX: [u8; 0x110000 / 128] = *include_bytes!(concat!(env!("OUT_DIR"), "/class_index"));

/// Class numbers in rows of 128.
static BLOCKS: [u8; 256 * 128] = *include_bytes!(concat!(env!("OUT_DIR"), "/class_blocks"));

/// For each 64 code points, three rows of two sets, as in `build.rs`: upper and lower case, letters
/// without case and marks, those that are `UNDECIDED` and none.
static ROWS: [u8; 1024 * 48] = *include_bytes!(concat!(env!("OUT_DIR"), "/class_rows"));

/// Returns the rows of the code points from 64 × `group`, up to U+FFFF.
#[inline(always)]
pub fn rows_of(group: usize) -> &'static [[u8; 16]; 3] {
    &ROWS.as_chunks().0.as_chunks().0[group]
}

/// A class number, as in `build.rs`. Below 16, so that a set of classes fits in a `u16`.
pub type Class = u8;

// Class 0 is the rest: controls, formats, unassigned. No pattern names it.

/// Lu and Lt.
pub const UPPER: Class = 1;
/// Ll.
pub const LOWER: Class = 2;
/// Lm and Lo: letters without case.
pub const CASELESS: Class = 3;
/// M.
pub const MARK: Class = 4;
/// N.
pub const NUMBER: Class = 5;
/// P.
pub const PUNCTUATION: Class = 6;
/// S.
pub const SYMBOL: Class = 7;
/// White_Space except line feed and carriage return.
pub const SPACE: Class = 8;
/// Line feed and carriage return.
pub const NEWLINE: Class = 9;

/// A set of classes, with one bit each.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ClassSet(u16);

impl ClassSet {
    pub const fn of(classes: &[Class]) -> Self {
        let mut bits = 0;
        let mut i = 0;
        while i < classes.len() {
            bits |= 1 << classes[i];
            i += 1;
        }
        ClassSet(bits)
    }

    pub const fn not(self) -> Self {
        ClassSet(!self.0)
    }

    #[inline(always)]
    pub const fn has(self, class: Class) -> bool {
        self.0 >> class & 1 == 1
    }
}

/// `\p{L}`.
pub const LETTERS: ClassSet = ClassSet::of(&[UPPER, LOWER, CASELESS]);
pub const LETTERS_AND_MARKS: ClassSet = ClassSet::of(&[UPPER, LOWER, CASELESS, MARK]);
/// `\s`.
pub const WHITESPACE: ClassSet = ClassSet::of(&[SPACE, NEWLINE]);
/// The classes that end the decided part of a block at a non-ASCII character.
pub const UNDECIDED: ClassSet = ClassSet::of(&[NUMBER, SPACE, NEWLINE]);
/// `[^\s\p{L}\p{N}]`.
pub const NEITHER: ClassSet = ClassSet::of(&[UPPER, LOWER, CASELESS, NUMBER, SPACE, NEWLINE]).not();

/// Returns the class of a code point.
#[inline]
pub fn class_of(code_point: u32) -> Class {
    let block = INDEX[(code_point >> 7) as usize] as usize;
    BLOCKS[block << 7 | (code_point & 127) as usize]
}

/// Returns whether a character is a letter, `\p{L}`.
pub fn is_letter(character: char) -> bool {
    LETTERS.has(class_of(u32::from(character)))
}

/// A decoded character of a text.
#[derive(Clone, Copy)]
pub struct Seen {
    pub class: Class,
    /// Length in bytes of UTF-8.
    pub len: usize,
    pub code_point: u32,
}

/// Returns the character that starts at byte `i` of valid UTF-8; None at the end.
#[inline(always)]
pub fn char_at(text: &[u8], i: usize) -> Option<Seen> {
    text.get(i)?;
    let (code_point, len) = decode(text, i);
    Some(Seen {
        class: class_of(code_point),
        len,
        code_point,
    })
}

/// Returns the code point and the length of the character at byte `i` of valid UTF-8.
#[inline(always)]
pub fn decode(text: &[u8], i: usize) -> (u32, usize) {
    let first = text[i] as u32;
    let low = |k: usize| text.get(i + k).map_or(0, |&b| b as u32 & 0x3f);
    match first {
        ..0x80 => (first, 1),
        0x80..0xe0 => ((first & 0x1f) << 6 | low(1), 2),
        0xe0..0xf0 => ((first & 0x0f) << 12 | low(1) << 6 | low(2), 3),
        _ => (
            (first & 0x07) << 18 | low(1) << 12 | low(2) << 6 | low(3),
            4,
        ),
    }
}

/// Returns the end of the longest run of characters of `set` from byte `i`.
#[inline]
pub fn run_end(text: &[u8], mut i: usize, set: ClassSet) -> usize {
    loop {
        // Most non-ASCII characters have three bytes. With a fixed step the next position does not
        // wait for the table.
        while let Some(&[first @ 0xe0..0xf0, second, third]) = text[i..].first_chunk() {
            let high = (first as u32 & 0x0f) << 12 | (second as u32 & 0x3f) << 6;
            if !set.has(class_of(high | third as u32 & 0x3f)) {
                return i;
            }
            i += 3;
        }
        match char_at(text, i) {
            Some(seen) if set.has(seen.class) => i += seen.len,
            _ => return i,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_are_those_of_the_version_that_is_stated() {
        // Both are uppercase letters, since Unicode 16 and since Unicode 17.
        assert_eq!(UNICODE_VERSION, "16.0.0");
        assert_eq!([class_of(0x1c89), class_of(0xa7ce)], [UPPER, 0]);
    }
}
