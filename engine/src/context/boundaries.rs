//! The last boundary of a level before a place, found from the text near it alone: the fast copy of
//! `context/boundaries.py`, for texts in which letters and line ends are near.

use crate::context::breaks;
use crate::split::bytes::{Kinds, Plain};
use crate::split::is_letter;

/// Bytes that are searched for a letter or a line end before a block and after it.
const FAR: usize = 512;

/// Bytes that are searched for a boundary at once.
const BLOCK: usize = 24;

/// Where a text may be cut, from the finest to the coarsest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    CodePoint,
    Grapheme,
    Word,
    Sentence,
    Line,
    Paragraph,
}

/// From the finest to the coarsest.
pub const LEVELS: [Level; 6] = [
    Level::CodePoint,
    Level::Grapheme,
    Level::Word,
    Level::Sentence,
    Level::Line,
    Level::Paragraph,
];

/// The text near a place does not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecided;

/// A text to search for boundaries.
#[derive(Clone, Copy)]
pub struct Excerpt<'a> {
    pub text: &'a str,
    /// Whether it is the start of the whole text.
    pub is_start: bool,
}

/// The last boundary of a level after `start` and at or before `place` that `is_wanted`; `place` is
/// a character boundary inside the text.
pub fn last(
    level: Level,
    part: Excerpt<'_>,
    start: usize,
    place: usize,
    mut is_wanted: impl FnMut(usize) -> Result<bool, Undecided>,
) -> Result<Option<usize>, Undecided> {
    let text = part.text;
    if matches!(level, Level::Line | Level::Paragraph) {
        for end in line_ends(text.as_bytes(), start, place) {
            if (level == Level::Line || ends_paragraph(text, end)) && is_wanted(end)? {
                return Ok(Some(end));
            }
        }
        return Ok(None);
    }
    let mut high = place;
    while high > start {
        let low = text.floor_char_boundary(high.saturating_sub(BLOCK).max(start));
        for end in between(level, part, low, high)?.into_iter().rev() {
            if is_wanted(end)? {
                return Ok(Some(end));
            }
        }
        high = low;
    }
    Ok(None)
}

/// The boundaries of a level after `low` and up to `high`; where that is the end of the text, the
/// text is complete.
pub fn between(
    level: Level,
    part: Excerpt<'_>,
    low: usize,
    high: usize,
) -> Result<Vec<usize>, Undecided> {
    let near = &part.text.as_bytes()[low..part.text.len().min(high + 1)];
    let is_plain = || near.iter().all(|&byte| byte.is_ascii() && byte != b'\r');
    match level {
        Level::Grapheme if !is_plain() => parts_between(breaks::graphemes, part, low, high),
        Level::CodePoint | Level::Grapheme => Ok((low + 1..=high)
            .filter(|&place| part.text.is_char_boundary(place))
            .collect()),
        Level::Word => parts_between(breaks::words, part, low, high),
        Level::Sentence => parts_between(breaks::sentences, part, low, high),
        Level::Line | Level::Paragraph => {
            let mut ends = Vec::new();
            last(level, part, low, high, |end| {
                ends.push(end);
                Ok(false)
            })?;
            ends.reverse();
            Ok(ends)
        }
    }
}

/// As `between`, by Unicode Standard Annex 29.
///
/// What stands before a letter or a line end changes no boundary after it, and what stands after
/// one changes none before it: no rule of Unicode Standard Annex 29 looks beyond one.
fn parts_between(
    ends: breaks::Ends,
    part: Excerpt<'_>,
    low: usize,
    high: usize,
) -> Result<Vec<usize>, Undecided> {
    let text = part.text;
    let mut first = low;
    while !next_char(text, first).is_some_and(resets) {
        if first == 0 {
            if part.is_start {
                break;
            }
            return Err(Undecided);
        }
        first = text.floor_char_boundary(first - 1);
        if low - first > FAR {
            return Err(Undecided);
        }
    }
    let (mut last, mut is_decided) = (high, high == text.len());
    while !is_decided
        && last - high <= FAR
        && let Some(next) = next_char(text, last)
    {
        last += next.len_utf8();
        is_decided = resets(next);
    }
    let ends = ends(&text[first..last]).into_iter().map(|end| first + end);
    let ends: Vec<usize> = ends.filter(|end| (low + 1..=high).contains(end)).collect();
    // More text makes no end before it.
    if is_decided || ends.is_empty() {
        Ok(ends)
    } else {
        Err(Undecided)
    }
}

/// Whether no rule looks beyond a character: a letter or the end of a line. Not half-width sound
/// marks, which belong to the character before them, and the letter that is a pictograph too.
fn resets(character: char) -> bool {
    match character {
        '\n' | '\r' => true,
        '\u{2139}' | '\u{ff9e}' | '\u{ff9f}' => false,
        _ => is_letter(character),
    }
}

