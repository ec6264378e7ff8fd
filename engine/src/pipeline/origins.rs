//! Where in the original text each character comes from: the twin of `pipeline/aligned.py`.
//!
//! Steps that make a text of another say so to a `Made`: one that keeps the text alone, which is
//! all that ids need, or one that keeps where it comes from as well.

use std::ops::Range;

/// A text, and for each of its bytes where in the original that starts which its character was
/// made from.
pub struct Aligned {
    pub text: String,
    pub starts: Vec<usize>,
}

impl Aligned {
    /// A part of the original text.
    pub fn original(text: &str, part: Range<usize>) -> Self {
        let mut starts = Vec::with_capacity(part.len());
        for (at, character) in text[part.clone()].char_indices() {
            starts.extend(std::iter::repeat_n(part.start + at, character.len_utf8()));
        }
        Aligned {
            text: text[part].to_owned(),
            starts,
        }
    }

    /// Add `text`, which was made from the source text at `start`.
    pub fn push(&mut self, text: &str, start: usize) {
        self.text.push_str(text);
        self.starts.resize(self.text.len(), start);
    }

    /// Without what is outside of this range.
    pub fn cut(&mut self, range: Range<usize>) {
        self.text.truncate(range.end);
        self.text.drain(..range.start);
        self.starts.truncate(range.end);
        self.starts.drain(..range.start);
    }
}

/// What is known of where a piece comes from: for each of its bytes, or only whether it starts
/// where the original text does.
#[derive(Clone, Copy)]
pub struct Origins<'a> {
    starts: Option<&'a [usize]>,
    at_start: bool,
}

impl<'a> Origins<'a> {
    /// Only whether the piece starts where the original text does.
    pub fn untracked(at_start: bool) -> Self {
        Origins {
            starts: None,
            at_start,
        }
    }

    /// For each byte.
    pub fn of(starts: &'a [usize]) -> Self {
        Origins {
            starts: Some(starts),
            at_start: starts.first() == Some(&0),
        }
    }

    /// Of a part of the piece.
    #[inline]
    pub fn part(self, range: Range<usize>) -> Self {
        match self.starts {
            Some(starts) => Origins::of(&starts[range]),
            None => Origins::untracked(self.at_start && range.start == 0),
        }
    }

    /// Whether the first character comes from the first one of the original text.
    pub fn is_at_start(self) -> bool {
        self.at_start
    }

    /// For each byte, if that is known.
    pub fn starts(self) -> Option<&'a [usize]> {
        self.starts
    }
}

/// What a step makes of a text, in order.
pub trait Made {
    /// These bytes of the text stay what they are.
    fn kept(&mut self, range: Range<usize>);

    /// `text` is made from the character that the byte at `from` is of.
    fn given(&mut self, text: &str, from: usize);

    /// What is made so far.
    fn text(&self) -> &str;

    /// Only the first `length` bytes stay, and `pad` takes the place of the others, or comes after
    /// the text.
    fn end(&mut self, length: usize, pad: Option<char>);
}

/// The text alone.
pub struct Plain<'t> {
    source: &'t str,
    pub made: String,
}

impl<'t> Plain<'t> {
    pub fn of(source: &'t str) -> Self {
        Plain {
            source,
            made: String::new(),
        }
    }

    /// Spaces often become longer. Taken at the first use only: many steps change nothing.
    #[inline]
    fn take_room(&mut self) {
        if self.made.capacity() == 0 {
            self.made
                .reserve(self.source.len() + self.source.len() / 3 + 4);
        }
    }
}

impl Made for Plain<'_> {
    #[inline]
    fn kept(&mut self, range: Range<usize>) {
        self.take_room();
        self.made.push_str(&self.source[range]);
    }

    #[inline]
    fn given(&mut self, text: &str, _from: usize) {
        self.take_room();
        self.made.push_str(text);
    }

    fn text(&self) -> &str {
        &self.made
    }

    fn end(&mut self, length: usize, pad: Option<char>) {
        self.made.truncate(length);
        self.made.extend(pad);
    }
}

/// The text, and where it comes from.
pub struct Traced<'t> {
    source: &'t Aligned,
    original: &'t str,
    pub made: Aligned,
}

impl<'t> Traced<'t> {
    pub fn of(source: &'t Aligned, original: &'t str) -> Self {
        Traced {
            source,
            original,
            made: Aligned {
                text: String::with_capacity(source.text.len()),
                starts: Vec::with_capacity(source.text.len()),
            },
        }
    }
}

impl Made for Traced<'_> {
    fn kept(&mut self, range: Range<usize>) {
        self.made.text.push_str(&self.source.text[range.clone()]);
        self.made.starts.extend(&self.source.starts[range]);
    }

    fn given(&mut self, text: &str, from: usize) {
        let start = self.source.starts.get(from).copied().unwrap_or_default();
        self.made.push(text, start);
    }

    fn text(&self) -> &str {
        &self.made.text
    }

    fn end(&mut self, length: usize, pad: Option<char>) {
        let after = self.source.starts.last().map_or(0, |&start| {
            start
                + self.original[start..]
                    .chars()
                    .next()
                    .map_or(0, char::len_utf8)
        });
        let start = self.made.starts.get(length).copied().unwrap_or(after);
        self.made.cut(0..length);
        if let Some(pad) = pad {
            self.made.push(pad.encode_utf8(&mut [0; 4]), start);
        }
    }
}
