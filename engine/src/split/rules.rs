//! The family of split patterns that descend from GPT-2's, as a table.
//!
//! Every pattern of the family tries the same alternatives in the same order: contraction,
//! word, number, everything else, white space. They differ in a few points, which are the
//! fields of `Rules`; a new pattern of the family is a new constant.

/// Where `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll` and `'d` are split off.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Contraction {
    None,
    /// The first alternative, lower case only.
    LeadingExact,
    /// The first alternative, in either case.
    Leading,
    /// The optional end of a word, in either case.
    Trailing,
}

/// What may stand in front of a word and belong to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// `\x20?`, in front of numbers too.
    Space,
    /// `[^\r\n\p{L}\p{N}]?`.
    NeitherLetterNorNumber,
}

/// What a word is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// `\p{L}+`.
    Letters,
    /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`, or else
    /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`.
    Cased,
}

/// What follows a run of characters that are neither space nor letter nor number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    None,
    /// `[\r\n]*`.
    Newlines,
    /// `[\r\n/]*`.
    NewlinesAndSlashes,
}

#[derive(Clone, Copy)]
pub struct Rules {
    pub contraction: Contraction,
    pub prefix: Prefix,
    pub word: Word,
    /// The most characters of a number; 0 for no bound.
    pub digits: usize,
    pub tail: Tail,
    /// Whether `\s*[\r\n]+` comes before the other alternatives of white space.
    pub newlines: bool,
    /// Whether white space up to the end of the text is one piece before `newlines` is tried.
    pub whole_end: bool,
}

/// One pattern of the family, as a type, so that the scanner is compiled for it.
pub trait Family {
    const RULES: Rules;
}

pub struct Gpt2;
pub struct Cl100k;
pub struct O200k;
pub struct Llama3;
pub struct Qwen2;
pub struct Tekken;

impl Family for Gpt2 {
    const RULES: Rules = Rules {
        contraction: Contraction::LeadingExact,
        prefix: Prefix::Space,
        word: Word::Letters,
        digits: 0,
        tail: Tail::None,
        newlines: false,
        whole_end: false,
    };
}

impl Family for Llama3 {
    const RULES: Rules = Rules {
        contraction: Contraction::Leading,
        prefix: Prefix::NeitherLetterNorNumber,
        word: Word::Letters,
        digits: 3,
        tail: Tail::Newlines,
        newlines: true,
        whole_end: false,
    };
}

impl Family for Cl100k {
    const RULES: Rules = Rules {
        whole_end: true,
        ..Llama3::RULES
    };
}

impl Family for Qwen2 {
    const RULES: Rules = Rules {
        digits: 1,
        ..Llama3::RULES
    };
}

impl Family for O200k {
    const RULES: Rules = Rules {
        contraction: Contraction::Trailing,
        word: Word::Cased,
        tail: Tail::NewlinesAndSlashes,
        ..Llama3::RULES
    };
}

impl Family for Tekken {
    const RULES: Rules = Rules {
        contraction: Contraction::None,
        digits: 1,
        ..O200k::RULES
    };
}
