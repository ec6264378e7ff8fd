//! Where the longest end of a text that fits a budget of tokens can begin.
//!
//! By the rules of `fit.rs`: the last tokens of a merged text are what their own bytes merge to as
//! well. The pre-token that holds a token ends where it does for one of the characters before it.

use crate::bpe::Bpe;
use crate::cancel;
use crate::context::concatenated::Concatenated;
use crate::context::fit::{Counts, PEEK};
use crate::output::Ids;

/// What `Bpe::fit_end` finds: a place before which no end that fits starts, None if the whole text
/// fits; and for some ends, where they start and how many tokens they have.
pub type End = (Option<usize>, Counts);

impl Bpe {
    /// Where to look for the longest end of ordinary text that has at most `budget` tokens.
    ///
    /// `text` is complete, or the end of a longer one: None if that has to be longer. The counts
    /// are those of ends behind `before`.
    pub fn fit_end(
        &self,
        text: &str,
        budget: usize,
        is_complete: bool,
        before: &str,
    ) -> Option<End> {
        let bytes = text.as_bytes();
        let longest = self.lengths().longest();
        let is_beside = !before.is_empty();
        let beside = if is_beside { longest } else { 0 };
        let least_before = self.least_before(before);
        let mut both = Concatenated::new(self, before, text);
        let mut ids = Ids::default();
        self.give_text(text, &mut ids);
        let Ids(ids) = ids;
        if !is_beside && ids.len() <= budget {
            return is_complete.then(|| (None, vec![(0, ids.len())]));
        }
        let rest = budget.saturating_sub(least_before);
        let last = &ids[ids.len().saturating_sub(rest)..];
        let cut = bytes.len() - last.iter().map(|&id| self.token_length(id)).sum::<usize>();
        // Beside other text a token may hold some of it.
        let longest_to = |place| match is_beside {
            true => self.lengths().longest_to(&bytes[..place]),
            false => self.longest_to(bytes, place),
        };
        let mut near = (cut..=(cut + longest).min(bytes.len()))
            .map(|place| place - longest_to(place))
            .min()
            .unwrap_or(cut);
        let mut counts = Counts::new();
        // The first character boundary up to which the tokens reach is tried too.
        let top = text.ceil_char_boundary(cut + beside.max(1));
        let mut place = top;
        let most = self.lengths().longest_in(bytes);
        while place > near && !cancel::is_set() {
            place -= 1;
            let least = (bytes.len() - place).saturating_sub(beside).div_ceil(most);
            if text.is_char_boundary(place) {
                let count = if least > rest {
                    least_before + least
                } else if is_beside {
                    both.count(before.len(), place).0
                } else {
                    both.right.count(place)
                };
                counts.push((place, count));
            }
            let first = place - longest_to(place);
            if least < rest && first < near {
                let ends = (first..=place).filter(|&at| is_beside && text.is_char_boundary(at));
                let ends = ends.map(|at| both.count(before.len(), at).1).collect();
                if both.right.least(place, ends) < rest {
                    near = first;
                }
            }
        }
        // What a token at the start of `text` could hold is not known.
        if !is_complete && near < longest + PEEK {
            return None;
        }
        counts.reverse();
        // Behind other text less may fit than alone.
        place = top;
        let mut fits = !is_beside || counts.iter().any(|&(_, count)| count <= budget);
        while !fits && place < bytes.len() && !cancel::is_set() {
            let count = both.count(before.len(), place).0;
            counts.push((place, count));
            fits = count <= budget;
            place = text.ceil_char_boundary(place + 1);
        }
        Some((Some(text.ceil_char_boundary(near)), counts))
    }

    /// The bytes of the longest token that ends at `place`.
    fn longest_to(&self, bytes: &[u8], place: usize) -> usize {
        (1..=self.lengths().longest_to(&bytes[..place]))
            .rev()
            .find(|&len| self.table().id_of(&bytes[place - len..place]).is_some())
            .unwrap_or(0)
    }
}
