//! Finds many pre-tokens at once, from bit masks over 64 bytes.
//!
//! A block begins at the start of a pre-token, so the text before it does not matter. Bit masks
//! tell for each of the 64 bytes whether it is a letter (L), a number (N), a blank (S: white space
//! except CR and LF; SP is U+0020), a newline (R) or anything else (P). For cl100k and related
//! patterns, pre-tokens start:
//!
//! - at the first letter of a run, or at its prefix if it has one. A prefix is a blank, or a single
//!   P that no SP precedes.
//! - at the first P of a run, or at the SP before it. Newlines after the run belong to it.
//! - at the first number of a run and at every third one after it (at every number if the pattern
//!   is `\p{N}`).
//! - at the first newline of a run, unless a blank or a P precedes it.
//! - at the first blank of a run, and at its last one unless a newline follows.
//! - in o200k and Tekken, at an uppercase letter after a lowercase one.
//! - after contractions, where the next pre-token starts. They are rare, and handled one by one.
//!
//! Each rule needs the kinds of a byte and its neighbours, so a shift and a few logical operations
//! decide all 64 bytes. Most Chinese and Korean letters are found so too; `wide` finds the classes
//! of other non-ASCII characters. Cases that depend on more than neighbours end the block early and
//! are left to `piece_end`: non-ASCII numbers and spaces, blanks between newlines, an uppercase
//! letter after a caseless one, a mark after P, `/` after a newline, a pre-token as
//! long as a block, and the last pre-token of the text.

mod contractions;
mod wide;

use super::Ends;
#[cfg(target_arch = "x86_64")]
use super::bytes::{Avx2, has_avx2};
use super::bytes::{BLOCK, InstructionSet, Kinds, Plain};
use super::piece::piece_end;
use super::rules::*;
use contractions::{leading_contractions, trailing_contractions};
use wide::Wide;

/// Replaces `ends` by the ends of the next pre-tokens from byte `start`.
pub fn fill<F: Family>(text: &[u8], start: usize, ends: &mut Ends) {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the processor has the instructions, as `has_avx2` returned true.
        return unsafe { fill_avx2::<F>(text, start, ends) };
    }
    fill_by::<F, Plain>(text, start, ends);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn fill_avx2<F: Family>(text: &[u8], start: usize, ends: &mut Ends) {
    fill_by::<F, Avx2>(text, start, ends);
}

#[inline(always)]
fn fill_by<F: Family, I: InstructionSet>(text: &[u8], start: usize, ends: &mut Ends) {
    ends.clear();
    let mut at = start;
    while at < text.len() && ends.remaining() >= BLOCK {
        let rest = &text[at..];
        if pays::<F, I>(rest) {
            let mut padded = [0; BLOCK];
            let block = rest.first_chunk().unwrap_or_else(|| {
                padded[..rest.len()].copy_from_slice(rest);
                &padded
            });
            let next = fill_block::<F, I>(text, at, block, rest.len().min(BLOCK), ends);
            // The last pre-token of a block is not complete; the next block starts with it.
            at = next.start;
            if next.may_continue {
                continue;
            }
        }
        at = piece_end::<F>(text, at);
        ends.push(at);
    }
}

/// Returns whether a block is likely to be faster than `piece_end`. It is not if its first
/// pre-token is longer than a block, or if most of its characters are classified one by one.
#[inline(always)]
fn pays<F: Family, I: InstructionSet>(rest: &[u8]) -> bool {
    let (&[first, second, ..], 9..) = (rest, rest.len()) else {
        return false;
    };
    match (I::SHUFFLES, F::RULES.word) {
        (true, _) => matches!(first, ..0x80 | 0xc3..0xe3),
        (false, Word::Letters) => first < 0x80,
        (false, Word::Cased) => first < 0x80 && !(0x80..0xe4).contains(&second),
    }
}

/// Returns a mask of the lowest `count` bits.
#[inline(always)]
fn low_bits(count: usize) -> u64 {
    if count >= 64 { !0 } else { (1 << count) - 1 }
}

/// The classes of a block's characters up to byte `known`.
struct Block {
    kinds: Kinds,
    /// Letters without case, and marks if the pattern counts them as part of words.
    caseless: u64,
    /// The marks in `caseless`.
    mark: u64,
    /// The bytes after each non-ASCII P that is a run of its own and that no space precedes.
    glued: u64,
    known: usize,
    /// The least `known` of a block that another one may follow.
    enough: usize,
}

