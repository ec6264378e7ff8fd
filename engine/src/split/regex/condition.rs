//! Conditions that the matcher checks without moving: assertions and lookbehinds.

use super::ast::Assertion;
use super::char_set::before;
use super::matcher::Subject;

/// Returns whether a sequence of single characters ends at `at`.
pub fn ends_at(subject: &Subject, sequence: &[u32], mut at: usize) -> bool {
    sequence.iter().rev().all(|&set| {
        at > 0 && {
            at = before(subject.text, at);
            subject.program.sets[set as usize].step(subject.text, at) > 0
        }
    })
}

/// Returns whether an assertion holds at `at`.
pub fn holds(subject: &Subject, assertion: Assertion, at: usize) -> bool {
    let text = subject.text;
    let newline_at = |at: usize| text.get(at) == Some(&b'\n');
    let word = &subject.program.sets[subject.program.word as usize];
    let is_word_boundary = || {
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
        Assertion::WordBoundary => is_word_boundary(),
        Assertion::NotWordBoundary => !is_word_boundary(),
    }
}
