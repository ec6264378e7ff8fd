//! Finds the end of one pre-token, character by character.
//!
//! No pattern looks behind, so the end of a pre-token is a function of the text from its start.
//! `piece_end` is the definition; the block scanner finds the same ends faster.

use super::class::*;
use super::rules::*;

pub const UPPERISH: ClassSet = ClassSet::of(&[UPPER, CASELESS, MARK]);
/// The classes that both halves of a word may contain.
const SHARED: ClassSet = ClassSet::of(&[CASELESS, MARK]);
pub const LOWERISH: ClassSet = ClassSet::of(&[LOWER, CASELESS, MARK]);
const NEVER_PREFIX: ClassSet = ClassSet::of(&[NEWLINE, UPPER, LOWER, CASELESS, NUMBER]);

/// Returns the end of the pre-token that starts at byte `start` of `text`.
///
/// `start` must be below the length and at a character boundary. The result is greater than
/// `start`.
pub fn piece_end<F: Family>(text: &[u8], start: usize) -> usize {
    let Some(first) = char_at(text, start) else {
        return start;
    };
    let contraction = match F::RULES.contraction {
        Contraction::Leading | Contraction::LeadingExact => contraction_end::<F>(text, start),
        Contraction::Trailing | Contraction::None => None,
    };
    if let Some(end) = contraction
        .or_else(|| word_end::<F>(text, start, first))
        .or_else(|| number_end::<F>(text, start, first))
    {
        return end;
    }
    let body = start + (first.code_point == 0x20) as usize;
    let end = run_end(text, body, NEITHER);
    if end > body {
        return tail_end::<F>(text, end);
    }
    whitespace_end::<F>(text, start, |end| end == text.len())
}

/// Matches `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll` or `'d` at `start`.
fn contraction_end<F: Family>(text: &[u8], start: usize) -> Option<usize> {
    let rest = &text[start..];
    if rest.first() != Some(&b'\'') {
        return None;
    }
    let fold = |i: usize| {
        let byte = rest.get(i).copied().unwrap_or(0);
        if F::RULES.contraction == Contraction::LeadingExact {
            byte
        } else {
            byte | (byte.is_ascii_alphabetic() as u8) << 5
        }
    };
    match (fold(1), fold(2)) {
        (b's' | b'd' | b'm' | b't', _) => Some(start + 2),
        (b'l', b'l') | (b'v', b'e') | (b'r', b'e') => Some(start + 3),
        // U+017F, the long s, folds to s.
        (0xc5, 0xbf) if F::RULES.contraction != Contraction::LeadingExact => Some(start + 3),
        _ => None,
    }
}

fn word_end<F: Family>(text: &[u8], start: usize, first: Seen) -> Option<usize> {
    let prefixed = match F::RULES.prefix {
        Prefix::Space => first.code_point == 0x20,
        Prefix::NeitherLetterNorNumber => !NEVER_PREFIX.has(first.class),
    };
    let body = start + if prefixed { first.len } else { 0 };
    match F::RULES.word {
        Word::Letters => {
            let end = run_end(text, body, LETTERS);
            (end > body).then_some(end)
        }
        Word::Cased => {
            // A mark may be the prefix or part of the word: the second attempt has no prefix.
            let end = lower_word_end(text, body)
                .or_else(|| {
                    (first.class == MARK)
                        .then(|| lower_word_end(text, start))
                        .flatten()
                })
                .or_else(|| {
                    let end = run_end(text, body, UPPERISH);
                    (end > body).then_some(end)
                })?;
            let contraction = match F::RULES.contraction {
                Contraction::Trailing => contraction_end::<F>(text, end),
                _ => None,
            };
            Some(contraction.unwrap_or(end))
        }
    }
}

/// Matches `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` from `start`.
///
/// The greedy first half gives up characters until the second half has one: the last caseless
/// letter or mark of the run, if no lowercase letter follows it.
fn lower_word_end(text: &[u8], start: usize) -> Option<usize> {
    let mut end = start;
    let mut last_shared = None;
    loop {
        let past = run_end(text, end, SHARED);
        if past > end {
            last_shared = Some(past);
        }
        match char_at(text, past) {
            Some(seen) if seen.class == UPPER => end = past + seen.len,
            Some(seen) if seen.class == LOWER => return Some(run_end(text, past, LOWERISH)),
            _ => return last_shared,
        }
    }
}

fn number_end<F: Family>(text: &[u8], start: usize, first: Seen) -> Option<usize> {
    let spaced = F::RULES.prefix == Prefix::Space && first.code_point == 0x20;
    let body = start + spaced as usize;
    let mut end = body;
    for _ in 0..F::RULES.digits {
        match char_at(text, end) {
            Some(seen) if seen.class == NUMBER => end += seen.len,
            _ => break,
        }
    }
    (end > body).then_some(end)
}

fn tail_end<F: Family>(text: &[u8], mut end: usize) -> usize {
    let in_tail = |byte: u8| match F::RULES.tail {
        Tail::None => false,
        Tail::Newlines => matches!(byte, b'\r' | b'\n'),
        Tail::NewlinesAndSlashes => matches!(byte, b'\r' | b'\n' | b'/'),
    };
    while end < text.len() && in_tail(text[end]) {
        end += 1;
    }
    end
}

/// Matches those of `\s*[\r\n]+|\s+(?!\S)|\s+` that the pattern has, up to where the text, or the
/// part of it that the pattern sees, `ends_at`. Returns `start` if no white space is there.
pub fn whitespace_end<F: Family>(
    text: &[u8],
    start: usize,
    ends_at: impl Fn(usize) -> bool,
) -> usize {
    let mut end = start;
    let mut after_newline = start;
    let mut last = start;
    while let Some(seen) = char_at(text, end)
        && WHITESPACE.has(seen.class)
    {
        last = end;
        end += seen.len;
        if seen.class == NEWLINE {
            after_newline = end;
        }
    }
    let at_end = ends_at(end);
    if at_end && F::RULES.whole_end {
        end
    } else if F::RULES.newlines && after_newline > start {
        after_newline
    } else if at_end || last == start {
        end
    } else {
        last
    }
}