/// The line ends after `start` and up to `place`, from the last to the first.
fn line_ends(bytes: &[u8], start: usize, mut place: usize) -> impl Iterator<Item = usize> {
    // Of the block from `place` on, the bytes that may be the last one of a line.
    let mut last = 0_u64;
    let any = std::iter::from_fn(move || {
        while last == 0 && place > start {
            if let Some(block) = bytes[start..place].last_chunk() {
                let kinds = Kinds::of::<Plain>(block);
                let letters = kinds.caseless << 1 | kinds.caseless << 2;
                last = kinds.newline | kinds.blank & !kinds.space | kinds.trailing & !letters;
                place -= block.len();
            } else {
                (place, last) = (place - 1, 1);
            }
        }
        let bit = last.checked_ilog2()?;
        last ^= 1 << bit;
        Some(place + bit as usize + 1)
    });
    any.filter(|&end| ends_line(bytes, end))
}

/// Whether a line ends at a place: LF, CR LF, CR, VT, FF, NEL, U+2028 or U+2029 stands before it.
fn ends_line(bytes: &[u8], place: usize) -> bool {
    match bytes[..place] {
        [.., b'\r'] => bytes.get(place) != Some(&b'\n'),
        [.., b'\n' | 0x0b | 0x0c] | [.., 0xc2, 0x85] | [.., 0xe2, 0x80, 0xa8 | 0xa9] => true,
        _ => false,
    }
}

/// Whether a line that ends at `end` is blank, and another ends before it.
fn ends_paragraph(text: &str, end: usize) -> bool {
    if end > 1 && text.as_bytes()[end - 2].is_ascii_graphic() {
        return false;
    }
    let line = &text[..end];
    let line = line
        .strip_suffix("\r\n")
        .unwrap_or_else(|| &line[..line.floor_char_boundary(end - 1)]);
    let before = line.trim_end_matches([' ', '\t']);
    before.ends_with([
        '\r', '\n', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
    ])
}

fn next_char(text: &str, at: usize) -> Option<char> {
    text[at..].chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::tests::{HARD, random_text};
    use fastrand::Rng;

    fn whole(text: &str) -> Excerpt<'_> {
        Excerpt {
            text,
            is_start: true,
        }
    }

    #[test]
    fn boundaries_near_a_place_are_those_of_the_whole_text() {
        let mut random = Rng::with_seed(20_261_123);
        let more = "? |. |! A|🇩🇪|👨\u{200d}👩|ｶﾞ|क\u{94d}ष|。|๑|แม่|\u{600}1".split('|');
        let more: Vec<&str> = more.collect();
        for _ in 0..if cfg!(miri) { 5 } else { 20_000 } {
            let few: Vec<&str> = (0..4)
                .map(|_| match random.usize(..3) {
                    0 => more[random.usize(..more.len())],
                    _ => HARD[random.usize(..HARD.len())],
                })
                .collect();
            let text = random_text(&mut random, &few, 30);
            for ends in [breaks::graphemes, breaks::words, breaks::sentences] {
                let all = ends(&text);
                let places = text.char_indices().map(|(place, _)| place);
                let places = places.chain([text.len()]);
                for place in places.filter(|&place| place > 0) {
                    let low = text.floor_char_boundary(place.saturating_sub(4));
                    let Ok(found) = parts_between(ends, whole(&text), low, place) else {
                        continue;
                    };
                    let expected: Vec<usize> = all
                        .iter()
                        .copied()
                        .filter(|&end| low < end && end <= place)
                        .collect();
                    assert_eq!(found, expected, "{text:?} {low} {place}");
                }
            }
        }
    }

    #[test]
    fn no_rule_looks_beyond_a_letter_or_a_line_end() {
        let letters = (0..=0x0010_ffff_u32)
            .filter_map(char::from_u32)
            .filter(|&c| resets(c));
        let every = if cfg!(debug_assertions) { 97 } else { 1 };
        for letter in ['\n', '\r'].into_iter().chain(letters.step_by(every)) {
            for left in "|a.|a. |!\n|🇩|👩\u{200d}|ｱ|1,|क\u{94d}".split('|') {
                for right in " b. C|1|.B|\u{301}'b|🇩|\u{200d}👩|。b|\n".split('|') {
                    let (whole, alone) =
                        (format!("{left}{letter}{right}"), format!("{letter}{right}"));
                    for ends in [breaks::graphemes, breaks::words, breaks::sentences] {
                        let from = left.len();
                        let found = ends(&whole).into_iter();
                        let found: Vec<usize> = found
                            .filter(|&end| end > from)
                            .map(|end| end - from)
                            .collect();
                        assert_eq!(found, ends(&alone), "{whole:?}");
                    }
                }
            }
        }
    }
}
