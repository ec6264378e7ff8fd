//! The family of split patterns that descend from GPT-2's, as a table.
//!
//! Every pattern of the family tries the same alternatives in the same order: contraction,
//! word, number, everything else, white space. They differ in a few points, which are the
//! fields of `Rules`; a new pattern of the family is a new constant.

/// How the suffixes `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll` and `'d` are split off.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Contraction {
    None,
    /// The first alternative, lower case only.
    LeadingExact,
    /// The first alternative, upper or lower case.
    Leading,
    /// The optional end of a word, upper or lower case.
    Trailing,
}

/// The optional first character of a word that is not a letter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// `\x20?`, which may also precede numbers.
    Space,
    /// `[^\r\n\p{L}\p{N}]?`.
    NeitherLetterNorNumber,
}

/// The alternative for words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// `\p{L}+`.
    Letters,
    /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`, or else
    /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`.
    Cased,
}

/// The optional end of a run of characters that are neither white space, letters nor numbers.
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
    /// Maximum number of characters of a number; `usize::MAX` for no maximum.
    pub digits: usize,
    pub tail: Tail,
    /// Whether `\s*[\r\n]+` comes before the other white space alternatives.
    pub newlines: bool,
    /// Whether white space up to the end of the text is one piece, which is tried before
    /// `newlines`.
    pub whole_end: bool,
}

/// A pattern of the family as a type, so that the scanner is compiled for it.
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
        digits: usize::MAX,
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
