//! Runs a program over a text: backtracking that remembers what it has tried.
//!
//! As long as it advances it remembers nothing; once it has spent more steps than the text it
//! has covered allows, it remembers for each choice and place how it ended. Why the result is
//! that of plain backtracking and why the time is bounded is proven in docs/patterns.md.

use super::char_set::before;
use super::condition::{ends_at, holds};
use super::memo::Memo;
use super::program::{Instruction, Pc, Program};
use super::run::Entered;

/// Steps that a text may take before anything is remembered, and for each byte of it.
const FREE_STEPS: u64 = 2048;
const FREE_STEPS_PER_BYTE: u64 = 16;

/// A choice, or a run's length, that can still be changed.
pub struct Frame {
    pub pc: Pc,
    /// Where the choice is made; where the run ends now.
    pub at: usize,
    /// The branches that have not been tried; the least end of the run.
    pub rest: u64,
    /// The run's name in the memo: the end of its longest form if it has no upper bound, or else
    /// its start.
    pub key: usize,
}

/// What one text has needed so far.
#[derive(Default)]
pub struct Matcher {
    pub frames: Vec<Frame>,
    pub memo: Memo,
    pub remembering: bool,
    /// Instructions executed, and bytes that runs went over.
    pub steps: u64,
    free_steps: u64,
    /// Where the match that is being looked for starts.
    start: usize,
    #[cfg(test)]
    pub always_remembers: bool,
}

/// What is run, and over what.
pub struct Subject<'a> {
    pub program: &'a Program,
    pub text: &'a [u8],
}

impl Matcher {
    /// Begin another text.
    pub fn reset(&mut self) {
        self.frames.clear();
        self.memo.clear();
        self.remembering = false;
        self.steps = 0;
        self.start = 0;
    }

    /// The end of the first match from `start` that is not empty.
    ///
    /// Between two calls of `reset` the text is the same and `start` never falls.
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
        self.run::<true>(&subject, program.start, start)
    }

    /// Run the whole program (`WHOLE`) or a body from `pc`: the end of its first match.
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
                    slot,
                } => {
                    match self.enter_run(subject, pc, at, (*set, *min, *max, *possessive, *slot)) {
                        Entered::At(end) => Some((*next, end)),
                        Entered::Failed => None,
                        Entered::Won(end) => {
                            self.succeed::<WHOLE>(subject, base, end);
                            return Some(end);
                        }
                    }
                }
                Instruction::Choice(choice) => {
                    if self.remembering {
                        let won = if WHOLE {
                            None
                        } else {
                            self.memo.won(choice.slot, at)
                        };
                        if let Some(end) = won {
                            self.succeed::<WHOLE>(subject, base, end);
                            return Some(end);
                        }
                        if self.memo.has_failed(choice.slot, at) {
                            match self.backtrack(subject, base) {
                                Some(place) => {
                                    (pc, at) = place;
                                    continue;
                                }
                                None => return None,
                            }
                        }
                    }
                    let branches = match text.get(at) {
                        Some(&byte) => choice.by_byte[byte as usize],
                        None => choice.at_end,
                    };
                    if branches == 0 {
                        None
                    } else {
                        let first = branches.trailing_zeros();
                        let rest = branches & (branches - 1);
                        if rest != 0 || self.remembering {
                            // One of the rest matches for certain: nothing below is reached.
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
            match advanced {
                Some(place) => (pc, at) = place,
                None => match self.backtrack(subject, base) {
                    Some(place) => (pc, at) = place,
                    None => return None,
                },
            }
        }
    }

    /// The next way to go on, above `base`.
    fn backtrack(&mut self, subject: &Subject, base: usize) -> Option<(Pc, usize)> {
        self.remembering |= self.steps > self.free_steps;
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
                        self.memo.fail(choice.slot, frame.at);
                    }
                }
                Instruction::Run {
                    next, max, slot, ..
                } => {
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
                            self.memo.shorten(*slot, frame.key, least);
                        } else {
                            self.memo.fail(*slot, frame.key);
                        }
                    }
                }
                _ => unreachable!("a frame of neither a choice nor a run"),
            }
            self.frames.pop();
        }
        None
    }

    /// Remember what the frames above `base` led to, and drop them.
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
                Instruction::Choice(choice) if !WHOLE => {
                    self.memo.win(choice.slot, frame.at, end);
                }
                Instruction::Run { max, slot, .. } if *max == u32::MAX => {
                    // The longer forms have failed.
                    let longer = following(subject.text, frame.at);
                    self.memo.shorten(*slot, frame.key, longer);
                    if !WHOLE {
                        self.memo.win_shortened(*slot, frame.key, frame.at, end);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The end of the character at `at`, or one past the text's end.
fn following(text: &[u8], at: usize) -> usize {
    let mut next = at + 1;
    while next < text.len() && text[next] & 0xc0 == 0x80 {
        next += 1;
    }
    next
}
