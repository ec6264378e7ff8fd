//! Iterates over the pre-tokens of a text.

use super::Regex;
use super::char_set::after;
use super::matcher::Matcher;
use super::program::Program;

/// The position in one text in each of the sequential splits, and the memory of their matchers.
#[derive(Default)]
pub struct Cursor {
    stages: Vec<Stage>,
    /// The end of the last pre-token.
    at: usize,
}

/// One split: its current piece, and the position in it.
#[derive(Default)]
struct Stage {
    start: usize,
    end: usize,
    at: usize,
    /// End of a match that was found behind unmatched text, which comes first.
    found: Option<usize>,
    matcher: Matcher,
}

impl Cursor {
    /// Starts a text.
    pub fn reset(&mut self, regex: &Regex) {
        self.stages.resize_with(regex.lines.len(), Stage::default);
        for stage in &mut self.stages {
            stage.begin(0, 0);
        }
        self.at = 0;
    }

    /// Returns the end of the last pre-token.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the number of steps that the matchers took in their current pieces.
    #[cfg(test)]
    pub fn steps(&self) -> u64 {
        self.stages.iter().map(|stage| stage.matcher.steps).sum()
    }

    /// Remembers from the first step on.
    #[cfg(test)]
    pub fn always_remember(&mut self) {
        for stage in &mut self.stages {
            stage.matcher.always_remembers = true;
        }
    }

    /// Returns the end of the next pre-token; None at the end. `text` must be the same since
    /// `reset`.
    #[inline]
    pub fn next_end(&mut self, regex: &Regex, text: &[u8]) -> Option<usize> {
        if self.at == text.len() {
            return None;
        }
        self.at = next_end(&mut self.stages, &regex.lines, text, self.at);
        Some(self.at)
    }
}

/// Returns the end of the piece of the last of `lines` that starts at `from`, which must be before
/// the end of the text.
fn next_end(stages: &mut [Stage], lines: &[Program], text: &[u8], from: usize) -> usize {
    let (Some((stage, earlier)), Some((program, before))) =
        (stages.split_last_mut(), lines.split_last())
    else {
        return text.len();
    };
    if stage.at == stage.end {
        let end = next_end(earlier, before, text, from);
        stage.begin(from, end);
    }
    stage.next(program, text)
}

impl Stage {
    fn begin(&mut self, start: usize, end: usize) {
        (self.start, self.end, self.at, self.found) = (start, end, start, None);
        self.matcher.reset();
    }

    /// Returns the end of the next part of this stage's piece.
    #[inline]
    fn next(&mut self, program: &Program, text: &[u8]) -> usize {
        if let Some(end) = self.found.take() {
            self.at = end;
            return end;
        }
        let piece = &text[self.start..self.end];
        let from = self.at - self.start;
        self.at = match first_match(&mut self.matcher, program, piece, from) {
            Some((start, end)) if start > from => {
                self.found = Some(self.start + end);
                self.start + start
            }
            Some((_, end)) => self.start + end,
            None => self.end,
        };
        self.at
    }
}

/// Returns the start and the end of the first match at or after `from`.
#[inline]
fn first_match(
    matcher: &mut Matcher,
    program: &Program,
    piece: &[u8],
    from: usize,
) -> Option<(usize, usize)> {
    let mut start = from;
    while start < piece.len() {
        if let Some(end) = matcher.match_at(program, piece, start) {
            return Some((start, end));
        }
        start = after(piece, start);
    }
    None
}

impl Regex {
    /// Calls `work` with the start and the end of each match of a pattern of one line.
    pub fn each_match(&self, piece: &[u8], mut work: impl FnMut(usize, usize)) {
        let (mut matcher, mut at) = (Matcher::default(), 0);
        while let Some((start, end)) = first_match(&mut matcher, &self.lines[0], piece, at) {
            work(start, end);
            at = end;
        }
    }
}
