//! Runs of characters of one set in the matcher, the longest form first.

use super::char_set::{after, before};
use super::matcher::{Frame, Matcher, Subject};
use super::program::Pc;

/// Minimum length in bytes of runs that are recorded.
const LONG_RUN: usize = 64;

/// The result of entering a run.
pub enum Entered {
    At(usize),
    Failed,
    /// A known match of the body ends here.
    Won(usize),
}

impl Matcher {
    /// Matches the longest form of a run, and pushes a frame if it can be shortened.
    #[inline(always)]
    pub fn enter_run(
        &mut self,
        subject: &Subject,
        pc: Pc,
        at: usize,
        (set, min, max, possessive): (u32, u32, u32, bool),
    ) -> Entered {
        let chars = &subject.program.sets[set as usize];
        let unbounded = max == u32::MAX;
        let (mut end, least);
        if unbounded {
            least = if min == 0 {
                at
            } else {
                let (least, count) = chars.run(subject.text, at, min);
                if count < min {
                    return Entered::Failed;
                }
                least
            };
            end = if self.remembering {
                self.remembered_run(subject, set, least)
            } else {
                chars.run_until(subject.text, least, subject.text.len())
            };
            self.steps += (end - least) as u64 * u64::from(!self.remembering);
        } else {
            if self.remembering && !possessive && self.memo.has_failed(pc, at) {
                return Entered::Failed;
            }
            let count;
            (end, count) = chars.run(subject.text, at, max);
            self.steps += u64::from(count);
            if count < min {
                return Entered::Failed;
            }
            least = if possessive || min == count {
                end
            } else {
                chars.run(subject.text, at, min).0
            };
        }
        if possessive || (least == end && !self.remembering) {
            return Entered::At(end);
        }
        let key = if unbounded { end } else { at };
        if unbounded
            && self.remembering
            && let Some(known) = self.memo.shortened(pc, key)
        {
            match known.won {
                Some((shortened_end, won)) if least <= shortened_end => return Entered::Won(won),
                Some(_) => return Entered::Failed,
                None if known.failed_from <= least => return Entered::Failed,
                None if known.failed_from <= end => end = before(subject.text, known.failed_from),
                None => {}
            }
        }
        self.frames.push(Frame {
            pc,
            at: end,
            rest: least as u64,
            key,
        });
        Entered::At(end)
    }

    /// Returns the same as `run_until`, without scanning a long run twice.
    fn remembered_run(&mut self, subject: &Subject, set: u32, at: usize) -> usize {
        let chars = &subject.program.sets[set as usize];
        let text = subject.text;
        let soon = after(text, (at + LONG_RUN).min(text.len()) - 1);
        let end = chars.run_until(text, at, soon);
        self.steps += (end - at) as u64;
        if end < soon || end == text.len() {
            return end;
        }
        let (known, from) = self.memo.run_end(set, end);
        if let Some(known) = known {
            return known;
        }
        let stop = from.min(text.len());
        let reached = chars.run_until(text, end, stop);
        self.steps += (reached - end) as u64;
        self.memo.keep_run(set, end, reached)
    }
}
