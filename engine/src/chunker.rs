//! Ordinary text as chunks of a limited number of tokens each: what `context/splitting.py` finds, for
//! texts in which split points are near.
//!
//! The tokens before a safe split point and behind it never change each other, so one pass over the
//! text gives the tokens of every part that ends at one. What is between the last of them and a cut
//! is counted by itself. Behind the first split point before which there are too many tokens,
//! nothing fits.

use crate::borders::{self, BORDERS, Border, Unclear, floor};
use crate::bpe::Bpe;
use crate::cancel;
use crate::output::Sums;
use crate::split::{Ends, is_split_point, next_split_point};

/// Bytes of text that are split into pre-tokens at once.
const WINDOW: usize = 16 * 1024;

/// The least of them: the text far ahead is not in the processor's cache.
const LEAST_WINDOW: usize = 4 * 1024;

/// The same, where the text has been split from a place near by.
const RESTART: usize = 192;

/// Ends of pre-tokens that are kept when they are passed.
const MOST_PASSED: usize = 4096;

/// The bytes of the longest pre-token, and of what is looked through for a split point.
const NEAR: usize = 256;

/// What chunks are to be.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The most tokens.
    pub room: usize,
    /// The least that one has that ends at a border coarser than a grapheme.
    pub least: usize,
    /// The most that two share.
    pub overlap: usize,
    /// The coarsest border to look for.
    pub border: Border,
}

/// A part of a text, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub start: usize,
    pub end: usize,
    pub count: usize,
    /// The tokens that it shares with the one before it.
    pub overlap: usize,
    /// The coarsest border at its end.
    pub border: Border,
}

/// Where the next chunk starts, what of it the last one has, and the tokens of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    pub start: usize,
    pub covered: usize,
    pub overlap: usize,
}

impl Bpe {
    /// The next chunks, at most `most`; fewer where the text ends, and before one that needs more
    /// than the text near it. Only for a pattern that `has_split_points`.
    ///
    /// `known` is None for a complete text; otherwise only what stands before it decides.
    pub fn chunks(
        &self,
        text: &str,
        mut next: Next,
        rule: Rule,
        known: Option<usize>,
        most: usize,
    ) -> (Vec<Chunk>, Next) {
        let mut scan = Scan::new(self, text, next.start);
        let mut chunks = Vec::new();
        while chunks.len() < most && next.covered < text.len() && !cancel::is_set() {
            scan.go_to(next.start);
            let Ok(chunk) = scan.chunk(next, rule, known) else {
                break;
            };
            let Ok(after) = scan.overlap(&chunk, rule.overlap) else {
                break;
            };
            chunks.push(chunk);
            next = after;
        }
        (chunks, next)
    }

    /// Where the longest start of a text that has at most `room` tokens ends, of all borders of a
    /// kind, and its tokens; the whole text where it fits. None where none fits, or where the text
    /// near it does not decide. Only for a pattern that `has_split_points`.
    ///
    /// `text` is complete, or the start of a longer one.
    pub fn longest_start(
        &self,
        text: &str,
        room: usize,
        border: Border,
        is_complete: bool,
    ) -> Option<(usize, usize)> {
        let mut scan = Scan::new(self, text, 0);
        let known = (!is_complete).then_some(text.len());
        match scan.beyond(room, known).ok()? {
            Beyond::AllFits(count) => Some((text.len(), count)),
            Beyond::Place(beyond) => scan.last_that_fits(border, room, beyond).ok()?,
        }
    }

    /// As `longest_start`, for the end of a text: where it starts, and its tokens. What is not
    /// complete is the end of a longer text.
    pub fn longest_end(
        &self,
        text: &str,
        room: usize,
        border: Border,
        is_complete: bool,
    ) -> Option<(usize, usize)> {
        let start = if is_complete {
            0
        } else {
            next_split_point(text, 1)?
        };
        let mut scan = Scan::new(self, text, start);
        while scan.extend().ok()? {}
        let count = scan.sums.count;
        if count <= room {
            return is_complete.then_some((0, count));
        }
        let end = text.len();
        scan.first_that_fits(border, end, count, room).ok()?
    }
}

/// Where there are too many tokens.
enum Beyond {
    /// Nowhere: the text has so many.
    AllFits(usize),
    /// Behind the first split point before which there are, nothing fits.
    Place(usize),
}

