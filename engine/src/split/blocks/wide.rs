//! The classes of a block's non-ASCII characters.

use super::super::bytes::{BLOCK, InstructionSet, members};
use super::super::class::{CASELESS, LOWER, MARK, UNDECIDED, UPPER, char_at, rows_of};

/// Masks of the first bytes of characters, by class.
#[derive(Default)]
pub struct Wide {
    pub upper: u64,
    pub lower: u64,
    pub caseless: u64,
    pub mark: u64,
    /// Numbers and white space.
    pub undecided: u64,
}

impl Wide {
    /// Classifies the characters of a block, which starts at byte `at` of the text, up to the first
    /// undecided one. `firsts` is the mask of their first bytes.
    #[inline(always)]
    pub fn of<I: InstructionSet>(
        text: &[u8],
        at: usize,
        bytes: &[u8; BLOCK],
        mut firsts: u64,
    ) -> Self {
        let mut wide = Wide::default();
        while firsts != 0 {
            let i = firsts.trailing_zeros() as usize;
            match wide.add_alike::<I>(bytes, i, firsts) {
                Some(alike) => firsts &= !alike,
                None => {
                    wide.add(text, at, i);
                    firsts &= firsts - 1;
                }
            }
            // What follows the first undecided character is not used.
            firsts &= wide.undecided.wrapping_sub(1) & !wide.undecided;
        }
        wide
    }

    /// Adds the character at byte `i` of the block, and those that differ from it in the last byte
    /// alone. Returns their mask; None if one by one is faster, or `I` cannot.
    #[inline(always)]
    fn add_alike<I: InstructionSet>(
        &mut self,
        bytes: &[u8; BLOCK],
        i: usize,
        firsts: u64,
    ) -> Option<u64> {
        let (lead, second) = (bytes[i], bytes[(i + 1) % BLOCK]);
        let equal = |byte| I::between(bytes, byte, byte);
        let (group, alike, last) = match (lead, second) {
            (..0xe0, _) => (lead as usize & 0x1f, equal(lead), 1),
            // Mostly punctuation, of which a block has too little to classify it together.
            (0xe2.., 0x80) | (0xe4.., _) => return None,
            _ => {
                let group = (lead as usize & 0x0f) << 6 | second as usize & 0x3f;
                (group, equal(lead) & equal(second) >> 1, 2)
            }
        };
        let sets = members::<I>(bytes, rows_of(group))?;
        let alike = alike & firsts;
        let [[upper, lower], [caseless, mark], [undecided, _]] =
            sets.map(|two| two.map(|set| alike & set >> last));
        self.upper |= upper;
        self.lower |= lower;
        self.caseless |= caseless;
        self.mark |= mark;
        self.undecided |= undecided;
        Some(alike)
    }

    /// Adds the character at byte `i` of the block.
    #[inline(always)]
    fn add(&mut self, text: &[u8], at: usize, i: usize) {
        let Some(seen) = char_at(text, at + i) else {
            return;
        };
        let if_so = |is_so: bool| (is_so as u64) << i;
        self.upper |= if_so(seen.class == UPPER);
        self.lower |= if_so(seen.class == LOWER);
        self.caseless |= if_so(seen.class == CASELESS);
        self.mark |= if_so(seen.class == MARK);
        self.undecided |= if_so(UNDECIDED.has(seen.class));
    }
}

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests {
    use super::super::super::bytes::{Avx2, Plain, has_avx2};
    use super::*;

    #[test]
    fn characters_have_the_same_classes_together_as_alone() {
        if !has_avx2() {
            return;
        }
        let all: Vec<char> = ('\u{80}'..=char::MAX).collect();
        // At most 15, which fit in a block: of one group, and of several.
        for some in all.chunks(15).chain(all.chunks(63)) {
            let text: String = some.iter().step_by(some.len().div_ceil(15)).collect();
            let mut bytes = [0; BLOCK];
            bytes[..text.len()].copy_from_slice(text.as_bytes());
            let firsts = text.char_indices().map(|(i, _)| 1 << i).sum();
            let together = Wide::of::<Avx2>(text.as_bytes(), 0, &bytes, firsts);
            let alone = Wide::of::<Plain>(text.as_bytes(), 0, &bytes, firsts);
            let used = |mask| mask & (alone.undecided ^ alone.undecided.wrapping_sub(1));
            let masks = |of: &Wide| [of.upper, of.lower, of.caseless, of.mark, of.undecided];
            assert_eq!(
                masks(&together).map(used),
                masks(&alone).map(used),
                "{text:?}"
            );
        }
    }
}
