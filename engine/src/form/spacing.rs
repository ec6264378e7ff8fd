//! One walk over a stretch that maps strings to strings and makes its spaces regular: `Spacing`
//! of docs/formats.md.

use aho_corasick::{AhoCorasick, Anchored, Input, MatchKind, StartKind};

use super::double_array::DoubleArray;

/// Where a space is put.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pad {
    Before,
    After,
    Nowhere,
}

/// The step, ready.
pub struct Spacing {
    pub table: Option<DoubleArray>,
    pub kept: Option<AhoCorasick>,
    pub tidy: bool,
    pub pad: Pad,
    pub mark: char,
}

impl Spacing {
    /// An automaton for the strings that stay as they are; None for none.
    pub fn kept(strings: &[String]) -> Option<AhoCorasick> {
        if strings.is_empty() {
            return None;
        }
        AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .start_kind(StartKind::Anchored)
            .build(strings)
            .ok()
    }

    /// The step's result for one stretch.
    pub fn apply(&self, stretch: &str) -> String {
        let mut text = String::with_capacity(stretch.len() + stretch.len() / 4 + 4);
        let mut empty = true;
        let mut after_space = true;
        let mut at = 0;
        while at < stretch.len() {
            let (given, length) = self.place(stretch, at);
            at += length;
            if empty && self.tidy && given == " " {
                continue;
            }
            if empty && self.pad == Pad::Before {
                text.push(self.mark);
            }
            empty = false;
            let kept = if self.tidy && after_space {
                given.trim_start_matches(' ')
            } else {
                given
            };
            if !kept.is_empty() {
                self.push(kept, &mut text);
                after_space = kept.ends_with(' ');
            }
        }
        if empty {
            return String::new();
        }
        if self.tidy {
            text.truncate(text.trim_end_matches(self.mark).len());
        }
        if self.pad == Pad::After {
            text.push(self.mark);
        }
        text
    }

    fn push(&self, given: &str, text: &mut String) {
        let mut parts = given.split(' ');
        text.push_str(parts.next().unwrap_or_default());
        for part in parts {
            text.push(self.mark);
            text.push_str(part);
        }
    }

    /// What the place gives, and how long it is.
    #[inline]
    fn place<'a>(&'a self, stretch: &'a str, at: usize) -> (&'a str, usize) {
        if let Some(kept) = &self.kept {
            let here = Input::new(stretch).range(at..).anchored(Anchored::Yes);
            if let Some(found) = kept.find(here) {
                return (&stretch[at..found.end()], found.len());
            }
        }
        if let Some(table) = &self.table
            && let Some((length, value)) = table.longest(&stretch.as_bytes()[at..])
        {
            return (value, length);
        }
        let length = stretch[at..].chars().next().map_or(1, char::len_utf8);
        (&stretch[at..at + length], length)
    }
}
