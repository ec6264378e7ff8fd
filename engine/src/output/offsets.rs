//! Where tokens start, in the unit that the caller counts in.

/// What offsets count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetUnit {
    Byte,
    CodePoint,
    Utf16,
}

/// Turn byte offsets that never decrease into another unit, in place.
///
/// A byte inside a character has the offset of that character, and the end of the text its length;
/// bytes stay as they are.
pub fn in_units(text: &str, mut starts: Vec<usize>, unit: OffsetUnit) -> Vec<usize> {
    if unit == OffsetUnit::Byte {
        return starts;
    }
    let mut characters = text.char_indices().peekable();
    // The last character that starts at or before the offset: its own, and its width.
    let (mut offset, mut width) = (0, 0);
    for start in &mut starts {
        while let Some((_, character)) = characters.next_if(|&(byte, _)| byte <= *start) {
            offset += width;
            width = match unit {
                OffsetUnit::Utf16 => character.len_utf16(),
                _ => 1,
            };
        }
        *start = offset + if *start == text.len() { width } else { 0 };
    }
    starts
}
