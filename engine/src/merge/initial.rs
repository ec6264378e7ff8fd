//! The initial parts for merging: characters and pairs of ASCII characters that are certain to be
//! merged first, instead of single bytes.
//!
//! Most merges of Chinese, Japanese or Korean only join the three bytes of a character, and half of
//! those of English join two letters. If it is certain that they come first, merging starts after
//! them. Let c be a character of two or three bytes, or two of one byte (no two c share a byte).
//! Let σ(c) be the first merges of B(c), as many as are to be skipped: all of them if c is a token;
//! the first one if only two of its bytes merge. Let f(c) be the highest rank in σ(c). There are
//! three conditions, which depend on c and on the byte before and after it:
//!
//! 1. While σ(c) is not done, each token that could join a part of c with text beyond c has a
//!    higher rank than the next merge of σ(c). Such a token ends with the first byte or the first
//!    part of c, or starts with its last byte or its last part, and extends beyond c.
//! 2. Once σ(c) is done, each token that joins a part of c with text beyond c has a rank above
//!    f(c).
//! 3. If σ(c) makes c whole, each token that c is a part of has a rank above f(c).
//!
//! **Lemma (opening).** If the characters with σ(c) not empty fulfil the conditions, merging that
//! starts after all σ(c) gives the same tokens. *Proof.* Let P merge from single bytes, and P′ from
//! there. Claim: at any time the parts of P′, after the merges of P so far that are in no σ, are
//! those of P once each unfinished σ(c) is finished. By condition 1, P does nothing else to a c
//! before σ(c) is finished. Let the next merge m of P be in no σ. Both its parts exist in P′.
//! Suppose that P′ had another merge m′ before m, by rank or position. Then m′ would not exist in
//! P: it joins a part of a c whose σ(c) is unfinished, so its rank is above f(c), by 2 or 3. But P
//! could do the next merge of σ(c), whose rank is at most f(c), hence below that of m′ and so below
//! that of m, and would not do m. So P′ does m too, and when P ends, all σ are finished and P′
//! ends. ∎

use crate::merge::NO_RANK;
use crate::vocabulary::Pairs;
use crate::vocabulary::lengths::pair;
use crate::vocabulary::rank_table::RankTable;

/// The initial parts of a byte, of a character or of two ASCII characters: the length of the first
/// part, and the length of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    pub first: usize,
    pub len: usize,
}

const BYTE: Opening = Opening { first: 1, len: 1 };

/// The lowest ranks of tokens that end or start within a character, by their bytes of it and the
/// neighbouring byte; and the tokens that are characters.
#[derive(Debug)]
pub struct Characters {
    /// Rank by code point, up to U+FFFF; `NO_RANK` if the character is no token.
    ranks: Box<[u32; 1 << 16]>,
    /// Whether merging must begin with the bytes of the character. Two bits for each: after a
    /// space, and after anything else.
    banned: Box<[u64]>,
    /// Tokens that end in any byte and a leading byte.
    end_one: Box<[u32]>,
    /// Tokens that end in any byte, the leading byte of a character of three bytes and a trailing
    /// byte, by the latter two and the kind of the first.
    end_two: Box<[u32]>,
    /// Tokens that start with a trailing byte and a byte that is not trailing.
    start_one: Box<[u32]>,
    /// Tokens that start with two trailing bytes and a byte that is not trailing.
    start_two: Box<[u32]>,
    /// By two bytes, where all non-ASCII bytes are one kind: the lowest rank of the tokens that
    /// contain them. `LONGER` is set if that token is not the two bytes alone.
    ascii: Box<[u32]>,
}

/// A flag bit that no rank has set.
const LONGER: u32 = 1 << 31;

