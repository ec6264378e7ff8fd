//! First-byte analysis. Branches that the next byte rules out are not tried, and runs that are
//! never shortened are not remembered.

use regex_syntax::hir::ClassUnicode;

use super::ast::Assertion;
use super::char_set;
use super::program::{Instruction, Pc};
use crate::split::class::decode;

/// The bytes that a match from some instruction can start with, or more; and `END`, the end of the
/// text.
pub type First = [bool; END + 1];

pub const END: usize = 256;

pub const NOWHERE: First = [false; END + 1];

fn unite(first: &mut First, other: &First) {
    for (mine, theirs) in first.iter_mut().zip(other) {
        *mine |= theirs;
    }
}

/// Computes the first bytes of each instruction, as the least fixed point.
pub fn first_bytes(instructions: &[Instruction], sets: &[ClassUnicode]) -> Vec<First> {
    let of_sets: Vec<First> = sets.iter().map(char_set::first_bytes).collect();
    let mut firsts = vec![NOWHERE; instructions.len()];
    loop {
        let mut changed = false;
        for pc in 0..instructions.len() {
            let first = first_of(&instructions[pc], &firsts, &of_sets);
            if first != firsts[pc] {
                firsts[pc] = first;
                changed = true;
            }
        }
        if !changed {
            return firsts;
        }
    }
}

fn first_of(instruction: &Instruction, firsts: &[First], sets: &[First]) -> First {
    let at = |pc: Pc| &firsts[pc as usize];
    let mut first = NOWHERE;
    match instruction {
        Instruction::Accept | Instruction::BodyAccept => first.fill(true),
        Instruction::Fail => {}
        Instruction::Literal { bytes, .. } => first[bytes[0] as usize] = true,
        Instruction::Class { set, .. } => first = sets[*set as usize],
        Instruction::Run { set, min, next, .. } => {
            first = sets[*set as usize];
            if *min == 0 {
                unite(&mut first, at(*next));
            }
        }
        Instruction::Choice(choice) => {
            for &branch in &choice.branches {
                unite(&mut first, at(branch));
            }
        }
        Instruction::Assertion {
            assertion: Assertion::End,
            next,
        } => first[END] = at(*next)[END],
        Instruction::Assertion {
            assertion: Assertion::EndOrLastNewline | Assertion::LineEnd,
            next,
        } => {
            for place in [END, b'\n' as usize] {
                first[place] = at(*next)[place];
            }
        }
        // A body that can be empty can start with any byte, because its end accepts.
        Instruction::Atomic { body: next, .. }
        | Instruction::Ahead { next, .. }
        | Instruction::AheadClass { next, .. }
        | Instruction::Behind { next, .. }
        | Instruction::Assertion { next, .. } => first = *at(*next),
    }
    first
}

/// Fills the masks of every choice.
pub fn fill_choices(instructions: &mut [Instruction], firsts: &[First]) {
    let is_certain = |pc| is_certain(instructions, pc as Pc, 4);
    let certain: Vec<bool> = (0..instructions.len()).map(is_certain).collect();
    for instruction in instructions {
        let Instruction::Choice(choice) = instruction else {
            continue;
        };
        for (bit, &branch) in choice.branches.iter().enumerate() {
            for (mask, possible) in choice.by_byte.iter_mut().zip(firsts[branch as usize]) {
                *mask |= u64::from(possible) << bit;
            }
            choice.certain |= u64::from(certain[branch as usize]) << bit;
        }
    }
}

/// Returns whether the rest of the program or body matches from `pc` on any text, provided that
/// something has been matched before. Follows at most `depth` instructions.
fn is_certain(instructions: &[Instruction], pc: Pc, depth: usize) -> bool {
    if depth == 0 {
        return false;
    }
    match &instructions[pc as usize] {
        Instruction::Accept | Instruction::BodyAccept => true,
        Instruction::Run { min: 0, next, .. } => is_certain(instructions, *next, depth - 1),
        Instruction::Choice(choice) => {
            let mut branches = choice.branches.iter();
            branches.any(|&branch| is_certain(instructions, branch, depth - 1))
        }
        _ => false,
    }
}

/// Makes a run possessive if a shorter one would not match either, or would never be tried.
pub fn make_possessive(instructions: &mut [Instruction], sets: &[ClassUnicode]) {
    for pc in 0..instructions.len() {
        let Instruction::Run { set, next, .. } = instructions[pc] else {
            continue;
        };
        let class = &sets[set as usize];
        let fixed = is_certain(instructions, next, 4)
            || excludes(instructions, sets, next, class, &mut Vec::new());
        if let (true, Instruction::Run { possessive, .. }) = (fixed, &mut instructions[pc]) {
            *possessive = true;
        }
    }
}

/// Returns whether no match from `pc` starts with a character of `class`.
fn excludes(
    instructions: &[Instruction],
    sets: &[ClassUnicode],
    pc: Pc,
    class: &ClassUnicode,
    seen: &mut Vec<Pc>,
) -> bool {
    const MAX_SEEN: usize = 64;
    if seen.contains(&pc) {
        return true;
    }
    if seen.len() == MAX_SEEN {
        return false;
    }
    seen.push(pc);
    let disjoint = |set: u32| {
        let mut common = class.clone();
        common.intersect(&sets[set as usize]);
        common.ranges().is_empty()
    };
    match &instructions[pc as usize] {
        Instruction::Fail => true,
        Instruction::Literal { bytes, .. } => {
            let (code_point, _) = decode(bytes, 0);
            char::from_u32(code_point).is_some_and(|c| !super::property::contains(class, c))
        }
        Instruction::Class { set, .. } => disjoint(*set),
        Instruction::Run { set, min, next, .. } => {
            disjoint(*set) && (*min > 0 || excludes(instructions, sets, *next, class, seen))
        }
        Instruction::Choice(choice) => {
            let mut branches = choice.branches.iter();
            branches.all(|&branch| excludes(instructions, sets, branch, class, seen))
        }
        Instruction::Assertion {
            assertion: Assertion::End,
            ..
        } => true,
        Instruction::Assertion {
            assertion: Assertion::EndOrLastNewline | Assertion::LineEnd,
            ..
        } => !super::property::contains(class, '\n'),
        Instruction::AheadClass {
            set,
            negative: false,
            ..
        } => disjoint(*set),
        Instruction::Ahead { next, .. }
        | Instruction::AheadClass { next, .. }
        | Instruction::Behind { next, .. }
        | Instruction::Assertion { next, .. } => excludes(instructions, sets, *next, class, seen),
        Instruction::Accept | Instruction::BodyAccept | Instruction::Atomic { .. } => false,
    }
}
