//! Runs a program over a text: backtracking that remembers what it has tried.
//!
//! As long as it advances it remembers nothing; once it has spent more steps than the text it
//! has covered allows, it remembers for each choice and place how it ended. Why the result is
//! that of plain backtracking and why the time is bounded is proven below.
//!
//! # Why the answer is the definition's
//!
//! Matching is backtracking: a program of instructions, each naming its successor, of which two
//! kinds have a choice. A *choice* has branches in order of preference. A *run*, one set repeated,
//! ends after the most characters that it can and is shortened one by one. All else either goes on
//! in one way or fails, and a failure takes the next way at the latest choice.
//!
//! **Matches are never empty.** `regex` finds the successive matches from left to right. After an
//! empty match it looks again at the same place for one that is not. An empty match isolates
//! nothing, so at each place what counts is the first match, in order of preference, that is not
//! empty; if there is none, the next place is tried. The engine takes an end only if it is beyond
//! the start.
//!
//! **Repeats of the empty.** Let a body be empty only as its last resort and unconditionally. Then
//! its matches in order are those that are not empty, and last the empty one. After an empty round
//! the rest is tried from where it would also have been tried without that round, and fails or
//! matches alike. So the repeat of the body is the repeat, from zero on, of its matches that are not
//! empty, and that is what is compiled. Hence no instruction is reached twice at one place without a
//! choice being made anew, and every path ends.
//!
//! **Branches that cannot match** are left out by the next byte: each branch has the set of bytes
//! with which its matches can start, a least fixed point over the program. **Runs that would not be
//! shortened** with profit give up their shorter forms: where what follows cannot start with a
//! character of the set (a shorter form is followed by one), and where what follows always matches.
//!
//! # Why time is bounded
//!
//! Write a *state* as an instruction and a place in the text, (p, i).
//!
//! **Lemma 1.** There are no references, so what follows from a state depends on the state and on
//! the text, and not on how it was reached. For the body of a lookaround or an atomic group, the end
//! of its first match from a state, or that there is none, is a function of the state. For the whole
//! program there is one more condition, that the end is beyond the start s. Let a state (p, i) fail
//! for the start s. If i > s, the condition did not matter, and the state fails for every start. If
//! i = s, later starts are beyond i and never ask for it. So a failure holds for all that follows in
//! this text.
//!
//! **Remembering.** A match that has spent more than 2048 steps and 16 for each byte before its
//! start begins to remember:
//!
//! - for each choice, and each run with an upper bound, the places at which it failed (a bit each),
//!   and in bodies the places at which it matched, with the end of the match;
//! - for each run without an upper bound, and each end that its longest form has had, the place from
//!   which on all its forms have failed, and in bodies the longest one that matched;
//! - for each set, the runs of it of 64 bytes and more that have been walked over.
//!
//! **Lemma 2.** The forms of a run without an upper bound that share the end of their longest form
//! lie in one maximal run of the set; what follows a form depends on its end alone (Lemma 1). They
//! are tried from the longest to the shortest. So one number says which are known to fail, whatever
//! the places were at which the run was entered.
//!
//! **Theorem.** While remembering, each branch of each choice is taken at most once per place, and
//! each form of each run tried at most once per place; a run with an upper bound of k costs at most
//! k forms per place. Between two of these lie at most as many instructions as the program has,
//! since only a choice leads back. Going over runs costs one step per character and set, and at most
//! 64 for each run entered, besides a search among the runs known. With n bytes of text and a
//! pattern of size m (its instructions and the bounds of its repeats), that is O(m² n log n) steps
//! at worst, and far fewer where branches share little; nothing is exponential in m or quadratic in
//! n.
//!
//! *Proof.* A choice is left by failing or as part of a match. If it fails, the bit is set, and the
//! next visit fails at once. It cannot be visited again before it has failed, as every way back to
//! it takes up characters. If it is part of a body's match, the end is kept, and the next visit
//! gives it at once. If it is part of the whole match, which ends at e, the next start is e: earlier
//! places are not visited again, and states at or beyond e that were visited and are not part of
//! the match have failed. By Lemma 2 the same holds for the forms of runs. Bodies have instructions
//! of their own, so that the argument applies to each of them with its own states. ∎
//!
//! **What is not remembered** is bounded too: a match without memory goes on only as long as its
//! steps are within the allowance, or up to the next failure or body after it, which is one way
//! through the text; and an allowance that is used up is not there again before the start has come a
//! sixteenth of that way further.
//!
//! **Space.** A bit for each choice and run, for each byte between the start of the match and the
//! furthest place looked at, in blocks of 4096; some 50 bytes for each choice of a body on the way
//! of its match; 32 bytes for each choice that can still be changed. All of it is given back as the
//! start passes by, and at the end of the text. What remembers nothing, as the published patterns on
//! ordinary text, takes nothing.

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
