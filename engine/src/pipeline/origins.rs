//! Tracks the origin of each character in the original text: the twin of `pipeline/aligned.py`.
//!
//! Steps write their output to a `Made`: either one that stores only text, which is sufficient for
//! ids, or one that also tracks its origin.

use std::ops::Range;

/// A text, and for each of its bytes the start of its character's source in the original.
#[derive(Default)]
pub struct Aligned {
    pub text: String,
    pub starts: Vec<usize>,
}

impl Aligned {
    /// A part of the original text.
    pub fn original(text: &str, part: Range<usize>) -> Self {
        Aligned {
            text: text[part.clone()].to_owned(),
            starts: part.map(|at| text.floor_char_boundary(at)).collect(),
        }
    }

    /// Add `text`, which was made from the source text at `start`.
    pub fn push(&mut self, text: &str, start: usize) {
        self.text.push_str(text);
        self.starts.resize(self.text.len(), start);
    }

    /// Remove the text outside a range.
    pub fn cut(&mut self, range: Range<usize>) {
        self.text.truncate(range.end);
        self.text.drain(..range.start);
        self.starts.truncate(range.end);
        self.starts.drain(..range.start);
    }
}

/// The known origin of a piece: that of each byte, or only whether the piece is at the start of the
/// original text.
#[derive(Clone, Copy)]
pub struct Origins<'a> {
    /// The origin of each byte, if it is tracked.
    pub starts: Option<&'a [usize]>,
    /// Whether the first character comes from the first one of the original text.
    pub at_start: bool,
}

impl<'a> Origins<'a> {
    /// Track only whether the piece is at the start of the original text.
    pub fn untracked(at_start: bool) -> Self {
        Origins {
            starts: None,
            at_start,
        }
    }

    /// Track the origin of each byte.
    pub fn of(starts: &'a [usize]) -> Self {
        Origins {
            starts: Some(starts),
            at_start: starts.first() == Some(&0),
        }
    }

    /// The origin of a part of the piece.
    #[inline]
    pub fn part(self, range: Range<usize>) -> Self {
        match self.starts {
            Some(starts) => Origins::of(&starts[range]),
            None => Origins::untracked(self.at_start && range.start == 0),
        }
    }
}

/// The output of a step, written in order.
pub trait Made {
    /// Copy a range of the text unchanged.
    fn kept(&mut self, range: Range<usize>);

    /// Write `text`, whose source is the character at the byte `from`.
    fn given(&mut self, text: &str, from: usize);

    /// The output so far.
    fn text(&self) -> &str;

    /// Truncate the output to `length` bytes, then append `pad`, whose origin is that of the
    /// removed part, or else the end of the text.
    fn end(&mut self, length: usize, pad: Option<char>);
}

/// Output without origins.
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

    /// Reserves extra capacity, because spaces often become longer. Only on first use, because many
    /// steps change nothing.
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

/// Output with origins.
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
        let last = self.source.starts.last();
        let after = last.map_or(0, |&start| self.original.ceil_char_boundary(start + 1));
        let start = self.made.starts.get(length).copied().unwrap_or(after);
        self.made.cut(0..length);
        if let Some(pad) = pad {
            self.made.push(pad.encode_utf8(&mut [0; 4]), start);
        }
    }
}
