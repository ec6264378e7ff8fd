//! The normaliser `Spacing` of docs/formats.md: maps strings and normalises spaces in one pass.

use aho_corasick::{AhoCorasick, Anchored, Input, StartKind};

use super::double_array::DoubleArray;
use super::origins::Made;
use crate::vocabulary::special::automaton;

/// The position of an additional space.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pad {
    Before,
    After,
    Nowhere,
}

/// A compiled step.
pub struct Spacing {
    table: Option<DoubleArray>,
    kept: Option<AhoCorasick>,
    tidy: bool,
    pad: Pad,
    mark: char,
    /// The bytes with which a key of the table, a kept string or a space may start.
    starts: [bool; 256],
}

impl Spacing {
    /// Compile a step; `table` is b"" for none. None if the table is invalid, or there are too many
    /// strings.
    pub fn new(table: &[u8], kept: &[String], tidy: bool, pad: Pad, mark: char) -> Option<Self> {
        let table = match table {
            b"" => None,
            table => Some(DoubleArray::new(table)?),
        };
        let is_key = |byte| table.as_ref().is_some_and(|it| it.starts_with(byte));
        let is_kept = |byte| kept.iter().any(|it| it.as_bytes().starts_with(&[byte]));
        let starts = std::array::from_fn(|byte| {
            let byte = byte as u8;
            byte == b' ' || is_key(byte) || is_kept(byte)
        });
        let kept = match kept {
            [] => None,
            kept => Some(automaton(kept, StartKind::Anchored)?),
        };
        Some(Spacing {
            table,
            kept,
            tidy,
            pad,
            mark,
            starts,
        })
    }

    /// Apply the step to one stretch.
    pub fn apply(&self, stretch: &str, made: &mut impl Made) {
        let mut buffer = [0; 4];
        let mark: &str = self.mark.encode_utf8(&mut buffer);
        let mut empty = true;
        let mut after_space = true;
        let mut at = 0;
        while at < stretch.len() {
            let run = self.plain_run(&stretch.as_bytes()[at..]);
            let (given, length) = if run == 0 {
                self.value_at(stretch, at)
            } else {
                (&stretch[at..at + run], run)
            };
            let from = at;
            at += length;
            if empty && self.tidy && given == " " {
                continue;
            }
            if empty && self.pad == Pad::Before {
                made.given(mark, from);
            }
            empty = false;
            if run > 0 {
                made.kept(from..at);
                after_space = false;
                continue;
            }
            let kept = if self.tidy && after_space {
                given.trim_start_matches(' ')
            } else {
                given
            };
            if !kept.is_empty() {
                let mut parts = kept.split(' ');
                made.given(parts.next().unwrap_or_default(), from);
                for part in parts {
                    made.given(mark, from);
                    made.given(part, from);
                }
                after_space = kept.ends_with(' ');
            }
        }
        if empty {
            return;
        }
        let text = made.text();
        let end = if self.tidy {
            text.trim_end_matches(self.mark).len()
        } else {
            text.len()
        };
        made.end(end, (self.pad == Pad::After).then_some(self.mark));
    }

    /// The number of bytes before the first one at which a key, a kept string or a space may start.
    /// Never ends within a character, because only first bytes are tested.
    fn plain_run(&self, bytes: &[u8]) -> usize {
        bytes
            .iter()
            .position(|&byte| self.starts[byte as usize])
            .unwrap_or(bytes.len())
    }

    /// The value at a position, and the length of its source.
    #[inline]
    fn value_at<'a>(&'a self, stretch: &'a str, at: usize) -> (&'a str, usize) {
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
