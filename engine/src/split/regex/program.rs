//! Compiles a tree to a program: instructions that each name their successor.

use std::collections::HashMap;

use regex_syntax::hir::ClassUnicode;

use super::ast::{Assertion, Greed, Node, Repeat, single_of};
use super::char_set::CharSet;
use super::first::{self, END, First};
use crate::split::PatternFault;

/// Index of an instruction.
pub type Pc = u32;

/// Maximum number of instructions plus the bounds of repeats.
const MAX_SIZE: usize = 10_000;

/// Maximum size of the copies in a tree: several times that of any whose program is not too large,
/// if its strings are not long.
pub const MAX_COPIES: usize = 20 * MAX_SIZE;

/// Maximum number of branches of one choice, limited by the bits of its masks.
const MAX_BRANCHES: usize = 60;

pub enum Instruction {
    /// The pattern has matched, unless the match is empty.
    Accept,
    /// The body of a lookaround or an atomic group has matched.
    BodyAccept,
    Fail,
    Literal {
        bytes: Box<[u8]>,
        next: Pc,
    },
    Class {
        set: u32,
        next: Pc,
    },
    /// As many characters of a set as possible, from `min` to `max`. Fewer if the rest fails,
    /// unless `possessive`.
    Run {
        set: u32,
        min: u32,
        max: u32,
        possessive: bool,
        next: Pc,
    },
    /// The first of the branches that leads to a match.
    Choice(Box<Choice>),
    Ahead {
        body: Pc,
        negative: bool,
        next: Pc,
    },
    /// A lookahead for one character.
    AheadClass {
        set: u32,
        negative: bool,
        next: Pc,
    },
    Behind {
        sequences: Box<[Box<[u32]>]>,
        negative: bool,
        next: Pc,
    },
    Atomic {
        body: Pc,
        next: Pc,
    },
    Assertion {
        assertion: Assertion,
        next: Pc,
    },
}

pub struct Choice {
    pub branches: Vec<Pc>,
    /// For each first byte, and for the end of the text, the mask of the branches that it does not
    /// rule out.
    pub by_byte: [u64; END + 1],
    /// Mask of the branches that match any continuation, provided that something has been matched
    /// before.
    pub certain: u64,
}

/// One compiled line of a pattern.
pub struct Program {
    pub instructions: Vec<Instruction>,
    pub sets: Vec<CharSet>,
    pub start: Pc,
    /// Whether a match can start with each byte.
    pub can_start: First,
    /// Index of the set of `\w`.
    pub word: u32,
}

/// Compiles a simplified tree. `offset` is the start of its line in the pattern, in characters.
pub fn compile(node: &Node, offset: usize) -> Result<Program, PatternFault> {
    let mut compiler = Compiler {
        instructions: vec![Instruction::Accept, Instruction::BodyAccept],
        sets: Sets::default(),
        size: 0,
        offset,
    };
    let start = compiler.emit(node, 0)?;
    let word = compiler.sets.number(&super::property::perl('w'));
    let (mut instructions, sets) = (compiler.instructions, compiler.sets);
    let firsts = first::first_bytes(&instructions, &sets.classes);
    first::fill_choices(&mut instructions, &firsts);
    first::make_possessive(&mut instructions, &sets.classes);
    Ok(Program {
        can_start: firsts[start as usize],
        instructions,
        sets: sets.classes.iter().map(CharSet::new).collect(),
        start,
        word,
    })
}

#[derive(Default)]
struct Sets {
    classes: Vec<ClassUnicode>,
    numbers: HashMap<Vec<(char, char)>, u32>,
}

impl Sets {
    fn number(&mut self, class: &ClassUnicode) -> u32 {
        let ranges = class.iter().map(|range| (range.start(), range.end()));
        *self.numbers.entry(ranges.collect()).or_insert_with(|| {
            self.classes.push(class.clone());
            self.classes.len() as u32 - 1
        })
    }
}

struct Compiler {
    instructions: Vec<Instruction>,
    sets: Sets,
    size: usize,
    offset: usize,
}

impl Compiler {
    fn add(&mut self, instruction: Instruction) -> Result<Pc, PatternFault> {
        self.grow(1)?;
        self.instructions.push(instruction);
        Ok(self.instructions.len() as Pc - 1)
    }

    fn grow(&mut self, size: usize) -> Result<(), PatternFault> {
        self.size += size;
        if self.size <= MAX_SIZE {
            return Ok(());
        }
        Err(PatternFault {
            position: self.offset,
            problem: too_many_parts(),
        })
    }