impl Block {
    #[inline(always)]
    fn of<F: Family, I: InstructionSet>(
        text: &[u8],
        at: usize,
        bytes: &[u8; BLOCK],
        len: usize,
    ) -> Self {
        let mut block = Block {
            kinds: Kinds::of::<I>(bytes),
            caseless: 0,
            mark: 0,
            glued: 0,
            known: len,
            // A character may extend beyond the block.
            enough: BLOCK - 3,
        };
        if block.kinds.wide != 0 {
            block.add_wide::<F, I>(text, at, bytes);
        }
        block
    }

    /// Leaves the starts of pre-tokens from byte `i` on undecided.
    #[inline(always)]
    fn forget_from(&mut self, i: usize) {
        self.known = self.known.min(i + 1);
    }

    /// Leaves the starts of pre-tokens from the first character of a mask on undecided.
    #[inline(always)]
    fn forget_at(&mut self, mask: u64) {
        self.known = self.known.min(mask.trailing_zeros() as usize);
    }

    /// Leaves the starts of pre-tokens undecided from the first run of blanks that a newline
    /// follows, or else from the last run if it does not end in the block. `firsts` is the mask of
    /// the first blanks of runs after newlines.
    ///
    /// Blanks between newlines belong to the piece of the newlines before them, unless those belong
    /// to a run of P. Blanks before other characters start a piece.
    #[inline(always)]
    fn forget_blanks(&mut self, firsts: u64) {
        let Kinds { blank, newline, .. } = self.kinds;
        let last_of = |firsts: u64| (firsts | 1).ilog2() as usize;
        // The carry runs through each run and ends after it.
        let past = blank.wrapping_add(firsts) & !blank & low_bits(self.known);
        let unclear = past & newline;
        if unclear != 0 {
            self.forget_from(last_of(firsts & unclear.wrapping_sub(1) & !unclear));
            return;
        }
        let last = last_of(firsts & low_bits(self.known));
        if last > 0 && past >> last == 0 {
            self.forget_from(last);
            self.enough = self.enough.min(self.known);
        }
    }

    /// Adds non-ASCII characters to the masks. The first number or space ends the known part.
    #[inline(always)]
    fn add_wide<F: Family, I: InstructionSet>(
        &mut self,
        text: &[u8],
        at: usize,
        bytes: &[u8; BLOCK],
    ) {
        let Kinds { wide, trailing, .. } = self.kinds;
        let leading = wide & !trailing;
        // A character that may extend beyond the block is not known.
        self.forget_at(leading & !low_bits(BLOCK - 2));
        let firsts = leading & !self.kinds.caseless & low_bits(self.known);
        let mut found = Wide::of::<I>(text, at, bytes, firsts);
        self.forget_at(found.undecided);
        found.caseless |= self.kinds.caseless;
        if F::RULES.word != Word::Cased {
            let caseless = found.upper | found.lower | found.caseless;
            found = Wide {
                caseless,
                ..Wide::default()
            };
        }
        let Wide {
            upper,
            lower,
            caseless,
            mark,
            ..
        } = found;
        let letter = upper | lower | caseless | mark;
        // The carry runs through the trailing bytes of each character and ends after it.
        let past = |firsts: u64| trailing.wrapping_add(firsts << 1);
        let whole = |firsts: u64| firsts | trailing & !past(firsts);
        self.kinds.upper |= whole(upper);
        self.kinds.lower |= whole(lower);
        self.mark = whole(mark);
        self.caseless = whole(caseless | mark);
        // A P is a run of its own after these, or at the start of the block.
        let other = self.kinds.upper | self.kinds.lower | self.caseless | self.kinds.digit;
        let before = other | self.kinds.newline | self.kinds.blank & !self.kinds.space;
        let alone = wide & !trailing & !letter & (before << 1 | 1);
        self.glued = past(alone) & !trailing;
    }
}

/// The position after the decided part of a block.
struct Next {
    /// Start of the first undecided pre-token.
    start: usize,
    /// Whether a block from there may decide more.
    may_continue: bool,
}