/// The pre-tokens from a place on, and how many tokens there are before the end of each.
struct Scan<'a> {
    core: &'a Bpe,
    text: &'a str,
    start: usize,
    /// The tokens before `start`, of those in `sums`.
    before: usize,
    /// Ends of pre-tokens; those behind `start` are from `first` on.
    places: Vec<usize>,
    first: usize,
    sums: Sums,
    ends: Ends,
    /// Up to where the text is split.
    window: usize,
}

impl<'a> Scan<'a> {
    fn new(core: &'a Bpe, text: &'a str, start: usize) -> Self {
        Scan {
            core,
            text,
            start,
            before: 0,
            places: Vec::new(),
            first: 0,
            sums: Sums::default(),
            ends: Ends::new(),
            window: 0,
        }
    }

    /// Start at another place. What is known goes on to be where a pre-token ends there: what
    /// stands before one changes none.
    fn go_to(&mut self, start: usize) {
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
        if self.first > MOST_PASSED {
            self.places.drain(..self.first);
            self.sums.sums.drain(..self.first);
            self.first = 0;
        }
    }

    /// As `go_to`, where no pre-token ended: soon one ends where one ended before.
    fn restart(&mut self) {
        let start = self.start;
        let window = floor(self.text, (start + RESTART).min(self.text.len()));
        let read = self.read(start, window).unwrap_or(0);
        let old = &self.places[self.first..];
        let ends = self.ends.as_slice()[..read].iter().enumerate();
        let common = ends
            .filter_map(|(index, end)| Some((index + 1, old.binary_search(end).ok()?)))
            .next();
        // The new ends take the room of those that are passed.
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
    fn extend(&mut self) -> Result<bool, Unclear> {
        let known = self.places[self.first..].last();
        let at = known.copied().unwrap_or(self.start);
        if at == self.text.len() {
            return Ok(false);
        }
        if self.window < (at + LEAST_WINDOW).min(self.text.len()) {
            self.window = floor(self.text, (at + WINDOW).min(self.text.len()));
        }
        let read = self.read(at, self.window)?;
        let ends = &self.ends.as_slice()[..read];
        self.core
            .give_pieces(self.text.as_bytes(), at, ends, &mut self.sums);
        self.places.extend_from_slice(ends);
        Ok(true)
    }

    /// Find the next ends of pre-tokens from one on, of text up to `window`. Returns how many of
    /// `ends` are certain, and near each other.
    fn read(&mut self, at: usize, window: usize) -> Result<usize, Unclear> {
        let seen = &self.text[..window];
        self.core.pattern().fill(seen, at, &mut self.ends);
        let mut ends = self.ends.as_slice();
        // What stands behind the window may change pre-tokens back to the last split point in it.
        if let Some(&last) = ends.last()
            && window < self.text.len()
            && next_split_point(seen, last).is_none()
        {
            while let [rest @ .., last] = ends
                && !is_split_point(seen, *last)
            {
                ends = rest;
            }
        }
        // The longest is found faster than the first that is too long; there rarely is one.
        let (mut from, mut longest) = (at, 0);
        for &end in ends {
            longest = longest.max(end - from);
            from = end;
        }
        from = at;
        let near = if longest <= NEAR {
            ends.len()
        } else {
            ends.iter()
                .take_while(|&&end| end - std::mem::replace(&mut from, end) <= NEAR)
                .count()
        };
        if near == 0 { Err(Unclear) } else { Ok(near) }
    }

    /// The chunk from `start` on.
    fn chunk(&mut self, next: Next, rule: Rule, known: Option<usize>) -> Result<Chunk, Unclear> {
        let Next {
            start,
            covered,
            overlap,
        } = next;
        let text = self.text;
        let made = |end, count, border| Chunk {
            start,
            end,
            count,
            overlap,
            border,
        };
        let beyond = match self.beyond(rule.room, known)? {
            Beyond::AllFits(count) => return Ok(made(text.len(), count, Border::Paragraph)),
            Beyond::Place(beyond) => beyond,
        };
        let place = floor(text, beyond - 1);
        let has_line = borders::last(Border::Line, text, start, place, |_| Ok(true))?.is_some();
        let coarsest_here = if has_line {
            rule.border
        } else {
            rule.border.min(Border::Sentence)
        };
        let coarse = BORDERS.into_iter().rev();
        for border in coarse.skip_while(|&border| border > coarsest_here) {
            let is_fine = matches!(border, Border::Grapheme | Border::CodePoint);
            if let Some((end, count)) = self.last_that_fits(border, rule.room, beyond)?
                && end > covered
                && (is_fine || count >= rule.least)
            {
                return Ok(made(end, count, coarsest(text, end, border)?));
            }
        }
        Err(Unclear)
    }

    /// Where there are more than `room` tokens. `known`: see `Bpe::chunks`.
    fn beyond(&mut self, room: usize, known: Option<usize>) -> Result<Beyond, Unclear> {
        let text = self.text;
        let most = self.before + room;
        while self.sums.sums.last().is_none_or(|&sum| sum <= most) {
            if !self.extend()? {
                return match known {
                    None => Ok(Beyond::AllFits(self.sums.count - self.before)),
                    Some(_) => Err(Unclear),
                };
            }
        }
        // The first split point before which there are too many.
        let sums = &self.sums.sums[self.first..];
        let mut index = self.first + sums.partition_point(|&sum| sum <= most);
        let fits = if index == self.first {
            self.start
        } else {
            self.places[index - 1]
        };
        let beyond = loop {
            while index >= self.places.len() {
                if !self.extend()? {
                    return Err(Unclear);
                }
            }
            let place = self.places[index];
            if place - fits > NEAR {
                return Err(Unclear);
            }
            if place < text.len() && is_split_point(text, place) {
                break place;
            }
            index += 1;
        };
        if known.is_some_and(|known| beyond > known) {
            return Err(Unclear);
        }
        Ok(Beyond::Place(beyond))
    }

    /// The last border of a kind before `beyond` up to which there are at most `room` tokens, and
    /// how many there are.
    fn last_that_fits(
        &self,
        border: Border,
        room: usize,
        beyond: usize,
    ) -> Result<Option<(usize, usize)>, Unclear> {
        let place = floor(self.text, beyond - 1);
        let mut count = 0;
        let found = borders::last(border, self.text, self.start, place, |end| {
            count = self.count_to(end)?;
            Ok(count <= room)
        })?;
        Ok(found.map(|end| (end, count)))
    }

    /// The longest overlap with the chunk behind one.
    fn overlap(&self, chunk: &Chunk, budget: usize) -> Result<Next, Unclear> {
        let end = chunk.end;
        let none = Next {
            start: end,
            covered: end,
            overlap: 0,
        };
        if budget == 0 || end == self.text.len() {
            return Ok(none);
        }
        let found = self.first_that_fits(Border::Grapheme, end, chunk.count, budget)?;
        Ok(found.map_or(none, |(start, overlap)| Next {
            start,
            covered: end,
            overlap,
        }))
    }

    /// The first border of a kind from which up to `end` there are at most `budget` tokens, and how
    /// many there are; `count` is those from the start, and more.
    fn first_that_fits(
        &self,
        border: Border,
        end: usize,
        count: usize,
        budget: usize,
    ) -> Result<Option<(usize, usize)>, Unclear> {
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
        // The split points behind it, at which parts are counted.
        while low < end {
            let points = places[..inside].iter().enumerate();
            let point = points
                .skip(places.partition_point(|&place| place <= low))
                .find(|&(_, &place)| is_split_point(self.text, place));
            let (high, rest) = point.map_or((end, 0), |(index, &place)| (place, after(index)));
            if high - low > NEAR {
                return Err(Unclear);
            }
            for start in borders::between(border, self.text, low, high)? {
                let count = rest + self.core.count_split(&self.text[start..high]);
                if start < end && count <= budget {
                    return Ok(Some((start, count)));
                }
            }
            low = high;
        }
        Ok(None)
    }

    /// The tokens from the start up to a cut.
    fn count_to(&self, end: usize) -> Result<usize, Unclear> {
        let places = &self.places[self.first..];
        let mut index = places.partition_point(|&place| place <= end);
        let mut from = self.start;
        let mut count = 0;
        while index > 0 {
            index -= 1;
            let place = places[index];
            if end - place > NEAR {
                return Err(Unclear);
            }
            // At the end itself a cut changes nothing either.
            if place < self.text.len() && is_split_point(self.text, place) {
                from = place;
                count = self.sums.sums[self.first + index] - self.before;
                break;
            }
        }
        if end - from > NEAR {
            return Err(Unclear);
        }
        Ok(count + self.core.count_split(&self.text[from..end]))
    }
}

/// The coarsest border at `end`, which is one of `at_least`.
fn coarsest(text: &str, end: usize, at_least: Border) -> Result<Border, Unclear> {
    for border in BORDERS.into_iter().rev() {
        if border == at_least || borders::is_at(border, text, end)? {
            return Ok(border);
        }
    }
    Ok(at_least)
}