    /// Emits the instructions of `node` with the successor `next`. Returns their start.
    fn emit(&mut self, node: &Node, next: Pc) -> Result<Pc, PatternFault> {
        match node {
            Node::Empty => Ok(next),
            Node::Class(class) => {
                let set = self.sets.number(class);
                self.add(Instruction::Class { set, next })
            }
            Node::Concat(nodes) => self.emit_sequence(nodes, next),
            Node::Alternation(nodes) => self.emit_alternation(nodes, next),
            Node::Repeat(repeat) => match &*repeat.node {
                Node::Class(class) if repeat.greed != Greed::Lazy => {
                    self.emit_run(class, repeat, next)
                }
                _ => self.emit_repeat(repeat, next),
            },
            Node::Atomic(node) => {
                let body = self.emit(node, 1)?;
                self.add(Instruction::Atomic { body, next })
            }
            Node::Ahead { node, negative } => {
                let negative = *negative;
                if let Node::Class(class) = &**node {
                    let set = self.sets.number(class);
                    return self.add(Instruction::AheadClass {
                        set,
                        negative,
                        next,
                    });
                }
                let body = self.emit(node, 1)?;
                self.add(Instruction::Ahead {
                    body,
                    negative,
                    next,
                })
            }
            Node::Behind {
                sequences,
                negative,
            } => {
                let number = |one: &Vec<_>| one.iter().map(|it| self.sets.number(it)).collect();
                let numbered = sequences.iter().map(number).collect();
                self.grow(sequences.iter().map(Vec::len).sum())?;
                self.add(Instruction::Behind {
                    sequences: numbered,
                    negative: *negative,
                    next,
                })
            }
            Node::Assertion(assertion) => self.add(Instruction::Assertion {
                assertion: *assertion,
                next,
            }),
        }
    }

    /// Emits from the last node to the first; consecutive single characters become one literal.
    fn emit_sequence(&mut self, nodes: &[Node], mut next: Pc) -> Result<Pc, PatternFault> {
        let mut rest = nodes;
        while let Some((last, before)) = rest.split_last() {
            let literals = rest.iter().rev().map_while(only_character).count();
            if literals > 1 {
                let (before, row) = rest.split_at(rest.len() - literals);
                let text: String = row.iter().filter_map(only_character).collect();
                let bytes = text.into_bytes().into_boxed_slice();
                next = self.add(Instruction::Literal { bytes, next })?;
                rest = before;
            } else {
                next = self.emit(last, next)?;
                rest = before;
            }
        }
        Ok(next)
    }

    fn emit_alternation(&mut self, nodes: &[Node], next: Pc) -> Result<Pc, PatternFault> {
        if nodes.is_empty() {
            return self.add(Instruction::Fail);
        }
        let mut branches = Vec::with_capacity(nodes.len());
        let (now, later) = nodes.split_at(nodes.len().min(MAX_BRANCHES));
        for node in now {
            branches.push(self.emit(node, next)?);
        }
        if !later.is_empty() {
            branches.push(self.emit_alternation(later, next)?);
        }
        self.add_choice(branches)
    }

    fn add_choice(&mut self, branches: Vec<Pc>) -> Result<Pc, PatternFault> {
        self.add(Instruction::Choice(Box::new(Choice {
            branches,
            by_byte: [0; END + 1],
            certain: 0,
        })))
    }

    fn emit_run(
        &mut self,
        class: &ClassUnicode,
        repeat: &Repeat,
        next: Pc,
    ) -> Result<Pc, PatternFault> {
        self.grow(repeat.max.unwrap_or(repeat.min) as usize)?;
        let set = self.sets.number(class);
        self.add(Instruction::Run {
            set,
            min: repeat.min,
            max: repeat.max.unwrap_or(u32::MAX),
            possessive: repeat.greed == Greed::Possessive,
            next,
        })
    }

    fn emit_repeat(&mut self, repeat: &Repeat, next: Pc) -> Result<Pc, PatternFault> {
        let order = |round: Pc| match repeat.greed {
            Greed::Lazy => vec![next, round],
            Greed::Greedy | Greed::Possessive => vec![round, next],
        };
        let mut entry = next;
        match repeat.max {
            None => {
                let head = self.add_choice(Vec::new())?;
                let round = self.emit(&repeat.node, head)?;
                if let Instruction::Choice(choice) = &mut self.instructions[head as usize] {
                    choice.branches = order(round);
                }
                entry = head;
            }
            Some(max) => {
                for _ in repeat.min..max {
                    let round = self.emit(&repeat.node, entry)?;
                    entry = self.add_choice(order(round))?;
                }
            }
        }
        for _ in 0..repeat.min {
            entry = self.emit(&repeat.node, entry)?;
        }
        Ok(entry)
    }
}

pub fn too_many_parts() -> String {
    format!("the pattern has more than {MAX_SIZE} parts once its repeats are expanded")
}

fn only_character(node: &Node) -> Option<char> {
    match node {
        Node::Class(class) => single_of(class),
        _ => None,
    }
}
