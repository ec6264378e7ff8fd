//! The starts of tokens, in the caller's unit.

/// The unit of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetUnit {
    Byte,
    CodePoint,
    Utf16,
}

/// Converts non-decreasing byte offsets to another unit, in place.
///
/// A byte inside a character becomes the offset of that character. The end of the text becomes its
/// length, and a place beyond it that many more. With `Byte`, nothing changes.
pub fn in_units(text: &str, mut starts: Vec<usize>, unit: OffsetUnit) -> Vec<usize> {
    if unit == OffsetUnit::Byte {
        return starts;
    }
    let mut characters = text.char_indices().peekable();
    // Offset and width of the last character that starts at or before the byte offset.
    let (mut offset, mut width) = (0, 0);
    for start in &mut starts {
        while let Some((_, character)) = characters.next_if(|&(byte, _)| byte <= *start) {
            offset += width;
            width = match unit {
                OffsetUnit::Utf16 => character.len_utf16(),
                _ => 1,
            };
        }
        *start = offset + start.checked_sub(text.len()).map_or(0, |more| width + more);
    }
    starts
}
