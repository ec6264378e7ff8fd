//! Search for added tokens in text: steps 1 and 3 of docs/formats.md.

use std::ops::Range;

use aho_corasick::{AhoCorasick, StartKind};

use crate::bpe::SpecialFound;
use crate::split::regex::{CharSet, word_characters};
use crate::vocabulary::special::{SpecialSet, automaton};

/// An added token; `pipeline/definition.py` describes the fields.
pub struct AddedToken {
    pub content: String,
    pub id: u32,
    pub special: bool,
    pub name: String,
    pub left_strip: bool,
    pub right_strip: bool,
    pub single_word: bool,
}

/// A set of added tokens to search for.
pub struct AddedTokens {
    tokens: Vec<AddedToken>,
    search: AhoCorasick,
    word: CharSet,
    only_special: bool,
}

impl AddedTokens {
    pub fn new(tokens: Vec<AddedToken>) -> Self {
        let contents: Vec<&str> = tokens.iter().map(|token| token.content.as_str()).collect();
        let search = automaton(&contents, StartKind::Unanchored);
        AddedTokens {
            search: search.expect("as many strings as a vocabulary has"),
            word: CharSet::new(&word_characters()),
            only_special: tokens.iter().all(|token| token.special),
            tokens,
        }
    }

    /// Call `work` with each part of a text in order, until it returns false: an added token with
    /// its id, or the text between tokens. A disallowed special token is an error.
    pub fn each_part(
        &self,
        text: &str,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
        mut work: impl FnMut(Range<usize>, Option<u32>) -> bool,
    ) -> Result<(), SpecialFound> {
        let none_counts = self.only_special && allowed.is_empty() && disallowed.is_empty();
        let is_searched = !none_counts && !self.tokens.is_empty();
        let searched = if is_searched { text } else { "" };
        let mut end = 0;
        for found in self.search.find_iter(searched) {
            let token = &self.tokens[found.pattern()];
            let (mut start, mut stop) = (found.start(), found.end());
            if token.special {
                if disallowed.has(&token.name) {
                    return Err(SpecialFound {
                        token: token.name.clone(),
                        byte_offset: start,
                    });
                }
                if !allowed.has(&token.name) {
                    continue;
                }
            }
            if token.single_word && self.is_in_word(text, start, stop) {
                continue;
            }
            if token.left_strip {
                let taken = end.min(start); // white space may be within what was taken
                start = taken + text[taken..start].trim_end().len();
            }
            if token.right_strip {
                let from = stop.max(end); // up to there the token before it stripped white space
                stop = text.len() - text[from..].trim_start().len();
            }
            if token.left_strip && stop == end {
                continue; // as in `tokenizers`: the token before it stripped it
            }
            if end < start && !work(end..start, None) {
                return Ok(());
            }
            if !work(start..stop, Some(token.id)) {
                return Ok(());
            }
            end = stop;
        }
        if end < text.len() {
            work(end..text.len(), None);
        }
        Ok(())
    }

    fn is_in_word(&self, text: &str, start: usize, stop: usize) -> bool {
        let before = text[..start].chars().next_back();
        let after = text[stop..].chars().next();
        let is_word = |character: char| self.word.contains(u32::from(character));
        before.is_some_and(is_word) || after.is_some_and(is_word)
    }
}