impl Characters {
    /// Makes the table from a rank table, its tokens that are not ASCII and the ranks of all
    /// strings of two bytes.
    pub fn of(table: &RankTable, wide: &[(&[u8], u32)], pairs: &Pairs) -> Self {
        let ranks = |count| vec![NO_RANK; count].into_boxed_slice();
        let mut characters = Characters {
            ranks: Box::new([NO_RANK; 1 << 16]),
            banned: vec![0; 1 << 11].into_boxed_slice(),
            end_one: ranks(1 << 14),
            end_two: ranks((1 << 10) * KINDS_BEFORE),
            start_one: ranks(1 << 14),
            start_two: ranks(1 << 12),
            ascii: ranks(KINDS * KINDS),
        };
        // Tokens come in the order of ranks, so a rank that is already stored is lower.
        for (token, rank) in table.iter() {
            for two in token.windows(2) {
                let place = &mut characters.ascii[kinds(two[0], two[1])];
                if *place == NO_RANK {
                    *place = rank | if token.len() == 2 { 0 } else { LONGER };
                }
            }
        }
        for &(token, rank) in wide {
            characters.add(token, rank, pairs);
        }
        characters
    }

    fn add(&mut self, token: &[u8], rank: u32, pairs: &Pairs) {
        let lower = |place: &mut u32| *place = rank.min(*place);
        match *token {
            [last, lead, ..] if is_trailing(last) && !is_trailing(lead) => {
                lower(&mut self.start_one[one_byte(last, lead)]);
            }
            [middle, last, lead, ..]
                if is_trailing(middle) && is_trailing(last) && !is_trailing(lead) =>
            {
                lower(&mut self.start_two[two_bytes(middle, last)]);
            }
            _ => {}
        }
        match *token {
            [.., before, lead @ 0xc0..=0xff] => {
                lower(&mut self.end_one[one_byte(lead, before)]);
            }
            [.., before, lead @ 0xe0..=0xef, second] if is_trailing(second) => {
                lower(&mut self.end_two[end_two(before, lead, second)]);
            }
            _ => {}
        }
        let mut at = 0;
        while at < token.len() {
            let (point, len) = character(token, at);
            at += len;
            if len == 1 {
                continue;
            }
            if len == token.len() {
                self.ranks[point] = rank;
                continue;
            }
            let start = at - len;
            let bytes = &token[start..at];
            // The token must be formed after its characters, because it consists of them.
            let formed = match (self.ranks[point], bytes) {
                (NO_RANK, _) => NO_RANK,
                (whole, &[first, second, third]) => {
                    whole.max(pairs[pair([first, second])].min(pairs[pair([second, third])]))
                }
                (whole, _) => whole,
            };
            if rank <= formed {
                // The token contains this character only together with the bytes before it.
                let after_space = start > 0 && token[start - 1] == b' ';
                self.banned[point / 32] |= if after_space { 1 } else { 3 } << (point % 32 * 2);
            }
        }
    }

    /// Returns the initial parts at `start`: a character, two ASCII characters or a byte.
    #[inline(always)]
    pub fn opening(&self, pairs: &Pairs, text: &[u8], start: usize) -> Opening {
        match text[start] {
            ..0x80 => self.ascii_opening(text, start),
            0x80..0xc0 => BYTE,
            _ => self.wide_opening(pairs, text, start),
        }
    }

    /// Returns two ASCII characters if they are a token with a lower rank than all other tokens
    /// that contain two adjacent bytes of them and of the bytes on either side; else a byte.
    #[inline(always)]
    fn ascii_opening(&self, text: &[u8], start: usize) -> Opening {
        let ranks = |i: usize| match text[i..] {
            [first, second, ..] => self.ascii[kinds(first, second)],
            _ => NO_RANK,
        };
        let before = start.checked_sub(1).map_or(NO_RANK, ranks);
        let made_first = ranks(start) < (before & !LONGER).min(ranks(start + 1) & !LONGER);
        if made_first && text[start + 1].is_ascii() {
            Opening { first: 2, len: 2 }
        } else {
            BYTE
        }
    }