/// Pushes the ends that the block decides.
#[inline(always)]
fn fill_block<F: Family, I: InstructionSet>(
    text: &[u8],
    at: usize,
    bytes: &[u8; BLOCK],
    len: usize,
    ends: &mut Ends,
) -> Next {
    let mut block = Block::of::<F, I>(text, at, bytes, len);
    let mut starts = match F::RULES.prefix {
        Prefix::Space => space_prefix_starts::<F>(&mut block, bytes),
        Prefix::NeitherLetterNorNumber => any_prefix_starts::<F>(&mut block, bytes),
    };
    // A start is certain if the next byte is known. Byte 0 is the start of the block.
    starts &= low_bits(block.known.saturating_sub(1)) & !1;
    ends.push_bits(at, starts);
    Next {
        start: at + (starts | 1).ilog2() as usize,
        may_continue: starts != 0 && block.known >= block.enough,
    }
}

/// Returns the starts of numbers: the start of each run, and the position after every `digits`
/// characters of it.
#[inline(always)]
fn number_starts<F: Family>(number: u64) -> u64 {
    let mut starts = number & !(number << 1);
    match F::RULES.digits {
        usize::MAX => starts,
        1 => number,
        digits => {
            let mut whole = number;
            for i in 1..digits {
                whole &= number << i;
            }
            loop {
                let more = starts | starts << digits & whole;
                if more == starts {
                    return starts;
                }
                starts = more;
            }
        }
    }
}

/// GPT-2: the only prefix is a space, for words, numbers and other characters alike.
#[inline(always)]
fn space_prefix_starts<F: Family>(block: &mut Block, bytes: &[u8; BLOCK]) -> u64 {
    let letter = block.kinds.upper | block.kinds.lower | block.caseless;
    let white = block.kinds.blank | block.kinds.newline;
    let rest = !(letter | block.kinds.digit | white);
    let runs = |mask: u64| mask & !(mask << 1);
    let firsts = runs(letter) | runs(rest) | runs(block.kinds.digit);
    let mut starts = (firsts & !(block.kinds.space << 1)) | (firsts >> 1 & block.kinds.space);
    // White space before other characters: a start at the run and at its last character.
    starts |= runs(white) | (white & !(white >> 1));
    let alone = rest & !(rest << 1) & !(block.kinds.space << 1);
    let candidates = alone & block.kinds.apostrophe & letter >> 1;
    starts ^ leading_contractions::<F>(block, bytes, candidates, letter)
}

/// cl100k and related patterns: a character that is neither letter nor number may precede a word.
#[inline(always)]
fn any_prefix_starts<F: Family>(block: &mut Block, bytes: &[u8; BLOCK]) -> u64 {
    let mut starts = 0;
    if F::RULES.contraction == Contraction::Trailing {
        starts |= trailing_contractions(block, bytes);
    }
    let letter = block.kinds.upper | block.kinds.lower | block.caseless;
    let (number, newline) = (block.kinds.digit, block.kinds.newline);
    let (space, blank) = (block.kinds.space, block.kinds.blank);
    let rest = !(letter | number | blank | newline);
    let words = letter & !(letter << 1 | block.glued);
    // A prefix is a blank, or a P that is a run of its own and that no space precedes.
    let alone = rest & !(rest << 1) & !(space << 1);
    let prefix = blank | alone;
    starts |= (words & !(prefix << 1)) | (words >> 1 & prefix);
    if F::RULES.word == Word::Cased {
        starts |= block.kinds.upper & block.kinds.lower << 1;
        // After a caseless letter, an uppercase one belongs to the word only if a lowercase letter
        // follows later in the run.
        // A mark after a P may belong to either.
        let unclear = block.kinds.upper & block.caseless << 1 | block.mark & rest << 1;
        block.forget_from(unclear.trailing_zeros() as usize);
    }
    starts |= number_starts::<F>(number);
    let rests = rest & !(rest << 1);
    starts |= (rests & !(space << 1)) | (rests >> 1 & space);
    // Newlines after a run of P belong to it.
    starts |= newline & !((newline | blank | rest) << 1);
    if F::RULES.tail == Tail::NewlinesAndSlashes {
        let unclear = block.kinds.slash & newline << 1;
        block.forget_from(unclear.trailing_zeros() as usize);
    }
    let blanks = blank & !(blank << 1);
    starts |= blanks & !(newline << 1);
    let after_newline = blanks & newline << 1;
    if after_newline != 0 {
        block.forget_blanks(after_newline);
        starts |= after_newline;
    }
    starts |= blank & !(blank >> 1) & !(newline >> 1);
    if matches!(
        F::RULES.contraction,
        Contraction::Leading | Contraction::LeadingExact
    ) {
        let candidates = alone & block.kinds.apostrophe & letter >> 1;
        starts ^= leading_contractions::<F>(block, bytes, candidates, letter);
    }
    starts
}
