//! Where to cut a text for the longest start that fits a budget of tokens.
//!
//! Counts are not monotone: every possible cut has to be tried, up to a place from which on none
//! can fit. This file finds that place, and checkpoints from which counting continues.
//!
//! *Checkpoints.* The end of a pre-token depends on the text from its start alone, up to where the
//! pattern looks: `reach` and three characters beyond. A text that is cut at or after that has the
//! same pre-tokens before it, so its count is theirs plus that of the rest. Once the pre-tokens
//! before a place exceed the budget, no text fits that is cut after the bytes that decided them.
//!
//! *Long pre-tokens.* Some are too long to try every cut. Let m(s, q) be the number of
//! tokens that the bytes from s to q merge to. The first tokens of a merged text are what their own
//! bytes merge to: merges of one side of a boundary that no merge crosses do not depend on the
//! other. So if a text cut at b fits, and the token that crosses some place x < b starts at q in a
//! pre-token that starts at s, then fewer tokens than the budget stand before q: those before s,
//! plus m(s, q). The starts s are those of the text cut at q, or the first one: a run of letters or
//! of white space has two ends that depend on what follows, the last one and the last place where
//! the pattern could stop. So x is a bound once no token that may start so early reaches x.

use crate::bpe::Bpe;
use crate::cancel;
use crate::context::concatenated::Concatenated;
use crate::context::prefixes::Prefixes;
use crate::output::Count;
use crate::split::Ends;

/// Bytes that a pattern may look at after `reach`: three characters.
pub const PEEK: usize = 12;

/// Pre-tokens that are counted at once.
const GROUP: usize = 64;

/// A place before which all pre-tokens are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The end of a pre-token.
    pub place: usize,
    /// A text cut here or later has the same pre-tokens up to `place`.
    pub valid_from: usize,
    /// The tokens before `place`.
    pub count: usize,
}

/// The text that `Bpe::fit_start` searches, and how.
#[derive(Clone, Copy)]
pub struct Start<'a> {
    /// A text, or unless `is_complete` the start of a longer one.
    pub text: &'a str,
    pub is_complete: bool,
    /// Every cut among this number of last bytes is tried; pre-tokens that are longer are searched
    /// inside.
    pub near: usize,
    /// What follows the start; None for nothing, and "" for a text that is not known.
    pub after: Option<&'a str>,
}

impl Start<'_> {
    /// The first character boundary at or after a place. If that is beyond the end, the end; or a
    /// place after it, if something follows.
    fn place(self, place: usize) -> usize {
        let is_beyond = self.after.is_some() && place > self.text.len();
        self.text.ceil_char_boundary(place) + usize::from(is_beyond)
    }
}

/// What `Bpe::fit_start` finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fit {
    /// In order; the first is the start of the text.
    pub checkpoints: Vec<Checkpoint>,
    /// A text cut here or later has too many tokens; None where the whole text fits.
    pub beyond: Option<usize>,
    /// For some earlier cuts: the place, and the number of tokens.
    pub counts: Counts,
}

/// Places in order, and the tokens before or after each. Beyond the budget the number may be lower,
/// but exceeds the budget too.
pub type Counts = Vec<(usize, usize)>;

impl Bpe {
    /// Where to look for the longest start of ordinary text that has at most `budget` tokens. None
    /// if a text that is not complete has to be longer.
    pub fn fit_start(&self, start: Start<'_>, budget: usize) -> Option<Fit> {
        let (text, is_complete) = (start.text, start.is_complete);
        let budget = budget.saturating_sub(self.least_after(start.after.unwrap_or_default()));
        let mut checkpoints = vec![Checkpoint::default()];
        let mut ends = Ends::new();
        while !cancel::is_set() {
            let last = checkpoints[checkpoints.len() - 1];
            if last.place == text.len() {
                return is_complete.then_some(Fit {
                    checkpoints,
                    beyond: None,
                    counts: Counts::new(),
                });
            }
            self.splitter().fill(text, last.place, &mut ends);
            for group in ends.as_slice().chunks(GROUP) {
                let last = checkpoints[checkpoints.len() - 1];
                let count = last.count + self.count_pieces(text.as_bytes(), last.place, group);
                if count > budget {
                    return self.search_group(start, budget, group, checkpoints);
                }
                checkpoints.push(self.checkpoint(start, last, group, count));
            }
        }
        None
    }

    /// Searches the group of pre-tokens in which the tokens come to exceed the budget.
    fn search_group(
        &self,
        start: Start<'_>,
        budget: usize,
        mut group: &[usize],
        mut checkpoints: Vec<Checkpoint>,
    ) -> Option<Fit> {
        let (text, is_complete) = (start.text, start.is_complete);
        // Half of them at once: fewer checkpoints, and fewer calls.
        while group.len() > 1 {
            let last = checkpoints[checkpoints.len() - 1];
            let (half, rest) = group.split_at(group.len() / 2);
            let count = last.count + self.count_pieces(text.as_bytes(), last.place, half);
            if count > budget {
                group = half;
            } else {
                checkpoints.push(self.checkpoint(start, last, half, count));
                group = rest;
            }
        }
        let last = checkpoints[checkpoints.len() - 1];
        let valid_from = self.checkpoint(start, last, group, last.count).valid_from;
        let (beyond, counts) = if valid_from - last.place <= start.near {
            (valid_from, Counts::new())
        } else {
            self.look_into(start, last.place, group[0], budget - last.count)
        };
        // A text that is cut earlier has other pre-tokens before this one.
        let beyond = beyond.max(last.valid_from);
        if beyond >= text.len() && !is_complete {
            return None;
        }
        let before =
            |(place, count)| (place >= last.valid_from).then(|| (place, last.count + count));
        Some(Fit {
            checkpoints,
            beyond: Some(start.place(beyond)),
            counts: counts.into_iter().filter_map(before).collect(),
        })
    }

