//! Unicode's normalisation forms, with the behaviour of published tokenizers.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::OnceLock;

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfd_quick};
use unicode_normalization::{is_nfkc_quick, is_nfkd_quick};

use super::origins::Made;
use crate::bpe::made;

/// Maximum length of a cluster, in characters, whose result is aligned by character. All of a
/// longer one's result has the cluster's start.
const MAX_TO_CUT: usize = 32;

/// A normalisation form.
#[derive(Clone, Copy)]
pub enum UnicodeForm {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

impl UnicodeForm {
    /// The form with a name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "NFC" => Some(UnicodeForm::Nfc),
            "NFD" => Some(UnicodeForm::Nfd),
            "NFKC" => Some(UnicodeForm::Nfkc),
            "NFKD" => Some(UnicodeForm::Nfkd),
            _ => None,
        }
    }

    /// Normalise a text. Characters for which `is_younger` is true are unchanged, and nothing
    /// combines across them.
    pub fn apply<'t>(self, text: &'t str, is_younger: impl Fn(char) -> bool) -> Cow<'t, str> {
        if text.is_ascii() || self.holds_quickly(text) {
            return Cow::Borrowed(text);
        }
        let mut normal = String::with_capacity(text.len());
        let mut start = 0;
        for (at, character) in text.char_indices() {
            if !character.is_ascii() && is_younger(character) {
                self.append(&text[start..at], &mut normal);
                normal.push(character);
                start = at + character.len_utf8();
            }
        }
        self.append(&text[start..], &mut normal);
        Cow::Owned(normal)
    }

    /// Normalise a text cluster by cluster, with origins. If a cluster can be split into parts that
    /// normalise independently, the result of each part has that part's start.
    pub fn trace(self, text: &str, is_younger: impl Fn(char) -> bool, made: &mut impl Made) {
        let mut start = 0;
        let mut after = text.char_indices().skip(1).peekable();
        while start < text.len() {
            let same = |&(_, c): &(usize, char)| !starts_cluster(c) && !is_younger(c);
            let mut cuts = Vec::new();
            while let Some((at, _)) = after.next_if(same) {
                cuts.push(at);
            }
            let end = after.next().map_or(text.len(), |(at, _)| at);
            if cuts.len() + 1 > MAX_TO_CUT {
                cuts.clear();
            }
            if end == start + 1 {
                made.kept(start..end);
            } else {
                let normal = self.apply(&text[start..end], &is_younger);
                let (mut done, mut from) = (0, start);
                for cut in cuts {
                    let before = self.apply(&text[start..cut], &is_younger);
                    let rest = self.apply(&text[cut..end], &is_younger);
                    if [&*before, &*rest].concat() == normal {
                        made.given(&normal[done..before.len()], from);
                        (done, from) = (before.len(), cut);
                    }
                }
                made.given(&normal[done..], from);
            }
            start = end;
        }
    }

    /// Whether a quick check of each character shows that nothing changes.
    fn holds_quickly(self, text: &str) -> bool {
        let answer = match self {
            UnicodeForm::Nfc => is_nfc_quick(text.chars()),
            UnicodeForm::Nfd => is_nfd_quick(text.chars()),
            UnicodeForm::Nfkc => is_nfkc_quick(text.chars()),
            UnicodeForm::Nfkd => is_nfkd_quick(text.chars()),
        };
        answer == IsNormalized::Yes
    }

    fn append(self, text: &str, to: &mut String) {
        match self {
            UnicodeForm::Nfc => to.extend(text.nfc()),
            UnicodeForm::Nfd => to.extend(text.nfd()),
            UnicodeForm::Nfkc => to.extend(text.nfkc()),
            UnicodeForm::Nfkd => to.extend(text.nfkd()),
        }
    }
}

/// Whether the text before `character` and the text from it on normalise independently in every
/// form: it is a starter that does not compose with the text before it.
fn starts_cluster(character: char) -> bool {
    if character < '\u{300}' {
        return true;
    }
    let first = std::iter::once(character).nfkd().next();
    let first = first.unwrap_or(character);
    canonical_combining_class(character) == 0
        && canonical_combining_class(first) == 0
        && !composing_backwards().contains(&first)
}

/// Returns the characters that may compose with the character before them: the last characters of
/// decompositions.
fn composing_backwards() -> &'static HashSet<char> {
    static CHARACTERS: OnceLock<HashSet<char>> = OnceLock::new();
    made(&CHARACTERS, || {
        ('\u{80}'..=char::MAX)
            .filter_map(|character| std::iter::once(character).nfd().skip(1).last())
            .collect()
    })
}
