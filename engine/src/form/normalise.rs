//! What each normaliser does to a stretch of text: step 2 of docs/formats.md.

use std::borrow::Cow;
use std::collections::HashMap;

use super::search::Search;
use super::spacing::Spacing;
use super::unicode::UnicodeForm;
use crate::general::CharSet;

/// One step.
pub enum Normaliser {
    Unicode(UnicodeForm),
    /// The characters that have another lower case, and it.
    Lowercase(HashMap<char, String>),
    Prepend(String),
    Replace(Search, String),
    Strip {
        left: bool,
        right: bool,
    },
    Spacing(Box<Spacing>),
}

/// The steps of a form.
pub struct Normalisers {
    pub steps: Vec<Normaliser>,
    /// Characters that no normalisation form changes or combines.
    pub younger: CharSet,
}

impl Normalisers {
    /// All steps, one after the other.
    pub fn apply<'t>(&self, stretch: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(stretch);
        for step in &self.steps {
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

    fn one<'t>(&self, step: &Normaliser, text: &'t str) -> Cow<'t, str> {
        match step {
            Normaliser::Unicode(form) => form.apply(text, |character| {
                self.younger.contains(u32::from(character))
            }),
            Normaliser::Lowercase(lower) => lowercase(text, lower),
            Normaliser::Prepend(_) if text.is_empty() => Cow::Borrowed(text),
            Normaliser::Prepend(before) => Cow::Owned([before, text].concat()),
            Normaliser::Replace(search, content) => replace(text, search, content),
            &Normaliser::Strip { left, right } => {
                let text = if left { text.trim_start() } else { text };
                Cow::Borrowed(if right { text.trim_end() } else { text })
            }
            Normaliser::Spacing(spacing) => Cow::Owned(spacing.apply(text)),
        }
    }
}

fn lowercase<'t>(text: &'t str, lower: &HashMap<char, String>) -> Cow<'t, str> {
    if text.is_ascii() {
        return Cow::Owned(text.to_ascii_lowercase());
    }
    let mut result = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            result.push(character.to_ascii_lowercase());
        } else {
            match lower.get(&character) {
                Some(other) => result.push_str(other),
                None => result.push(character),
            }
        }
    }
    Cow::Owned(result)
}

fn replace<'t>(text: &'t str, search: &Search, content: &str) -> Cow<'t, str> {
    let mut result = String::new();
    let mut at = 0;
    search.each_match(text, |start, end| {
        if at == 0 {
            result.reserve(text.len() + text.len() / 3);
        }
        result.push_str(&text[at..start]);
        result.push_str(content);
        at = end;
    });
    if at == 0 {
        return Cow::Borrowed(text);
    }
    result.push_str(&text[at..]);
    Cow::Owned(result)
}