    /// As `beyond`, for the text from `start` on, where the pre-token up to `end` has more than
    /// `budget` tokens.
    fn look_into(
        &self,
        Start { text, after, .. }: Start<'_>,
        start: usize,
        end: usize,
        budget: usize,
    ) -> (usize, Counts) {
        let bytes = text.as_bytes();
        let longest = self.lengths().longest();
        let after = after.unwrap_or_default();
        let least_after = self.least_after(after);
        let mut both = (!after.is_empty()).then(|| Concatenated::new(self, &text[start..], after));
        let beside = if after.is_empty() { 0 } else { longest };
        // Beside other text a token may hold some of it.
        let longest_from = |place| match after {
            "" => self.longest_from(bytes, place),
            _ => self.lengths().longest_from(&bytes[place..]),
        };
        let mut prefixes = Prefixes::new(self, bytes, start);
        let ids = prefixes.merge(end);
        let fitting = ids.iter().take(budget);
        let cut = start + fitting.map(|&id| self.token_length(id)).sum::<usize>();
        // Any token that starts up to here may be the last one that fits.
        let mut far = ((cut + 1).saturating_sub(longest).max(start)..=cut)
            .map(|place| place + longest_from(place))
            .max()
            .unwrap_or(cut);
        let mut counts = Counts::new();
        let mut place = text.floor_char_boundary(cut).max(start + 1);
        let most = self.lengths().longest_in(&bytes[start..]);
        while place <= far && place < bytes.len() && !cancel::is_set() {
            // Tokens are not longer: there may be no need to know how many there are.
            let fewest = (place - start).saturating_sub(beside).div_ceil(most);
            let (count, least) = if fewest > budget {
                (fewest + least_after, fewest)
            } else {
                self.count_and_least(text, start, place, &mut prefixes)
            };
            if text.is_char_boundary(place) {
                let count = match &mut both {
                    Some(both) if fewest <= budget => both.count(place - start, 0).0,
                    _ => count,
                };
                counts.push((place, count));
            }
            if least < budget {
                far = far.max(place + longest_from(place));
            }
            place += 1;
        }
        // Beside other text less may fit than alone.
        if let Some(both) = &mut both {
            let (mut before, mut place) = (Counts::new(), text.floor_char_boundary(cut));
            let mut fits = counts
                .iter()
                .any(|&(_, count)| count <= budget + least_after);
            while !fits && place > start && !cancel::is_set() {
                place = text.floor_char_boundary(place - 1);
                let count = both.count(place - start, 0).0;
                before.push((place, count));
                fits = count <= budget + least_after;
            }
            before.reverse();
            counts.splice(0..0, before);
        }
        // What a token at the end of `text` could hold is not known.
        if far + longest > bytes.len() {
            return (bytes.len() + 1, counts);
        }
        (far + 1, counts)
    }

    /// The tokens between `start` and `place` of a text that is cut there, and the fewest there can
    /// be whatever follows.
    pub(crate) fn count_and_least(
        &self,
        text: &str,
        start: usize,
        place: usize,
        prefixes: &mut Prefixes<'_>,
    ) -> (usize, usize) {
        let bytes = text.as_bytes();
        let cut = &text[..text.floor_char_boundary(place)];
        let mut least = prefixes.count(place);
        let (mut ends, mut at, mut before) = (Ends::new(), start, 0);
        while at < cut.len() {
            self.splitter().fill(cut, at, &mut ends);
            for &end in ends.as_slice() {
                before += if at == start {
                    prefixes.count(end)
                } else {
                    self.count_pieces(bytes, at, &[end])
                };
                at = end;
                if end < place {
                    least = least.min(before + self.count_pieces(bytes, end, &[place]));
                }
            }
        }
        (before, least.min(before))
    }

    /// The tokens of a text by itself.
    pub(crate) fn count_split(&self, text: &str) -> usize {
        let mut count = Count::new(usize::MAX);
        self.give_text(text, &mut count);
        count.result()
    }

    /// The bytes of the longest token that starts at `place`.
    fn longest_from(&self, bytes: &[u8], place: usize) -> usize {
        (1..=self.lengths().longest_from(&bytes[place..]))
            .rev()
            .find(|&len| self.table().id_of(&bytes[place..place + len]).is_some())
            .unwrap_or(0)
    }

    /// The checkpoint at the end of the pre-tokens that follow `last`, with these ends; valid no
    /// earlier than `last`.
    fn checkpoint(
        &self,
        part: Start<'_>,
        last: Checkpoint,
        ends: &[usize],
        count: usize,
    ) -> Checkpoint {
        let bytes = part.text.as_bytes();
        let end = ends[ends.len() - 1];
        let start = ends.iter().rev().nth(1).map_or(last.place, |&end| end);
        let reach = self.splitter().reach(bytes, start, end) + PEEK;
        // What follows may move the end: the rest of an incomplete text, or another one.
        let valid_from = if part.after.is_none() && (part.is_complete || reach < bytes.len()) {
            self.splitter().reach_of_cut(bytes, start, end) + PEEK
        } else {
            reach
        };
        Checkpoint {
            place: end,
            valid_from: part.place(valid_from).max(last.valid_from),
            count,
        }
    }

    pub(crate) fn count_pieces(&self, text: &[u8], start: usize, ends: &[usize]) -> usize {
        let mut count = Count::new(usize::MAX);
        self.give_pieces(text, start, ends, &mut count);
        count.result()
    }
}
