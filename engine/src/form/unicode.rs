//! Unicode's normalisation forms, as published tokenizers apply them.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfd_quick};
use unicode_normalization::{is_nfkc_quick, is_nfkd_quick};

/// One of the four forms.
#[derive(Clone, Copy)]
pub enum UnicodeForm {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

impl UnicodeForm {
    /// The form of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "NFC" => Some(UnicodeForm::Nfc),
            "NFD" => Some(UnicodeForm::Nfd),
            "NFKC" => Some(UnicodeForm::Nfkc),
            "NFKD" => Some(UnicodeForm::Nfkd),
            _ => None,
        }
    }

    /// `text` in this form. A character for which `is_younger` holds stays as it is, and nothing
    /// combines across it.
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

    /// Whether one look at each character shows that nothing changes.
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
