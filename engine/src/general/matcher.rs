//! Runs a program over a text: backtracking that remembers what it has tried.
//!
//! As long as it advances it remembers nothing; once it has spent more steps than the text it
//! has covered allows, it remembers for each choice and place how it ended. Why the result is
//! that of plain backtracking and why the time is bounded is proven in docs/patterns.md.

use super::ast::Assertion;
use super::char_set::before;
use super::memo::Memo;
use super::program::{Instruction, Pc, Program};

/// Steps that a text may take before anything is remembered, and for each byte of it.
const FREE_STEPS: u64 = 2048;
const FREE_STEPS_PER_BYTE: u64 = 16;

/// Runs of at least so many bytes are remembered.
const LONG_RUN: usize = 64;

/// A choice, or a run's length, that can still be changed.
struct Frame {
    pc: Pc,
    /// Where the choice is made; where the run ends now.
    at: usize,
    /// The branches that have not been tried; the least end of the run.
    rest: u64,
    /// The run's name in the memo: the end of its longest form if it has no upper bound, or else
    /// its start.
    key: usize,
}

/// What one text has needed so far.
#[derive(Default)]
pub struct Matcher {
    frames: Vec<Frame>,
    memo: Memo,
    remembering: bool,
    /// Instructions executed, and bytes that runs went over.
    pub steps: u64,
    free_steps: u64,
    /// Where the match that is being looked for starts.
    start: usize,
    #[cfg(test)]
    pub always_remembers: bool,
}

