//! Applies pre-tokenizers to a piece: step 4 of docs/formats.md.

use std::iter::once;

use super::origins::{Aligned, Origins};
use super::search::Search;
use crate::split::{Ends, Splitter};

/// The treatment of the matches of a split.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    Isolated,
    Removed,
    MergedWithPrevious,
    MergedWithNext,
    Contiguous,
}

/// A step.
pub enum PreTokenizer {
    /// Isolates the matches of a pattern that has a scanner, or never matches the empty string.
    Scan(Splitter),
    Split {
        search: Search,
        behaviour: Behaviour,
        inverted: bool,
    },
    Substitute(char, char),
    Prefix {
        character: char,
        first_only: bool,
    },
    ByteAlphabet,
}

/// Apply the steps to a piece, and call `work` with each resulting piece and its origins in order,
/// until it returns false.
///
/// Returns: false if `work` returned false.
pub fn each_piece(
    steps: &[PreTokenizer],
    piece: &str,
    origins: Origins<'_>,
    work: &mut impl FnMut(&str, Origins<'_>) -> bool,
) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        return piece.is_empty() || work(piece, origins);
    };
    match step {
        _ if piece.is_empty() => true,
        PreTokenizer::Scan(splitter) => {
            let mut ends = Ends::new();
            let mut at = 0;
            while at < piece.len() {
                splitter.fill(piece, at, &mut ends);
                for &end in ends.as_slice() {
                    if !each_piece(rest, &piece[at..end], origins.part(at..end), work) {
                        return false;
                    }
                    at = end;
                }
            }
            true
        }
        PreTokenizer::Split {
            search,
            behaviour,
            inverted,
        } => {
            let spans = spans(piece, search, *behaviour, *inverted);
            spans.into_iter().all(|(start, end)| {
                each_piece(rest, &piece[start..end], origins.part(start..end), work)
            })
        }
        &PreTokenizer::Substitute(old, new) => {
            if !piece.contains(old) {
                return each_piece(rest, piece, origins, work);
            }
            let characters = piece.char_indices();
            let characters = characters.map(|(at, c)| (at, if c == old { new } else { c }));
            let text = || piece.replace(old, new.encode_utf8(&mut [0; 4]));
            each_remade(rest, text, characters, origins, work)
        }
        &PreTokenizer::Prefix {
            character,
            first_only,
        } => {
            if piece.starts_with(character) || (first_only && !origins.at_start) {
                return each_piece(rest, piece, origins, work);
            }
            let characters = once((0, character)).chain(piece.char_indices());
            let text = || [&*character.encode_utf8(&mut [0; 4]), piece].concat();
            each_remade(rest, text, characters, origins, work)
        }
        PreTokenizer::ByteAlphabet => {
            let characters = piece.bytes().map(written);
            let text = || characters.clone().collect();
            each_remade(rest, text, characters.clone().enumerate(), origins, work)
        }
    }
}

/// As `each_piece`, for the text that a step makes from a piece with these origins: `characters`,
/// each with the byte of the piece that it comes from. `text` makes all of it, faster.
fn each_remade(
    steps: &[PreTokenizer],
    text: impl Fn() -> String,
    characters: impl Iterator<Item = (usize, char)>,
    origins: Origins<'_>,
    work: &mut impl FnMut(&str, Origins<'_>) -> bool,
) -> bool {
    let Some(starts) = origins.starts else {
        return each_piece(steps, &text(), origins, work);
    };
    let mut made = Aligned::default();
    for (at, character) in characters {
        made.push(character.encode_utf8(&mut [0; 4]), starts[at]);
    }
    each_piece(steps, &made.text, Origins::of(&made.starts), work)
}

/// The start and the end of each piece; pieces may be empty.
fn spans(
    piece: &str,
    search: &Search,
    behaviour: Behaviour,
    inverted: bool,
) -> Vec<(usize, usize)> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    let mut before = false;
    let mut add = |start, end, is_match| {
        let joins = match behaviour {
            Behaviour::Removed if is_match => return,
            Behaviour::Isolated | Behaviour::Removed => false,
            Behaviour::MergedWithPrevious => !before && is_match,
            Behaviour::MergedWithNext => before && !is_match,
            Behaviour::Contiguous => before == is_match,
        };
        match spans.last_mut() {
            Some(last) if joins => last.1 = end,
            _ => spans.push((start, end)),
        }
        before = is_match;
    };
    let mut at = 0;
    search.each_match(piece, |start, end| {
        if start > at {
            add(at, start, inverted);
        }
        add(start, end, !inverted);
        at = end;
    });
    if at < piece.len() {
        add(at, piece.len(), inverted);
    }
    spans
}

/// The character that encodes a byte; see `pipeline/byte_alphabet.py`.
pub fn written(byte: u8) -> char {
    let others = match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => return char::from(byte),
        0..=0x20 => u32::from(byte),
        0x7f..=0xa0 => u32::from(byte) - 0x7f + 0x21,
        0xad => 0x43,
    };
    char::from_u32(0x100 + others).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The bytes of a piece; if it is written in `ByteAlphabet`'s characters, those that it encodes, in
/// `buffer`.
#[inline(always)]
pub fn bytes_of<'a>(piece: &'a str, is_written: bool, buffer: &'a mut Vec<u8>) -> &'a [u8] {
    if !is_written {
        return piece.as_bytes();
    }
    buffer.clear();
    buffer.extend(piece.chars().map(|character| match character {
        '\u{100}'..='\u{120}' => (u32::from(character) - 0x100) as u8,
        '\u{121}'..='\u{142}' => (u32::from(character) - 0x121 + 0x7f) as u8,
        '\u{143}' => 0xad,
        other => u32::from(other) as u8,
    }));
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_behaviour_treats_matches_as_it_says() {
        let search = Search::new("-").expect("a literal");
        for (behaviour, inverted, expected) in [
            (Behaviour::Isolated, false, &["a", "-", "-", "b", "-"][..]),
            (Behaviour::Removed, false, &["a", "b"]),
            (Behaviour::Removed, true, &["-", "-", "-"]),
            (Behaviour::MergedWithPrevious, false, &["a-", "-", "b-"]),
            (Behaviour::MergedWithNext, false, &["a", "-", "-b", "-"]),
            (Behaviour::Contiguous, false, &["a", "--", "b", "-"]),
        ] {
            let found: Vec<&str> = spans("a--b-", &search, behaviour, inverted)
                .into_iter()
                .map(|(start, end)| &"a--b-"[start..end])
                .collect();
            assert_eq!(found, expected);
        }
    }
}
