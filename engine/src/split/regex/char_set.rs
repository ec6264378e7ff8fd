//! Sets of characters for the matcher. The first byte of a character decides where it can.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::first::{First, NOWHERE};
use crate::split::class::decode;

/// What the first byte of a character tells: not in the set, in the set, or undecided.
const OUT: u8 = 0;
const IN: u8 = 1;
const UNDECIDED: u8 = 2;

const CODE_POINTS: usize = 0x11_0000;
const ROW: usize = 128;

/// A set of characters.
pub struct CharSet {
    by_first_byte: [u8; 256],
    /// Index into `rows` of the 128 code points from 128 × the position.
    index: Vec<u16>,
    rows: Vec<u128>,
}

impl CharSet {
    pub fn new(class: &ClassUnicode) -> Self {
        let mut bits = vec![0u128; CODE_POINTS / ROW];
        for range in class.iter() {
            fill(&mut bits, range.start() as usize, range.end() as usize);
        }
        let mut rows: Vec<u128> = Vec::new();
        let mut index = Vec::with_capacity(bits.len());
        let mut seen = std::collections::HashMap::new();
        for row in bits {
            let next = rows.len() as u16;
            index.push(*seen.entry(row).or_insert_with(|| {
                rows.push(row);
                next
            }));
        }
        let starts = first_bytes(class);
        let by_first_byte = std::array::from_fn(|byte| match starts[byte] {
            false => OUT,
            true if byte < 0x80 => IN,
            true => UNDECIDED,
        });
        CharSet {
            by_first_byte,
            index,
            rows,
        }
    }

    /// Makes a set of inclusive ranges of code points. Surrogates are left out.
    pub fn of_ranges(ranges: &[(u32, u32)]) -> Self {
        let end = |code_point, other| char::from_u32(code_point).unwrap_or(other);
        let ranges = ranges.iter().map(|&(start, last)| {
            ClassUnicodeRange::new(end(start, '\u{e000}'), end(last, '\u{d7ff}'))
        });
        Self::new(&ClassUnicode::new(ranges))
    }

    /// Returns whether the set has this code point, which must be below 0x110000.
    pub fn contains(&self, code_point: u32) -> bool {
        let row = self.rows[self.index[code_point as usize / ROW] as usize];
        row >> (code_point as usize % ROW) & 1 == 1
    }

    /// Returns the length in bytes of the character at `at`; 0 if it is not in the set.
    #[inline(always)]
    pub fn step(&self, text: &[u8], at: usize) -> usize {
        match text.get(at) {
            Some(&first) => match self.by_first_byte[first as usize] {
                OUT => 0,
                IN => 1,
                _ => self.wide_step(text, at),
            },
            None => 0,
        }
    }

    #[inline(never)]
    fn wide_step(&self, text: &[u8], at: usize) -> usize {
        let (code_point, len) = decode(text, at);
        if self.contains(code_point) { len } else { 0 }
    }

    /// Returns the end of the longest run from `at` of at most `max` characters of the set, and the
    /// number of characters.
    #[inline(always)]
    pub fn run(&self, text: &[u8], mut at: usize, max: u32) -> (usize, u32) {
        let mut count = 0;
        while count < max
            && let step @ 1.. = self.step(text, at)
        {
            at += step;
            count += 1;
        }
        (at, count)
    }

    /// Returns the end of the run of characters of the set from `at`, or `stop` if that comes
    /// first. `stop` must be a character boundary.
    #[inline(always)]
    pub fn run_until(&self, text: &[u8], mut at: usize, stop: usize) -> usize {
        while at < stop
            && let step @ 1.. = self.step(text, at)
        {
            at += step;
        }
        at
    }
}

fn fill(bits: &mut [u128], start: usize, end: usize) {
    for (row, bits) in bits
        .iter_mut()
        .enumerate()
        .take(end / ROW + 1)
        .skip(start / ROW)
    {
        let low = if row == start / ROW { start % ROW } else { 0 };
        let high = if row == end / ROW { end % ROW } else { ROW - 1 };
        *bits |= (u128::MAX >> (ROW - 1 - high)) & (u128::MAX << low);
    }
}

/// Returns which bytes start a character of `class`.
pub fn first_bytes(class: &ClassUnicode) -> First {
    let first = |character: char| character.encode_utf8(&mut [0; 4]).as_bytes()[0] as usize;
    let mut bytes = NOWHERE;
    for range in class.iter() {
        bytes[first(range.start())..=first(range.end())].fill(true);
    }
    bytes
}

/// Returns the start of the character that ends at `at`, which must not be 0.
#[inline]
pub fn before(text: &[u8], mut at: usize) -> usize {
    at -= 1;
    while text[at] & 0xc0 == 0x80 {
        at -= 1;
    }
    at
}

/// Returns the end of the character at `at`; past the end of the text, `at` + 1.
#[inline]
pub fn after(text: &[u8], mut at: usize) -> usize {
    at += 1;
    while at < text.len() && text[at] & 0xc0 == 0x80 {
        at += 1;
    }
    at
}