struct Room<'a> {
    program: &'a Program,
    text: &'a [u8],
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
        let room = Room { program, text };
        self.run::<true>(&room, program.start, start)
    }

    /// Run the whole program (`WHOLE`) or a body from `pc`: the end of its first match.
    fn run<const WHOLE: bool>(&mut self, room: &Room, mut pc: Pc, mut at: usize) -> Option<usize> {
        let base = self.frames.len();
        let text = room.text;
        self.remembering |= self.steps > self.free_steps;
        loop {
            self.steps += 1;
            let advanced = match &room.program.instructions[pc as usize] {
                Instruction::Accept => {
                    if at > self.start {
                        self.succeed::<WHOLE>(room, base, at);
                        return Some(at);
                    }
                    None
                }
                Instruction::BodyAccept => {
                    self.succeed::<WHOLE>(room, base, at);
                    return Some(at);
                }
                Instruction::Fail => None,
                Instruction::Literal { bytes, next } => text[at..]
                    .starts_with(bytes)
                    .then(|| (*next, at + bytes.len())),
                Instruction::Class { set, next } => {
                    match room.program.sets[*set as usize].step(text, at) {
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
                } => match self.enter_run(room, pc, at, (*set, *min, *max, *possessive, *slot)) {
                    Entered::At(end) => Some((*next, end)),
                    Entered::Failed => None,
                    Entered::Won(end) => {
                        self.succeed::<WHOLE>(room, base, end);
                        return Some(end);
                    }
                },
                Instruction::Choice(choice) => {
                    if self.remembering {
                        let won = if WHOLE {
                            None
                        } else {
                            self.memo.won(choice.slot, at)
                        };
                        if let Some(end) = won {
                            self.succeed::<WHOLE>(room, base, end);
                            return Some(end);
                        }
                        if self.memo.has_failed(choice.slot, at) {
                            match self.backtrack(room, base) {
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
                    let found = self.run::<false>(room, *body, at).is_some();
                    (found != *negative).then_some((*next, at))
                }
                Instruction::AheadClass {
                    set,
                    negative,
                    next,
                } => {
                    let found = room.program.sets[*set as usize].step(text, at) > 0;
                    (found != *negative).then_some((*next, at))
                }
                Instruction::Behind {
                    sequences,
                    negative,
                    next,
                } => {
                    let mut sequences = sequences.iter();
                    let found = sequences.any(|sequence| ends_at(room, sequence, at));
                    (found != *negative).then_some((*next, at))
                }
                Instruction::Atomic { body, next } => {
                    let end = self.run::<false>(room, *body, at);
                    end.map(|end| (*next, end))
                }
                Instruction::Assertion { assertion, next } => {
                    holds(room, *assertion, at).then_some((*next, at))
                }
            };
            match advanced {
                Some(place) => (pc, at) = place,
                None => match self.backtrack(room, base) {
                    Some(place) => (pc, at) = place,
                    None => return None,
                },
            }
        }
    }

    /// Match the longest form of a run, and note that it can be shortened.
    #[inline(always)]
    fn enter_run(
        &mut self,
        room: &Room,
        pc: Pc,
        at: usize,
        (set, min, max, possessive, slot): (u32, u32, u32, bool, u32),
    ) -> Entered {
        let chars = &room.program.sets[set as usize];
        let unbounded = max == u32::MAX;
        let (mut end, least);
        if unbounded {
            least = if min == 0 {
                at
            } else {
                let (least, count) = chars.run(room.text, at, min);
                if count < min {
                    return Entered::Failed;
                }
                least
            };
            end = if self.remembering {
                self.remembered_run(room, set, least)
            } else {
                chars.run_until(room.text, least, room.text.len())
            };
            self.steps += (end - least) as u64 * u64::from(!self.remembering);
        } else {
            if self.remembering && !possessive && self.memo.has_failed(slot, at) {
                return Entered::Failed;
            }
            let count;
            (end, count) = chars.run(room.text, at, max);
            self.steps += u64::from(count);
            if count < min {
                return Entered::Failed;
            }
            least = if possessive || min == count {
                end
            } else {
                chars.run(room.text, at, min).0
            };
        }
        if possessive || (least == end && !self.remembering) {
            return Entered::At(end);
        }
        let mut key = at;
        if unbounded {
            key = end;
            if let Some(known) = self
                .remembering
                .then(|| self.memo.shortened(slot, key))
                .flatten()
            {
                if let Some((place, won)) = known.won {
                    return if least <= place {
                        Entered::Won(won)
                    } else {
                        Entered::Failed
                    };
                }
                if known.failed_from <= least {
                    return Entered::Failed;
                }
                if known.failed_from <= end {
                    end = before(room.text, known.failed_from);
                }
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

    /// As `run_until`, but never twice over the same long run.
    fn remembered_run(&mut self, room: &Room, set: u32, at: usize) -> usize {
        let chars = &room.program.sets[set as usize];
        let text = room.text;
        let mut soon = (at + LONG_RUN).min(text.len());
        while soon < text.len() && text[soon] & 0xc0 == 0x80 {
            soon += 1;
        }
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
        self.memo.keep_run(set, end, reached);
        match self.memo.run_end(set, end) {
            (Some(whole), _) => whole,
            (None, _) => reached,
        }
    }

    /// The next way to go on, above `base`.
    fn backtrack(&mut self, room: &Room, base: usize) -> Option<(Pc, usize)> {
        self.remembering |= self.steps > self.free_steps;
        while self.frames.len() > base {
            let frame = self.frames.last_mut()?;
            match &room.program.instructions[frame.pc as usize] {
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
                        frame.at = before(room.text, frame.at);
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
    fn succeed<const WHOLE: bool>(&mut self, room: &Room, base: usize, end: usize) {
        if self.remembering {
            self.remember_success::<WHOLE>(room, base, end);
        }
        self.frames.truncate(base);
    }

    #[cold]
    fn remember_success<const WHOLE: bool>(&mut self, room: &Room, base: usize, end: usize) {
        for frame in &self.frames[base..] {
            match &room.program.instructions[frame.pc as usize] {
                Instruction::Choice(choice) if !WHOLE => {
                    self.memo.win(choice.slot, frame.at, end);
                }
                Instruction::Run { max, slot, .. } if *max == u32::MAX => {
                    // The longer forms have failed.
                    let longer = following(room.text, frame.at);
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

enum Entered {
    At(usize),
    Failed,
    /// The body's match, known from before, ends here.
    Won(usize),
}

/// The end of the character at `at`, or one past the text's end.
fn following(text: &[u8], at: usize) -> usize {
    let mut next = at + 1;
    while next < text.len() && text[next] & 0xc0 == 0x80 {
        next += 1;
    }
    next
}

fn ends_at(room: &Room, sequence: &[u32], mut at: usize) -> bool {
    sequence.iter().rev().all(|&set| {
        at > 0 && {
            at = before(room.text, at);
            room.program.sets[set as usize].step(room.text, at) > 0
        }
    })
}

fn holds(room: &Room, assertion: Assertion, at: usize) -> bool {
    let text = room.text;
    let newline_at = |at: usize| text.get(at) == Some(&b'\n');
    let word = &room.program.sets[room.program.word as usize];
    let is_border = || {
        let left = at > 0 && word.step(text, before(text, at)) > 0;
        let right = word.step(text, at) > 0;
        left != right
    };
    match assertion {
        Assertion::Start => at == 0,
        Assertion::End => at == text.len(),
        Assertion::EndOrLastNewline => at == text.len() || (at + 1 == text.len() && newline_at(at)),
        Assertion::LineStart => at == 0 || newline_at(at - 1),
        Assertion::LineEnd => at == text.len() || newline_at(at),
        Assertion::WordBoundary => is_border(),
        Assertion::NotWordBoundary => !is_border(),
    }
}
