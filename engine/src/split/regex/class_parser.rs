//! Bracketed sets and escapes.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::parser::{Flags, Parser};
use super::property::{case_closure, is_cased, perl, property, single};
use crate::split::PatternFault;

pub const ONE_CASE: &str = "a class that holds only one case is not supported under (?i)";

/// The meaning of an escape.
pub enum Escape {
    Character(char),
    Class {
        set: ClassUnicode,
        /// Whether `(?i)` would change the set.
        cased: bool,
    },
}

/// Parses the escape whose backslash, at `start`, has been consumed.
pub fn escape(parser: &mut Parser, start: usize) -> Result<Escape, PatternFault> {
    let Some(letter) = parser.peek() else {
        return Err(parser.fault(start, "the pattern ends with a backslash"));
    };
    parser.at += 1;
    let character = match letter {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'f' => '\u{c}',
        'v' => '\u{b}',
        'a' => '\u{7}',
        'x' => hexadecimal(parser, start, 2)?,
        'u' => hexadecimal(parser, start, 4)?,
        'U' => hexadecimal(parser, start, 8)?,
        's' | 'd' | 'w' | 'S' | 'D' | 'W' => {
            let mut set = perl(letter.to_ascii_lowercase());
            if letter.is_ascii_uppercase() {
                set.negate();
            }
            return Ok(Escape::Class { set, cased: false });
        }
        'p' | 'P' => return named(parser, start, letter == 'P'),
        _ if letter.is_ascii_alphanumeric() => {
            return Err(parser.fault(start, format!("the escape \\{letter} is not supported")));
        }
        _ if letter.is_ascii() => letter,
        _ => return Err(parser.fault(start, "only ASCII characters may be escaped")),
    };
    Ok(Escape::Character(character))
}

fn hexadecimal(parser: &mut Parser, start: usize, digits: usize) -> Result<char, PatternFault> {
    let mut value = Some(0);
    for _ in 0..digits {
        let digit = parser.peek().and_then(|c| c.to_digit(16));
        value = value.zip(digit).map(|(value, digit)| value << 4 | digit);
        parser.at += digit.is_some() as usize;
    }
    value.and_then(char::from_u32).ok_or_else(|| {
        let problem = format!("expected {digits} hexadecimal digits that name a character");
        parser.fault(start, problem)
    })
}

fn named(parser: &mut Parser, start: usize, negate: bool) -> Result<Escape, PatternFault> {
    let mut name = String::new();
    if parser.eat("{") {
        while let Some(character) = parser.peek() {
            parser.at += 1;
            if character == '}' {
                break;
            }
            name.push(character);
        }
    } else if let Some(character) = parser.peek() {
        parser.at += 1;
        name.push(character);
    }
    let Some(mut set) = property(&name) else {
        let problem = format!("the property {name:?} is not supported (its spelling counts)");
        return Err(parser.fault(start, problem));
    };
    if negate {
        set.negate();
    }
    let cased = is_cased(&name);
    Ok(Escape::Class { set, cased })
}

/// Parses the set whose opening bracket has been consumed.
pub fn set(parser: &mut Parser, flags: Flags) -> Result<ClassUnicode, PatternFault> {
    let start = parser.at - 1;
    let negative = parser.eat("^");
    let (mut members, mut holds_class) = (ClassUnicode::empty(), false);
    let first = parser.at;
    loop {
        let at = parser.at;
        match parser.peek() {
            None => return Err(parser.fault(start, "a set is not closed")),
            Some(']') if at > first => break,
            Some(_) => {}
        }
        match member(parser, at, at == first)? {
            Escape::Class { set, .. } => {
                // `regex` widens a set that contains a class by the case variants of the class,
                // unless the class is the only member.
                if flags.ignore_case && case_closure(&set) != set {
                    return Err(parser.fault(at, ONE_CASE));
                }
                if parser.peek() == Some('-') && parser.peek_second() != Some(']') {
                    return Err(parser.fault(parser.at, "a range cannot start with a class"));
                }
                members.union(&set);
                holds_class = true;
            }
            Escape::Character(low) => {
                let mut range = single(low);
                if parser.peek() == Some('-') && parser.peek_second() != Some(']') {
                    parser.at += 1;
                    let high = range_end(parser)?;
                    if high < low {
                        return Err(parser.fault(at, "a range ends before it starts"));
                    }
                    range = ClassUnicode::new([ClassUnicodeRange::new(low, high)]);
                }
                members.union(&range);
            }
        }
    }
    parser.at += 1;
    if flags.ignore_case {
        members = case_closure(&members);
    }
    if negative {
        members.negate();
    }
    parser.sets.note_folded(&members, flags);
    if negative || holds_class {
        parser.sets.note_negated(&members, flags);
    }
    Ok(members)
}

fn range_end(parser: &mut Parser) -> Result<char, PatternFault> {
    let at = parser.at;
    match member(parser, at, false)? {
        Escape::Character(high) => Ok(high),
        Escape::Class { .. } => Err(parser.fault(at, "a range cannot end with a class")),
    }
}

fn member(parser: &mut Parser, at: usize, is_first: bool) -> Result<Escape, PatternFault> {
    let Some(character) = parser.peek() else {
        return Err(parser.fault(at, "a set is not closed"));
    };
    parser.at += 1;
    let next = parser.peek();
    match character {
        '\\' => escape(parser, at),
        '[' => Err(parser.fault(at, "a bracket in a set: write \\[")),
        ']' => Err(parser.fault(at, "a bracket at the start of a set: write \\]")),
        '-' | '&' | '|' | '~' if next == Some(character) => {
            Err(parser.fault(at, "set operators are not supported: escape the character"))
        }
        // `regex` reads it as a literal only at either end of the set.
        '-' if !is_first && next != Some(']') => {
            Err(parser.fault(at, "a hyphen that may be a range: write \\-"))
        }
        _ => Ok(Escape::Character(character)),
    }
}
