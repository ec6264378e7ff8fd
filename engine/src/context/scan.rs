//! The number of tokens of ordinary text before the end of each pre-token, and where to cut the
//! text for a budget. It is read as far as needed.
//!
//! The end of a pre-token depends only on text up to some position. A text that is cut after that
//! position has the same pre-tokens before this end, so one pass gives the tokens of all parts. The
//! text between the last such end and the cut is counted by itself. Nothing fits after the first
//! end before which the tokens exceed the budget.

use crate::bpe::Bpe;
use crate::context::boundaries::{self, Excerpt, Level, Undecided};
use crate::context::fit::PEEK;
use crate::output::Sums;
use crate::split::{Ends, is_split_point};

/// Bytes of text that are split into pre-tokens at once.
const WINDOW: usize = 16 * 1024;

/// Minimum bytes of text that are split at once: text far ahead is not in the processor's cache.
const MIN_WINDOW: usize = 4 * 1024;

/// Bytes of text that are split at once, near a position up to which text was split before.
const RESTART: usize = 192;

/// Ends of pre-tokens that are kept when they are passed.
const MAX_PASSED: usize = 4096;

/// Maximum bytes of a pre-token, and of the text that is searched for a split point.
const MAX_SPAN: usize = 256;

/// Where the tokens exceed the budget.
pub enum Beyond {
    /// Nowhere: the text has this number of tokens.
    AllFits(usize),
    /// No text fits that is cut here or later.
    Place(usize),
}

/// The pre-tokens from a place on, and how many tokens there are before the end of each.
pub struct Scan<'a> {
    core: &'a Bpe,
    pub part: Excerpt<'a>,
    pub text: &'a str,
    pub start: usize,
    /// The tokens before `start`, of those in `sums`.
    before: usize,
    /// Ends of pre-tokens; those after `start` are from `first` on.
    places: Vec<usize>,
    first: usize,
    pub sums: Sums,
    ends: Ends,
    /// Up to where the text is split.
    window: usize,
}

impl<'a> Scan<'a> {
    pub fn new(core: &'a Bpe, part: Excerpt<'a>, start: usize) -> Self {
        Scan {
            core,
            part,
            text: part.text,
            start,
            before: 0,
            places: Vec::new(),
            first: 0,
            sums: Sums::default(),
            ends: Ends::new(),
            window: 0,
        }
    }

    /// Moves to another position. The known ends stay valid if a pre-token ends there, since text
    /// before a pre-token does not change it.
    pub fn go_to(&mut self, start: usize) {
        if start == self.start {
            return;
        }
        self.start = start;
        match self.places[self.first..].binary_search(&start) {
            Ok(index) => {
                self.first += index;
                self.before = self.sums.sums[self.first];
                self.first += 1;
            }
            Err(_) => self.restart(),
        }
        if self.first > MAX_PASSED {
            self.places.drain(..self.first);
            self.sums.sums.drain(..self.first);
            self.first = 0;
        }
    }

    /// As `go_to` a position where no pre-token ended: splits until an end equals a known one.
    fn restart(&mut self) {
        let start = self.start;
        let window = self.text.floor_char_boundary(start + RESTART);
        let read = self.read(start, window).unwrap_or(0);
        let old = &self.places[self.first..];
        let ends = self.ends.as_slice()[..read].iter().enumerate();
        let common = ends
            .filter_map(|(index, end)| Some((index + 1, old.binary_search(end).ok()?)))
            .next();
        // The new ends take the places of those that are passed.
        if let Some((new, old)) = common
            && let Some(first) = (self.first + old + 1).checked_sub(new)
        {
            let ends = &self.ends.as_slice()[..new];
            let mut sums = Sums::default();
            self.core
                .give_pieces(self.text.as_bytes(), start, ends, &mut sums);
            let then = self.sums.sums[first + new - 1];
            if let Some(before) = then.checked_sub(sums.count) {
                for (index, (&end, sum)) in ends.iter().zip(&sums.sums).enumerate() {
                    self.places[first + index] = end;
                    self.sums.sums[first + index] = before + sum;
                }
                (self.first, self.before) = (first, before);
                return;
            }
        }
        self.places.clear();
        self.sums = Sums::default();
        (self.first, self.before) = (0, 0);
    }

