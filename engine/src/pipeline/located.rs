//! The steps of a text, and encoding to ids with offsets by the origin of each character.

use std::borrow::Cow;

use super::Pipeline;
use super::origins::{Aligned, Origins};
use super::pre_tokenise;
use crate::bpe::{SpecialFound, reject};
use crate::output::offsets::{OffsetUnit, in_units};
use crate::vocabulary::special::SpecialSet;

impl Pipeline {
    /// Encode a text into ids and the start of each token. The byte offset is exact if the character
    /// in which the token starts is unchanged; otherwise it is the start of that character's source.
    /// Offsets never decrease, although an unknown token can follow the tokens of later bytes.
    pub fn encode_with_offsets(
        &self,
        text: &str,
        unit: OffsetUnit,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
    ) -> Result<(Vec<u32>, Vec<usize>), SpecialFound> {
        reject(text, disallowed)?;
        let (mut ids, mut starts) = (Vec::new(), Vec::new());
        let mut last = 0;
        let mut give = |id, start: usize| {
            last = start.max(last);
            ids.push(id);
            starts.push(last);
        };
        let is_written = self.has_byte_alphabet();
        self.pool.with(|scratch| {
            let (merging, cache) = (&mut scratch.merging, &mut scratch.cache);
            self.each_step(text, allowed, disallowed, true, &mut |step| {
                let (piece, origins) = match step {
                    Step::Token(id, start, _) => {
                        give(id, start);
                        return true;
                    }
                    Step::Piece(piece, origins) => (piece, origins),
                };
                let offsets = is_written.then(|| written_offsets(text, piece, origins));
                let bytes = pre_tokenise::bytes_of(piece, is_written, &mut scratch.bytes);
                self.model.locate(bytes, merging, cache, |id, at| {
                    let at = at.min(bytes.len() - 1);
                    let known = offsets.as_ref().map(|offsets| offsets[at]);
                    give(
                        id,
                        known.unwrap_or_else(|| offset(text, piece, origins, at)),
                    );
                });
                !merging.is_cancelled()
            })
        })?;
        Ok((ids, in_units(text, starts, unit)))
    }

    /// Call `give` with each added token and each piece of a text, until it returns false. Origins
    /// are known if `is_traced`, which takes longer.
    ///
    /// A disallowed special token is an error also if it occurs only in normalised text, and beyond
    /// what `give` wants; its offset is known if `is_traced`. The caller has checked the original
    /// text.
    pub(super) fn each_step(
        &self,
        text: &str,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
        is_traced: bool,
        give: &mut impl FnMut(Step<'_>) -> bool,
    ) -> Result<(), SpecialFound> {
        let (as_it_came, normalised) = (&self.as_it_came, &self.normalised);
        let (steps, needs_all) = (&self.pre_tokenizers, !disallowed.is_empty());
        let (mut is_wanted, mut outcome) = (true, Ok(()));
        let found = as_it_came.each_part(text, allowed, disallowed, |part, token| {
            if let Some(id) = token {
                let last = text.floor_char_boundary(part.end - 1);
                is_wanted = is_wanted && give(Step::Token(id, part.start, last));
                return is_wanted || needs_all;
            }
            let traced;
            let (normal, origins) = if is_traced {
                let stretch = Aligned::original(text, part);
                traced = self.normalisers.apply_traced(stretch, text);
                (Cow::Borrowed(&*traced.text), Origins::of(&traced.starts))
            } else {
                let origins = Origins::untracked(part.start == 0);
                (self.normalisers.apply(&text[part]), origins)
            };
            let origin = |at: usize| origins.starts().map_or(0, |starts| starts[at]);
            let found = normalised.each_part(&normal, allowed, disallowed, |part, token| {
                let mut piece = |piece: &str, origins: Origins<'_>| {
                    give(Step::Piece(piece, origins.starts().unwrap_or_default()))
                };
                is_wanted = match token {
                    _ if !is_wanted => false,
                    Some(id) => give(Step::Token(id, origin(part.start), origin(part.end - 1))),
                    None => {
                        let origins = origins.part(part.clone());
                        pre_tokenise::each_piece(steps, &normal[part], origins, &mut piece)
                    }
                };
                is_wanted || needs_all
            });
            outcome = found.map_err(|found| SpecialFound {
                byte_offset: origin(found.byte_offset),
                ..found
            });
            outcome.is_ok() && (is_wanted || needs_all)
        });
        outcome.and(found)
    }
}

/// A part of a text. Without tracing, origins are 0 or empty.
pub(super) enum Step<'a> {
    /// An added token: its id, and the starts of its first and its last character.
    Token(u32, usize, usize),
    /// A piece, and the origin of each of its bytes.
    Piece(&'a str, &'a [usize]),
}

/// The origin of the byte `at` of a piece.
fn offset(text: &str, piece: &str, starts: &[usize], at: usize) -> usize {
    let start = starts[at];
    let character = piece.floor_char_boundary(at);
    if character == at {
        return start;
    }
    let as_it_came = text[start..].chars().next() == piece[character..].chars().next();
    start + if as_it_came { at - character } else { 0 }
}

/// The origin of each byte that a piece in `ByteAlphabet`'s characters encodes.
fn written_offsets(text: &str, piece: &str, starts: &[usize]) -> Vec<usize> {
    let mut before = None;
    let mut within = 0;
    let offsets = piece.char_indices().map(|(at, character)| {
        let start = starts[at];
        within = if before == Some(start) { within + 1 } else { 0 };
        before = Some(start);
        let width = text[start..].chars().next().map_or(0, char::len_utf8);
        let came = (within < width).then(|| pre_tokenise::written(text.as_bytes()[start + within]));
        start + if came == Some(character) { within } else { 0 }
    });
    offsets.collect()
}
