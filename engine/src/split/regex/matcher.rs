//! Runs a program over a text by backtracking with memoization.
//!
//! The matcher remembers nothing as long as it advances. After too many steps for the text covered
//! so far, it records the result of each choice at each position. The sections below prove that the
//! result equals that of plain backtracking and that the time is bounded.
//!
//! # Why the answer is the definition's
//!
//! Matching is backtracking over a program of instructions, each of which names its successor. Two
//! kinds of instruction have alternatives. A *choice* has branches in order of preference. A *run*,
//! one set repeated, takes as many characters as it can and is then shortened one by one. Every
//! other instruction continues in one way or fails. After a failure the latest instruction with an
//! alternative left takes its next one.
//!
//! **Matches are never empty.** `regex` finds the successive matches from left to right. After an
//! empty match it searches the same position for a match that is not empty. An empty match isolates
//! nothing. So the match at a position is the first one, in order of preference, that is not empty;
//! if there is none, the next position is tried. The engine accepts an end only if it is beyond the
//! start.
//!
//! **Repeats of bodies that can be empty.** Let a body be empty only as its last alternative and
//! unconditionally. Then its matches in order are the non-empty ones, followed by the empty one.
//! After an empty round the rest is tried from a position where it is also tried without that
//! round, with the same result. So the repeat of the body equals the repeat, from zero on, of its
//! non-empty matches, and that is what is compiled. Hence no instruction is reached twice at one
//! position without a new choice in between, and every path ends.
//!
//! **Branches that cannot match** are ruled out by the next byte: each branch has the set of bytes
//! that its matches can start with, a least fixed point over the program. **Runs that are not worth
//! shortening** lose their shorter forms. This is so if the rest cannot start with a character of
//! the set (a shorter form is followed by one), and if the rest always matches.
//!
//! # Why time is bounded
//!
//! Let a *state* be an instruction and a position in the text, (p, i).
//!
//! **Lemma 1.** There are no back-references, so the continuation from a state depends on the state
//! and the text only, not on the path to it. For the body of a lookaround or an atomic group, the
//! end of its first match from a state, if any, is a function of the state. For the whole program
//! there is one more condition: the end is beyond the start s. Let a state (p, i) fail for the
//! start s. If i > s, the condition did not matter, and the state fails for every start. If i = s,
//! later starts are beyond i and never reach the state. So a recorded failure holds for the rest of
//! this text.
//!
//! **Memoization.** A match that has spent more than 2048 steps, plus 16 for each byte before its
//! start, begins to record:
//!
//! - for each choice, and each run with an upper bound: the positions where it failed (one bit
//!   each), and in bodies the positions where it matched, with the end of the match;
//! - for each run without an upper bound and each end of its longest form: the position from which
//!   on all forms have failed, and in bodies the longest form that matched;
//! - for each set: the runs of 64 bytes or more that have been scanned.
//!
//! **Lemma 2.** The forms of an unbounded run that share the end of their longest form lie in one
//! maximal run of the set, and the continuation of a form depends on its end alone (Lemma 1). Forms
//! are tried from the longest to the shortest. So one number tells which forms are known to fail,
//! wherever the run was entered.
//!
//! **Theorem.** With memoization, each branch of each choice is taken at most once per position,
//! and each form of each run is tried at most once per position; a run with an upper bound of k
//! costs at most k forms per position. Between two of these events the matcher executes at most as
//! many instructions as the program has, since only a choice leads back. Scanning runs costs one
//! step per character and set, plus at most 64 steps for each run entered, and a search among the
//! known runs. With n bytes of text and a pattern of size m (its instructions and the bounds of its
//! repeats), that is O(m² n log n) steps in the worst case, and far fewer if branches share little.
//! Nothing is exponential in m or quadratic in n.
//!
//! *Proof.* A choice is left by failing or as part of a match. If it fails, its bit is set, and the
//! next visit fails at once. It cannot be visited again before it has failed, because every way
//! back to it consumes characters. If it is part of a body's match, the end is recorded, and the
//! next visit returns it at once. If it is part of the whole match, which ends at e, the next start
//! is e: earlier positions are not visited again, and visited states at or beyond e that are not
//! part of the match have failed. By Lemma 2 the same holds for the forms of runs. Bodies have
//! instructions of their own, so the argument applies to each of them with its own states. ∎
//!
//! **Matching without memoization** is bounded too. It continues only while its steps are within
//! the allowance, or up to the next failure or body after that, which is one pass through the text.
//! A used-up allowance is available again only after the start has moved forward by a sixteenth of
//! that pass.
//!
//! **Space.** One bit for each choice and run and each byte between the start of the match and the
//! furthest position visited, in blocks of 4096; about 50 bytes for each choice of a body in its
//! match; 32 bytes for each open choice. The memory is freed as the start moves forward, and at the
//! end of the text or before the next one. A text without memoization, such as ordinary text under
//! the published patterns, allocates none of it.

