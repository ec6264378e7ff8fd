//! Contractions in a block: the letters after an apostrophe that belong to it.

use super::super::bytes::BLOCK;
use super::super::rules::{Contraction, Family, Prefix};
use super::{Block, low_bits};

/// Returns the number of letters of a contraction after an apostrophe at `i`: 1 or 2; 0 for no
/// contraction; None if it is not known.
#[inline(always)]
fn contraction_letters(bytes: &[u8; BLOCK], i: usize, known: usize, exact: bool) -> Option<usize> {
    if i + 2 >= known {
        return None;
    }
    let fold = if exact { 0 } else { 0x20 };
    match (bytes[i + 1] | fold, bytes[i + 2] | fold) {
        (b's' | b'd' | b'm' | b't', _) => Some(1),
        (b'l', b'l') | (b'v', b'e') | (b'r', b'e') => Some(2),
        // U+017F, the long s; its first byte may have been folded to 0xe5.
        (0xc5 | 0xe5, _) if !exact => None,
        _ => Some(0),
    }
}

/// Returns the starts to toggle after apostrophes at the start of a pre-token: the first letters of
/// what the other rules treat as a word belong to a contraction.
#[inline(always)]
pub fn leading_contractions<F: Family>(
    block: &mut Block,
    bytes: &[u8; BLOCK],
    mut candidates: u64,
    letter: u64,
) -> u64 {
    let exact = F::RULES.contraction == Contraction::LeadingExact;
    let mut changed = 0;
    while candidates != 0 {
        let i = candidates.trailing_zeros() as usize;
        candidates &= candidates - 1;
        match contraction_letters(bytes, i, block.known, exact) {
            Some(0) => {}
            Some(letters) => {
                if F::RULES.prefix == Prefix::Space {
                    // This apostrophe is not a prefix, so a word starts after it.
                    changed |= 1 << (i + 1);
                }
                changed |= letter & 1u64.checked_shl((i + 1 + letters) as u32).unwrap_or(0);
            }
            None => {
                block.forget_from(i + 1);
                break;
            }
        }
    }
    changed
}

/// Adds contractions at the end of words to the words' letters. Returns the starts after them that
/// lie inside letters.
#[inline(always)]
pub fn trailing_contractions(block: &mut Block, bytes: &[u8; BLOCK]) -> u64 {
    let letter = block.kinds.upper | block.kinds.lower | block.caseless;
    let mut candidates = block.kinds.apostrophe & letter << 1 & letter >> 1;
    let mut starts = 0;
    let mut after_last = BLOCK;
    while candidates != 0 {
        let i = candidates.trailing_zeros() as usize;
        candidates &= candidates - 1;
        if i == after_last {
            // A word has at most one contraction: this apostrophe is a prefix.
            continue;
        }
        match contraction_letters(bytes, i, block.known, false) {
            Some(0) => {}
            Some(letters) => {
                let taken = low_bits(letters + 1) << i;
                block.kinds.upper &= !taken;
                block.kinds.lower &= !taken;
                block.caseless |= taken;
                after_last = i + 1 + letters;
                starts |= letter & 1u64.checked_shl(after_last as u32).unwrap_or(0);
            }
            None => {
                block.forget_from(i);
                break;
            }
        }
    }
    starts
}