    #[inline]
    fn wide_opening(&self, pairs: &Pairs, text: &[u8], start: usize) -> Opening {
        let (point, len) = character(text, start);
        // At the start of the text, any byte other than a space will do.
        let previous = match start {
            0 => 0,
            _ => text[start - 1],
        };
        let bit = point % 32 * 2 + (previous != b' ') as usize;
        if len == 1 || self.banned[point / 32] >> bit & 1 == 1 {
            return BYTE;
        }
        let end = start + len;
        let (lead, last) = (text[start], text[end - 1]);
        // While the first and the last byte are parts of their own, no merge below these ranks
        // joins the character with text beyond it.
        let before = match start {
            0 => NO_RANK,
            _ => self.end_one[one_byte(lead, previous)],
        };
        let after = match text.get(end) {
            None => NO_RANK,
            Some(&next) if is_trailing(next) => return BYTE,
            Some(&next) => self.start_one[one_byte(last, next)],
        };
        let whole = self.ranks[point];
        if len == 2 {
            let made_first = whole < before.min(after);
            return if made_first {
                Opening { first: 2, len }
            } else {
                BYTE
            };
        }
        let second = text[start + 1];
        let (left, right) = (pairs[pair([lead, second])], pairs[pair([second, last])]);
        let made = left.min(right);
        if made >= before.min(after) {
            return BYTE;
        }
        // The ranks of joins with text beyond the character: of its part of two bytes, and of the
        // other.
        let (two, one, first) = if left <= right {
            (self.end_two[end_two(previous, lead, second)], after, 2)
        } else {
            (self.start_two[two_bytes(second, last)], before, 1)
        };
        if whole < two.min(one) {
            Opening { first: len, len }
        } else if made < two {
            Opening { first, len }
        } else {
            BYTE
        }
    }

    /// Returns the id of a character up to U+FFFF; `NO_RANK` if it is no token.
    #[inline(always)]
    pub fn rank_of(&self, point: u32) -> u32 {
        // Cut to 16 bits, so that no bounds are checked.
        self.ranks[point as u16 as usize]
    }
}

/// Returns the code point and the length of a character of two or three bytes at `start`; (0, 1)
/// for anything else.
///
/// The bytes need not be valid UTF-8 beyond that: no two byte strings give the same character.
#[inline(always)]
pub fn character(text: &[u8], start: usize) -> (usize, usize) {
    let six = |byte: u8| (byte & 0x3f) as usize;
    match *text.get(start..).unwrap_or_default() {
        [first @ 0xe0..=0xef, second, third, ..] if is_trailing(second) && is_trailing(third) => {
            let point = (first as usize & 0x0f) << 12 | six(second) << 6 | six(third);
            if point < 0x800 { (0, 1) } else { (point, 3) }
        }
        [first @ 0xc2..=0xdf, second, ..] if is_trailing(second) => {
            ((first as usize & 0x1f) << 6 | six(second), 2)
        }
        _ => (0, 1),
    }
}

/// Number of kinds of bytes: each ASCII character, and one for all other bytes.
const KINDS: usize = 129;

#[inline(always)]
fn kinds(first: u8, second: u8) -> usize {
    first.min(0x80) as usize * KINDS + second.min(0x80) as usize
}

#[inline(always)]
pub(super) fn is_trailing(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Returns the place of the first or the last byte of a character, and of the byte beside it.
#[inline(always)]
fn one_byte(of_character: u8, beside: u8) -> usize {
    (of_character as usize & 0x3f) << 8 | beside as usize
}

/// Number of kinds of bytes before a character: each trailing byte, a space, and any other.
const KINDS_BEFORE: usize = 66;

#[inline(always)]
fn end_two(before: u8, lead: u8, second: u8) -> usize {
    let kind = match before {
        0x80..0xc0 => before as usize & 0x3f,
        b' ' => 64,
        _ => 65,
    };
    two_bytes(lead & 0x0f, second) * KINDS_BEFORE + kind
}

#[inline(always)]
fn two_bytes(first: u8, second: u8) -> usize {
    (first as usize & 0x3f) << 6 | second as usize & 0x3f
}