use super::char_set::{after, before};
use super::condition::{ends_at, holds};
use super::first::END;
use super::memo::Memo;
use super::program::{Instruction, Pc, Program};
use super::run::Entered;
use crate::cancel;

/// Steps before memoization starts: a fixed number, plus a number per byte before the match.
const FREE_STEPS: u64 = 2048;
const FREE_STEPS_PER_BYTE: u64 = 16;

/// Steps between two checks for cancellation.
const ASK_EVERY: u64 = 1 << 16;

/// A choice with branches left, or a run that can be shortened.
pub struct Frame {
    pub pc: Pc,
    /// The position of the choice; the current end of the run.
    pub at: usize,
    /// The branches not tried yet, as a mask; the smallest end of the run.
    pub rest: u64,
    /// The run's key in the memo: the end of its longest form if it is unbounded, or else its
    /// start.
    pub key: usize,
}

/// The state of matching one text.
#[derive(Default)]
pub struct Matcher {
    pub frames: Vec<Frame>,
    pub memo: Memo,
    pub remembering: bool,
    /// Instructions executed, plus the length of scanned runs.
    pub steps: u64,
    free_steps: u64,
    /// Number of steps at the last check for cancellation.
    asked_at: u64,
    /// Start of the current match.
    start: usize,
    #[cfg(test)]
    pub always_remembers: bool,
}

/// The program and the text of one match.
pub struct Subject<'a> {
    pub program: &'a Program,
    pub text: &'a [u8],
}

impl Matcher {
    /// Starts another text, and frees the memory of the last one.
    pub fn reset(&mut self) {
        self.frames.clear();
        self.frames.shrink_to(1024);
        self.memo = Memo::default();
        self.remembering = false;
        self.steps = 0;
        self.asked_at = 0;
        self.start = 0;
    }

    /// Returns the end of the first match from `start` that is not empty; the end of the text if
    /// the work was cancelled.
    ///
    /// Between two calls of `reset` the text must be the same, and `start` must not decrease.
    #[inline]
    pub fn match_at(&mut self, program: &Program, text: &[u8], start: usize) -> Option<usize> {
        if !program.can_start[text[start] as usize] {
            return None;
        }
        self.start = start;
        self.free_steps = FREE_STEPS + FREE_STEPS_PER_BYTE * start as u64;
        self.remembering = self.steps > self.free_steps;
        #[cfg(test)]
        {
            self.remembering |= self.always_remembers;
        }
        if self.remembering {
            self.memo.forget_before(start);
        }
        let subject = Subject { program, text };
        let end = self.run::<true>(&subject, program.start, start);
        end.or_else(|| self.is_cancelled().then_some(text.len()))
    }

    /// Returns whether the work was cancelled, which is checked now and then.
    #[inline(always)]
    fn is_cancelled(&mut self) -> bool {
        let is_due = self.steps - self.asked_at >= ASK_EVERY;
        if is_due && !cancel::is_set() {
            self.asked_at = self.steps;
            return false;
        }
        is_due
    }

