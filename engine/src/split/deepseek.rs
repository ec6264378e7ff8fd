//! DeepSeek-V3's pre-tokenizer: three splits in sequence.
//!
//! Each split applies to every piece of the split before it, and text that no alternative matches
//! stays a piece. So numbers and runs of Han and Kana are segments of their own, and the third
//! pattern sees the end of its segment as the end of the text.

use super::class::*;
use super::piece::whitespace_end;
use super::rules::Llama3;

const PUNCTUATION_OR_SYMBOL: ClassSet = ClassSet::of(&[PUNCTUATION, SYMBOL]);
const LINE_ENDS: ClassSet = ClassSet::of(&[NEWLINE]);
const NEVER_PREFIX: ClassSet =
    ClassSet::of(&[NEWLINE, UPPER, LOWER, CASELESS, PUNCTUATION, SYMBOL]);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    /// `[一-龥぀-ゟ゠-ヿ]`.
    Ideographic,
    Rest,
}

fn kind(seen: Seen) -> Kind {
    match seen.code_point {
        0x4e00..=0x9fa5 | 0x3040..=0x30ff => Kind::Ideographic,
        _ if seen.class == NUMBER => Kind::Number,
        _ => Kind::Rest,
    }
}

/// A view of a text that ends at the first character of another kind.
struct Segment<'a> {
    text: &'a [u8],
    kind: Kind,
}

impl Segment<'_> {
    fn at(&self, i: usize) -> Option<Seen> {
        char_at(self.text, i).filter(|&seen| kind(seen) == self.kind)
    }

    fn run(&self, mut i: usize, set: ClassSet) -> usize {
        while let Some(seen) = self.at(i).filter(|seen| set.has(seen.class)) {
            i += seen.len;
        }
        i
    }

    /// Returns the end of the third pattern's match at `start`; None if it does not match there.
    fn match_end(&self, start: usize) -> Option<usize> {
        let first = self.at(start)?;
        let after = start + first.len;
        if first.code_point < 0x80 && PUNCTUATION_OR_SYMBOL.has(first.class) {
            let letters = self.text[after..]
                .iter()
                .take_while(|b| b.is_ascii_alphabetic());
            let count = letters.count();
            if count > 0 {
                return Some(after + count);
            }
        }
        let body = if LETTERS_AND_MARKS.has(first.class) || NEVER_PREFIX.has(first.class) {
            start
        } else {
            after
        };
        let end = self.run(body, LETTERS_AND_MARKS);
        if end > body {
            return Some(end);
        }
        let body = start + (first.code_point == 0x20) as usize;
        let end = self.run(body, PUNCTUATION_OR_SYMBOL);
        if end > body {
            return Some(self.run(end, LINE_ENDS));
        }
        // No white space is of another kind, so it splits as in Llama 3.
        let end = whitespace_end::<Llama3>(self.text, start, |end| self.at(end).is_none());
        (end > start).then_some(end)
    }
}

/// Returns the end of the pre-token that starts at byte `start` of `text`; see `piece::piece_end`.
pub fn piece_end(text: &[u8], start: usize) -> usize {
    let Some(first) = char_at(text, start) else {
        return start;
    };
    let segment = Segment {
        text,
        kind: kind(first),
    };
    if segment.kind == Kind::Number {
        let mut end = start;
        for _ in 0..3 {
            end += segment.at(end).map_or(0, |seen| seen.len);
        }
        return end;
    }
    if let Some(end) = segment.match_end(start) {
        return end;
    }
    let mut end = start + first.len;
    while let Some(seen) = segment.at(end)
        && segment.match_end(end).is_none()
    {
        end += seen.len;
    }
    end
}