    /// Split more of the text. Returns whether there was more.
    pub fn extend(&mut self) -> Result<bool, Undecided> {
        let known = self.places[self.first..].last();
        let at = known.copied().unwrap_or(self.start);
        if at == self.text.len() {
            return Ok(false);
        }
        if self.window < (at + MIN_WINDOW).min(self.text.len()) {
            self.window = self.text.floor_char_boundary(at + WINDOW);
        }
        self.split(at).map(|()| true)
    }

    /// Begin with a few bytes, if they hold a whole pre-token.
    pub fn begin(&mut self, bytes: usize) {
        let end = self.start + bytes.min(MIN_WINDOW);
        self.window = self.text.floor_char_boundary(end);
        let _ = self.split(self.start);
    }

    /// Split the text from the end of a pre-token to that of the window.
    fn split(&mut self, at: usize) -> Result<(), Undecided> {
        let read = self.read(at, self.window)?;
        let ends = &self.ends.as_slice()[..read];
        self.core
            .give_pieces(self.text.as_bytes(), at, ends, &mut self.sums);
        self.places.extend_from_slice(ends);
        Ok(())
    }

    /// Find the next ends of pre-tokens from one on, of text up to `window`. Returns how many of
    /// `ends` are certain, and of short pre-tokens.
    fn read(&mut self, at: usize, window: usize) -> Result<usize, Undecided> {
        let seen = &self.text[..window];
        self.core.splitter().fill(seen, at, &mut self.ends);
        let mut ends = self.ends.as_slice();
        // Text after the window may change the last pre-tokens in it.
        if window < self.text.len() {
            while let [rest @ .., last] = ends
                && self.settled_in(seen, rest.last().copied().unwrap_or(at), *last) > window
            {
                ends = rest;
            }
        }
        // Several together are mostly no longer than one may be.
        let several = ends.iter().skip(3).step_by(4).chain(ends.last());
        let all = near_ends(at, several.clone()) == several.count();
        let short = if all {
            ends.len()
        } else {
            near_ends(at, ends.iter())
        };
        (short > 0).then_some(short).ok_or(Undecided)
    }

    /// Where the tokens exceed `budget`. `known`: None for a complete text; otherwise only the text
    /// before it is used.
    pub fn beyond(&mut self, budget: usize, known: Option<usize>) -> Result<Beyond, Undecided> {
        let text = self.text;
        let most = self.before + budget;
        while self.sums.sums.last().is_none_or(|&sum| sum <= most) {
            if !self.extend()? {
                return match known {
                    None => Ok(Beyond::AllFits(self.sums.count - self.before)),
                    Some(_) => Err(Undecided),
                };
            }
        }
        let sums = &self.sums.sums[self.first..];
        let index = self.first + sums.partition_point(|&sum| sum <= most);
        let fits = self.start_of(index);
        let mut beyond = text.len();
        for index in index..self.places.len() {
            if self.places[index] >= beyond {
                break;
            }
            beyond = beyond.min(self.settled(index));
        }
        let is_unknown = known.is_some_and(|known| beyond > known || beyond == text.len());
        if is_unknown || beyond - fits > MAX_SPAN {
            return Err(Undecided);
        }
        Ok(Beyond::Place(beyond))
    }