    /// Returns the end of the first match from `pc` of the whole program (`WHOLE`) or of a body.
    fn run<const WHOLE: bool>(
        &mut self,
        subject: &Subject,
        mut pc: Pc,
        mut at: usize,
    ) -> Option<usize> {
        let base = self.frames.len();
        let text = subject.text;
        self.remembering |= self.steps > self.free_steps;
        loop {
            self.steps += 1;
            let advanced = match &subject.program.instructions[pc as usize] {
                Instruction::Accept => {
                    if at > self.start {
                        self.succeed::<WHOLE>(subject, base, at);
                        return Some(at);
                    }
                    None
                }
                Instruction::BodyAccept => {
                    self.succeed::<WHOLE>(subject, base, at);
                    return Some(at);
                }
                Instruction::Fail => None,
                Instruction::Literal { bytes, next } => text[at..]
                    .starts_with(bytes)
                    .then(|| (*next, at + bytes.len())),
                Instruction::Class { set, next } => {
                    match subject.program.sets[*set as usize].step(text, at) {
                        0 => None,
                        step => Some((*next, at + step)),
                    }
                }
                Instruction::Run {
                    set,
                    min,
                    max,
                    possessive,
                    next,
                } => match self.enter_run(subject, pc, at, (*set, *min, *max, *possessive)) {
                    Entered::At(end) => Some((*next, end)),
                    Entered::Failed => None,
                    Entered::Won(end) => {
                        self.succeed::<WHOLE>(subject, base, end);
                        return Some(end);
                    }
                },
                Instruction::Choice(choice) => {
                    if self.remembering {
                        if !WHOLE && let Some(end) = self.memo.won(pc, at) {
                            self.succeed::<WHOLE>(subject, base, end);
                            return Some(end);
                        }
                        if self.memo.has_failed(pc, at) {
                            (pc, at) = self.backtrack(subject, base)?;
                            continue;
                        }
                    }
                    let byte = text.get(at).map_or(END, |&byte| byte as usize);
                    let branches = choice.by_byte[byte];
                    if branches == 0 {
                        None
                    } else {
                        let first = branches.trailing_zeros();
                        let rest = branches & (branches - 1);
                        if rest != 0 || self.remembering {
                            // One of the rest is certain to match: frames below are never reached.
                            if WHOLE && rest & choice.certain != 0 && at > self.start {
                                self.frames.truncate(base);
                            }
                            self.frames.push(Frame {
                                pc,
                                at,
                                rest,
                                key: 0,
                            });
                        }
                        Some((choice.branches[first as usize], at))
                    }
                }
                Instruction::Ahead {
                    body,
                    negative,
                    next,
                } => {
                    let found = self.run::<false>(subject, *body, at).is_some();
                    (found != *negative).then_some((*next, at))
                }
                Instruction::AheadClass {
                    set,
                    negative,
                    next,
                } => {
                    let found = subject.program.sets[*set as usize].step(text, at) > 0;
                    (found != *negative).then_some((*next, at))
                }
                Instruction::Behind {
                    sequences,
                    negative,
                    next,
                } => {
                    let mut sequences = sequences.iter();
                    let found = sequences.any(|sequence| ends_at(subject, sequence, at));
                    (found != *negative).then_some((*next, at))
                }
                Instruction::Atomic { body, next } => {
                    let end = self.run::<false>(subject, *body, at);
                    end.map(|end| (*next, end))
                }
                Instruction::Assertion { assertion, next } => {
                    holds(subject, *assertion, at).then_some((*next, at))
                }
            };
            (pc, at) = match advanced {
                Some(next) => next,
                None => self.backtrack(subject, base)?,
            };
        }
    }

    /// Returns the next alternative among the frames above `base`; None if there is none, or if the
    /// work was cancelled.
    fn backtrack(&mut self, subject: &Subject, base: usize) -> Option<(Pc, usize)> {
        self.remembering |= self.steps > self.free_steps;
        if self.is_cancelled() {
            return None;
        }
        while self.frames.len() > base {
            let frame = self.frames.last_mut()?;
            match &subject.program.instructions[frame.pc as usize] {
                Instruction::Choice(choice) => {
                    if frame.rest != 0 {
                        let branch = choice.branches[frame.rest.trailing_zeros() as usize];
                        frame.rest &= frame.rest - 1;
                        let at = frame.at;
                        if frame.rest == 0 && !self.remembering {
                            self.frames.pop();
                        }
                        return Some((branch, at));
                    }
                    if self.remembering {
                        self.memo.fail(frame.pc, frame.at);
                    }
                }
                Instruction::Run { next, max, .. } => {
                    let least = frame.rest as usize;
                    if frame.at > least {
                        frame.at = before(subject.text, frame.at);
                        let at = frame.at;
                        if at == least && !self.remembering {
                            self.frames.pop();
                        }
                        return Some((*next, at));
                    }
                    if self.remembering {
                        if *max == u32::MAX {
                            self.memo.shorten(frame.pc, frame.key, least);
                        } else {
                            self.memo.fail(frame.pc, frame.key);
                        }
                    }
                }
                _ => unreachable!("a frame of neither a choice nor a run"),
            }
            self.frames.pop();
        }
        None
    }

    /// Records the results of the frames above `base`, and pops them.
    #[inline(always)]
    fn succeed<const WHOLE: bool>(&mut self, subject: &Subject, base: usize, end: usize) {
        if self.remembering {
            self.remember_success::<WHOLE>(subject, base, end);
        }
        self.frames.truncate(base);
    }

    #[cold]
    fn remember_success<const WHOLE: bool>(&mut self, subject: &Subject, base: usize, end: usize) {
        for frame in &self.frames[base..] {
            match &subject.program.instructions[frame.pc as usize] {
                Instruction::Choice(_) if !WHOLE => {
                    self.memo.win(frame.pc, frame.at, end);
                }
                Instruction::Run { max, .. } if *max == u32::MAX => {
                    // All longer forms have failed.
                    let longer = after(subject.text, frame.at);
                    self.memo.shorten(frame.pc, frame.key, longer);
                    if !WHOLE {
                        self.memo.win_shortened(frame.pc, frame.key, frame.at, end);
                    }
                }
                _ => {}
            }
        }
    }
}
