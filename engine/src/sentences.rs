//! The ends of sentences, by rules SB1 to SB998 of Unicode Standard Annex 29, in linear time.
//!
//! `unicode-segmentation` looks ahead again at each character after a full stop, which is quadratic.
//! Its tables are private: the property of a character is found from where it ends sentences.

use std::sync::atomic::{AtomicU8, Ordering};

use unicode_segmentation::UnicodeSegmentation;

// The properties that the rules distinguish; 0 is one that is not known yet. First what may end a
// sentence, then with it what decides whether one ends after a full stop.
const CR: u8 = 1;
const LF: u8 = 2;
const SEPARATOR: u8 = 3;
const FULL_STOP: u8 = 4;
const OTHER_STOP: u8 = 5;
const LOWER: u8 = 6;
const UPPER: u8 = 7;
const LETTER: u8 = 8;
const NUMERIC: u8 = 9;
const SPACE: u8 = 10;
const CLOSE: u8 = 11;
const CONTINUE: u8 = 12;
/// Extend and Format, which no rule distinguishes.
const EXTEND: u8 = 13;
const OTHER: u8 = 14;

/// Returns the ends of all sentences of `text`, in bytes; empty for "".
pub fn ends(text: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut before = OTHER;
    // What follows the last stop: FULL_STOP for nothing, CLOSE, then SPACE; OTHER ends its rules.
    let (mut since, mut is_full_stop, mut is_after_case) = (OTHER, false, false);
    // The last character that decided about a full stop, and whether it is a lower-case letter.
    let mut decides = (0, false);
    for (at, character) in text.char_indices() {
        let property = property(character);
        let ends_here = match (before, property) {
            (CR, LF) => false,
            (CR | LF | SEPARATOR, _) => true,
            (_, EXTEND) if at > 0 => continue,
            _ if since == OTHER => false,
            (FULL_STOP, NUMERIC) => false,
            (FULL_STOP, UPPER) if is_after_case => false,
            _ if is_full_stop && is_lower_next(text, at, &mut decides) => false,
            (_, CLOSE) => since == SPACE,
            (_, LOWER | UPPER | LETTER | NUMERIC | OTHER) => true,
            _ => false,
        };
        if ends_here {
            ends.push(at);
        }
        since = match property {
            FULL_STOP | OTHER_STOP => {
                is_full_stop = property == FULL_STOP;
                is_after_case = matches!(before, UPPER | LOWER);
                FULL_STOP
            }
            CLOSE if since != OTHER && since != SPACE => CLOSE,
            SPACE if since != OTHER => SPACE,
            _ => OTHER,
        };
        before = property;
    }
    if !text.is_empty() {
        ends.push(text.len());
    }
    ends
}

/// Whether text may hold what ends a sentence: a stop or the end of a line.
pub fn may_end(text: &str) -> bool {
    text.chars().any(|each| property(each) <= OTHER_STOP)
}

/// Whether the first letter, stop or line end from `at` on is a lower-case letter; `decides` is the last
/// answer, which holds up to its position.
fn is_lower_next(text: &str, at: usize, decides: &mut (usize, bool)) -> bool {
    if at > decides.0 {
        let mut next = text[at..].char_indices();
        let found = next.find(|&(_, each)| property(each) <= LETTER);
        *decides = found.map_or((text.len(), false), |(i, c)| (at + i, property(c) == LOWER));
    }
    decides.1
}

fn property(character: char) -> u8 {
    static KNOWN: [AtomicU8; 0x11_0000] = [const { AtomicU8::new(0) }; 0x11_0000];
    let known = &KNOWN[character as usize];
    let mut property = known.load(Ordering::Relaxed);
    if property == 0 {
        property = find_property(character);
        known.store(property, Ordering::Relaxed);
    }
    property
}

fn find_property(character: char) -> u8 {
    let this = &character.to_string();
    // Whether a sentence ends between two texts.
    let ends = |left: &str, right: &str| {
        let text = [left, right].concat();
        let mut starts = text.split_sentence_bound_indices();
        starts.any(|(start, _)| start == left.len())
    };
    let after = |left: &str| [left, this].concat();
    match character {
        '\r' => CR,
        '\n' => LF,
        _ if ends(this, ")") => SEPARATOR,
        _ if ends("! ", this) && !ends("!", this) => CLOSE,
        _ if ends("!", this) => match character {
            _ if !ends(". ", this) => LOWER,
            _ if !ends(".", this) => NUMERIC,
            _ if !ends("a.", this) => UPPER,
            _ if ends(". ", &[this, "a"].concat()) => LETTER,
            _ => OTHER,
        },
        _ if ends(this, "A") && ends(this, "a") => OTHER_STOP,
        _ if ends(this, "A") => FULL_STOP,
        _ if !ends(&after("!"), "a") => CONTINUE,
        _ if ends(&after("!"), ")") => SPACE,
        _ => EXTEND,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::tests::HARD;
    use fastrand::Rng;

    fn check(text: &str) {
        let parts = text.split_sentence_bound_indices();
        let expected: Vec<usize> = parts.map(|(at, part)| at + part.len()).collect();
        assert_eq!(ends(text), expected, "{text:?}");
    }

    #[test]
    fn sentences_end_where_the_unicode_crate_ends_them() {
        let parts: Vec<char> = "..!。 \u{3000})\",-\n\r\u{85}aBʰא漢1\u{301}\u{ad}+"
            .chars()
            .collect();
        let mut random = Rng::with_seed(20_261_125);
        for round in 0..if cfg!(miri) { 20 } else { 50_000 } {
            let parts = (0..random.usize(..14)).map(|_| match round % 3 {
                0 => HARD[random.usize(..HARD.len())].to_string(),
                _ => parts[random.usize(..parts.len())].to_string(),
            });
            check(&parts.collect::<String>());
        }
        let every = if cfg!(debug_assertions) { 997 } else { 1 };
        for character in ('\0'..=char::MAX).step_by(every) {
            for around in ["a. @ b", "A.@B", "!) @)1", "1.@\u{301}A"] {
                check(&around.replace('@', character.encode_utf8(&mut [0; 4])));
            }
        }
    }
}
