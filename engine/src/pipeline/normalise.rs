//! Applies normalisers to a stretch of text: step 2 of docs/formats.md.

use std::borrow::Cow;
use std::collections::HashMap;

use super::charsmap::CharsMap;
use super::origins::{Aligned, Made, Plain, Traced};
use super::search::Search;
use super::spacing::Spacing;
use super::unicode::UnicodeForm;
use crate::cancel;
use crate::split::regex::CharSet;

/// A step.
pub enum Normaliser {
    Unicode(UnicodeForm),
    /// The lower case of each character that has another one.
    Lowercase(HashMap<char, String>),
    Prepend(String),
    Replace(Search, String),
    Surround(Search, String),
    Strip {
        left: bool,
        right: bool,
    },
    CharsMap(Box<CharsMap>),
    Spacing(Box<Spacing>),
}

/// The steps of a pipeline.
pub struct Normalisers {
    pub steps: Vec<Normaliser>,
    /// Characters that normalisation forms neither change nor combine.
    pub younger: CharSet,
}

impl Normalisers {
    /// Apply all steps.
    pub fn apply<'t>(&self, stretch: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(stretch);
        for step in self.steps.iter().take_while(|_| !cancel::is_set()) {
            text = match text {
                Cow::Borrowed(text) => self.one(step, text),
                Cow::Owned(text) => match self.one(step, &text) {
                    Cow::Borrowed(same) if same.len() == text.len() => Cow::Owned(text),
                    other => Cow::Owned(other.into_owned()),
                },
            };
        }
        text
    }

    /// Apply all steps to a text that tracks its origin.
    pub fn apply_traced(&self, mut stretch: Aligned, original: &str) -> Aligned {
        for step in self.steps.iter().take_while(|_| !cancel::is_set()) {
            if let &Normaliser::Strip { left, right } = step {
                let text = stretch.text.as_str();
                let kept = if left { text.trim_start() } else { text };
                let start = text.len() - kept.len();
                let end = start + if right { kept.trim_end() } else { kept }.len();
                stretch.cut(start..end);
                continue;
            }
            let mut made = Traced::of(&stretch, original);
            let text = stretch.text.as_str();
            match step {
                Normaliser::Unicode(form) => form.trace(text, |c| self.is_younger(c), &mut made),
                _ => whole(step, text, &mut made),
            }
            let mut made = made.made;
            if let (Normaliser::CharsMap(_), Some(&first)) = (step, stretch.starts.first()) {
                // As in `tokenizers`: characters that the map drops at the start move its place.
                let size = made.text.chars().next().map_or(0, char::len_utf8);
                made.starts[..size].fill(first);
            }
            stretch = made;
        }
        stretch
    }

    fn one<'t>(&self, step: &Normaliser, text: &'t str) -> Cow<'t, str> {
        match step {
            Normaliser::Unicode(form) => form.apply(text, |character| self.is_younger(character)),
            Normaliser::Lowercase(_) if text.is_ascii() => Cow::Owned(text.to_ascii_lowercase()),
            Normaliser::Replace(search, content) => {
                let mut made = Plain::of(text);
                if replace(text, search, content, &mut made) {
                    Cow::Owned(made.made)
                } else {
                    Cow::Borrowed(text)
                }
            }
            &Normaliser::Strip { left, right } => {
                let text = if left { text.trim_start() } else { text };
                Cow::Borrowed(if right { text.trim_end() } else { text })
            }
            _ => {
                let mut made = Plain::of(text);
                whole(step, text, &mut made);
                Cow::Owned(made.made)
            }
        }
    }

    fn is_younger(&self, character: char) -> bool {
        self.younger.contains(u32::from(character))
    }
}

/// Apply a step that determines the origin of all its output.
fn whole(step: &Normaliser, text: &str, made: &mut impl Made) {
    match step {
        Normaliser::Lowercase(lower) => lowercase(text, lower, made),
        Normaliser::Prepend(before) => {
            if !text.is_empty() {
                made.given(before, 0);
                made.kept(0..text.len());
            }
        }
        Normaliser::Replace(search, content) => {
            if !replace(text, search, content, made) {
                made.kept(0..text.len());
            }
        }
        Normaliser::Surround(search, content) => surround(text, search, content, made),
        Normaliser::CharsMap(map) => map.apply(text, made),
        Normaliser::Spacing(spacing) => spacing.apply(text, made),
        Normaliser::Unicode(_) | Normaliser::Strip { .. } => made.kept(0..text.len()),
    }
}

fn lowercase(text: &str, lower: &HashMap<char, String>, made: &mut impl Made) {
    let mut same = 0;
    for (at, character) in text.char_indices() {
        let ascii = [character.to_ascii_lowercase() as u8];
        let small = if character.is_ascii_uppercase() {
            std::str::from_utf8(&ascii).unwrap_or_default()
        } else if character.is_ascii() {
            continue;
        } else if let Some(small) = lower.get(&character) {
            small
        } else {
            continue;
        };
        made.kept(same..at);
        made.given(small, at);
        same = at + character.len_utf8();
    }
    made.kept(same..text.len());
}

/// Returns: whether something was replaced; otherwise there is no output.
fn replace(text: &str, search: &Search, content: &str, made: &mut impl Made) -> bool {
    let mut at = 0;
    search.each_match(text, |start, end| {
        made.kept(at..start);
        made.given(content, end - 1);
        at = end;
    });
    if at > 0 {
        made.kept(at..text.len());
    }
    at > 0
}

fn surround(text: &str, search: &Search, content: &str, made: &mut impl Made) {
    let mut at = 0;
    search.each_match(text, |start, end| {
        made.kept(at..start);
        made.given(content, start);
        made.kept(start..end);
        made.given(content, start);
        at = end;
    });
    made.kept(at..text.len());
}
