//! Ordinary text as chunks of a limited number of tokens each: what `context/splitting.py` finds,
//! for texts in which split points are near.

use crate::bpe::Bpe;
use crate::cancel;
use crate::context::boundaries::{self, Excerpt, LEVELS, Level, Undecided};
use crate::context::scan::{Beyond, Scan};
use crate::split::next_split_point;

/// The limits of chunks.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Maximum number of tokens of a chunk.
    pub budget: usize,
    /// Minimum number of tokens of a chunk that ends at a boundary coarser than a grapheme.
    pub least: usize,
    /// Maximum number of tokens that two adjacent chunks share.
    pub overlap: usize,
    /// The coarsest boundary to look for.
    pub level: Level,
}

/// A part of a text, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub start: usize,
    pub end: usize,
    pub count: usize,
    /// The tokens that it shares with the one before it.
    pub overlap: usize,
    /// The coarsest boundary at its end.
    pub level: Level,
}

/// Where the next chunk starts, where the last one ends, and how many tokens they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    pub start: usize,
    pub last_end: usize,
    pub overlap: usize,
}

impl Bpe {
    /// The next chunks, at most `most`: fewer at the end of the text, or if the text near the next
    /// chunk does not decide it. Only for a pattern that `has_split_points`.
    ///
    /// `known` is None if the text is complete; otherwise only the text before it is used.
    pub fn chunks(
        &self,
        part: Excerpt<'_>,
        mut next: Next,
        rule: Rule,
        known: Option<usize>,
        most: usize,
    ) -> (Vec<Chunk>, Next) {
        let mut scan = Scan::new(self, part, next.start);
        let mut chunks = Vec::new();
        while chunks.len() < most && next.last_end < part.text.len() && !cancel::is_set() {
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

    /// The end of the longest start of a text that ends at a boundary of `level` and has at most
    /// `budget` tokens, and its tokens. None if none fits, or if the text near the end does not
    /// decide. Only for a pattern that `has_split_points`.
    ///
    /// `text` is complete, or the start of a longer one.
    pub fn longest_start(
        &self,
        text: &str,
        budget: usize,
        level: Level,
        is_complete: bool,
    ) -> Option<(usize, usize)> {
        let part = Excerpt {
            text,
            is_start: true,
        };
        let mut scan = Scan::new(self, part, 0);
        scan.begin(bytes_beyond(budget));
        let known = (!is_complete).then_some(text.len());
        match scan.beyond(budget, known).ok()? {
            Beyond::AllFits(count) => Some((text.len(), count)),
            Beyond::Place(beyond) => scan.last_that_fits(level, budget, beyond).ok()?,
        }
    }

    /// As `longest_start`, for the longest end of a text: its start, and its tokens. An incomplete
    /// `text` is the end of a longer one.
    pub fn longest_end(
        &self,
        text: &str,
        budget: usize,
        level: Level,
        is_complete: bool,
    ) -> Option<(usize, usize)> {
        let first = if is_complete {
            0
        } else {
            next_split_point(text, 1)?
        };
        let part = Excerpt {
            text,
            is_start: is_complete,
        };
        let near = text.len().saturating_sub(bytes_beyond(budget));
        let near = next_split_point(text, near).filter(|&near| near > first);
        for start in near.into_iter().chain([first]) {
            let mut scan = Scan::new(self, part, start);
            while scan.extend().ok()? {}
            let count = scan.sums.count;
            if count > budget {
                let end = text.len();
                return scan.first_that_fits(level, end, count, budget).ok()?;
            }
            if start == 0 {
                return is_complete.then_some((0, count));
            }
        }
        None
    }
}

/// A number of bytes that usually have more tokens than the budget.
fn bytes_beyond(budget: usize) -> usize {
    budget.saturating_mul(5).saturating_add(64)
}

impl Scan<'_> {
    /// The chunk from `start` on.
    fn chunk(&mut self, next: Next, rule: Rule, known: Option<usize>) -> Result<Chunk, Undecided> {
        let text = self.text;
        let made = |end, count, level| Chunk {
            start: next.start,
            end,
            count,
            overlap: next.overlap,
            level,
        };
        let beyond = match self.beyond(rule.budget, known)? {
            Beyond::AllFits(count) => return Ok(made(text.len(), count, Level::Paragraph)),
            Beyond::Place(beyond) => beyond,
        };
        let place = text.floor_char_boundary(beyond - 1);
        let has_line =
            boundaries::last(Level::Line, self.part, next.start, place, |_| Ok(true))?.is_some();
        let coarsest_here = if has_line {
            rule.level
        } else {
            rule.level.min(Level::Sentence)
        };
        let coarse = LEVELS.into_iter().rev();
        for level in coarse.skip_while(|&level| level > coarsest_here) {
            let is_fine = matches!(level, Level::Grapheme | Level::CodePoint);
            if let Some((end, count)) = self.last_that_fits(level, rule.budget, beyond)?
                && end > next.last_end
                && (is_fine || count >= rule.least)
            {
                return Ok(made(end, count, coarsest(self.part, end, level)?));
            }
        }
        Err(Undecided)
    }

    /// The longest overlap of a chunk with the next one, and where that starts.
    fn overlap(&self, chunk: &Chunk, budget: usize) -> Result<Next, Undecided> {
        let end = chunk.end;
        let mut found = None;
        if budget > 0 && end < self.text.len() {
            found = self.first_that_fits(Level::Grapheme, end, chunk.count, budget)?;
        }
        let (start, overlap) = found.unwrap_or((end, 0));
        Ok(Next {
            start,
            last_end: end,
            overlap,
        })
    }
}

/// The coarsest boundary at `end`, which is one of `at_least`.
fn coarsest(part: Excerpt<'_>, end: usize, at_least: Level) -> Result<Level, Undecided> {
    let (before, after) = (part.text.as_bytes()[end - 1], part.text.as_bytes()[end]);
    let may_end_sentence = !before.is_ascii_graphic() || b".?!\"'()[]{}".contains(&before);
    // Most boundaries are ends of words or inside words: these need no search.
    if at_least < Level::Word && !may_end_sentence {
        if matches!(after, b' ' | b'\n') {
            return Ok(Level::Word);
        }
        if before.is_ascii_alphanumeric() && after.is_ascii_alphanumeric() {
            return Ok(Level::Grapheme);
        }
    }
    let low = part.text.floor_char_boundary(end - 1);
    for level in LEVELS.into_iter().rev() {
        let is_there = || boundaries::last(level, part, low, end, |_| Ok(true));
        if level == at_least || is_there()?.is_some() {
            return Ok(level);
        }
    }
    Ok(at_least)
}