    /// The last boundary of a level before `beyond` up to which there are at most `budget` tokens,
    /// and how many there are.
    pub fn last_that_fits(
        &self,
        level: Level,
        budget: usize,
        beyond: usize,
    ) -> Result<Option<(usize, usize)>, Undecided> {
        let place = self.text.floor_char_boundary(beyond - 1);
        let (mut count, mut last) = (0, (usize::MAX, 0, 0));
        let found = boundaries::last(level, self.part, self.start, place, |end| {
            if end < last.0 {
                last = self.last_settled(end)?;
            }
            let (_, from, before) = last;
            // If nothing more fits, text of at least one token is too much.
            count = match before {
                before if before >= budget && from < end => budget + 1,
                before => before + self.core.count_split(&self.text[from..end]),
            };
            Ok(count <= budget)
        })?;
        Ok(found.map(|end| (end, count)))
    }

    /// The first boundary of a level from which up to `end` there are at most `budget` tokens, and
    /// how many there are; `count` is those from the start, and more.
    pub fn first_that_fits(
        &self,
        level: Level,
        end: usize,
        count: usize,
        budget: usize,
    ) -> Result<Option<(usize, usize)>, Undecided> {
        // The last split point from which on there are too many, and the tokens before it.
        let places = &self.places[self.first..];
        let sums = &self.sums.sums[self.first..];
        let after = |index: usize| count - (sums[index] - self.before);
        let inside = places.partition_point(|&place| place < end);
        let sums = &sums[..inside];
        let mut index = sums.partition_point(|&sum| count > budget + (sum - self.before));
        let mut low = self.start;
        while index > 0 {
            index -= 1;
            if is_split_point(self.text, places[index]) {
                low = places[index];
                break;
            }
        }
        // The split points after it, at which parts are counted.
        while low < end {
            let points = places[..inside].iter().enumerate();
            let point = points
                .skip(places.partition_point(|&place| place <= low))
                .find(|&(_, &place)| is_split_point(self.text, place));
            let (high, rest) = point.map_or((end, 0), |(index, &place)| (place, after(index)));
            if high - low > MAX_SPAN {
                return Err(Undecided);
            }
            for start in boundaries::between(level, self.part, low, high)? {
                let count = rest + self.core.count_split(&self.text[start..high]);
                if start < end && count <= budget {
                    return Ok(Some((start, count)));
                }
            }
            low = high;
        }
        Ok(None)
    }

    /// The last end of a pre-token that a text cut at `end` has too: the position from which on
    /// cuts keep it, the end, and the tokens before it.
    fn last_settled(&self, end: usize) -> Result<(usize, usize, usize), Undecided> {
        let places = &self.places[self.first..];
        let mut index = self.first + places.partition_point(|&place| place <= end);
        while index > self.first && end - self.places[index - 1] <= MAX_SPAN {
            index -= 1;
            let valid_from = self.settled(index);
            if valid_from <= end {
                let count = self.sums.sums[index] - self.before;
                return Ok((valid_from, self.places[index], count));
            }
        }
        if index > self.first || end - self.start > MAX_SPAN {
            return Err(Undecided);
        }
        Ok((self.start, self.start, 0))
    }

    /// A text that is cut here or later has the same pre-tokens up to the one of an index.
    fn settled(&self, index: usize) -> usize {
        self.settled_in(self.text, self.start_of(index), self.places[index])
    }

    /// Where the pre-token of an index starts.
    fn start_of(&self, index: usize) -> usize {
        if index > self.first {
            self.places[index - 1]
        } else {
            self.start
        }
    }

    fn settled_in(&self, text: &str, start: usize, end: usize) -> usize {
        if end < text.len() && is_split_point(text, end) {
            return end;
        }
        let reach = self.core.splitter().reach(text.as_bytes(), start, end);
        self.text.ceil_char_boundary(reach + PEEK)
    }
}

/// How many ends after `at` follow the one before by at most `MAX_SPAN` bytes.
fn near_ends<'a>(mut at: usize, ends: impl Iterator<Item = &'a usize>) -> usize {
    ends.take_while(|&&end| end - std::mem::replace(&mut at, end) <= MAX_SPAN)
        .count()
}
