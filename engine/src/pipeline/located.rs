//! Encoding to ids with offsets, on texts that track the origin of each character.

use std::ops::Range;

use super::origins::{Aligned, Origins};
use super::pre_tokenise;
use super::{NameSet, Pipeline, PipelineScratch};
use crate::bpe::SpecialFound;
use crate::output::offsets::{OffsetUnit, in_units};

impl Pipeline {
    /// Encode a text into ids and the start of each token. The byte offset is exact if the character
    /// in which the token starts is unchanged; otherwise it is the start of that character's source.
    /// Offsets never decrease, although an unknown token can follow the tokens of later bytes.
    pub fn encode_with_offsets(
        &self,
        text: &str,
        unit: OffsetUnit,
        allowed: &NameSet,
        disallowed: &NameSet,
    ) -> Result<(Vec<u32>, Vec<usize>), SpecialFound> {
        let (mut ids, mut starts) = (Vec::new(), Vec::new());
        let mut last = 0;
        self.check_spelled(text, disallowed)?;
        self.pool.with(|scratch| {
            self.locate(text, allowed, disallowed, scratch, &mut |id, start| {
                last = start.max(last);
                ids.push(id);
                starts.push(last);
                true
            })
        })?;
        Ok((ids, in_units(text, starts, unit)))
    }

    /// Call `give` with each id of a text and its start, until it returns false.
    ///
    /// A disallowed special token is an error also if it occurs only in normalised text. The caller
    /// has checked the original text.
    pub(super) fn locate(
        &self,
        text: &str,
        allowed: &NameSet,
        disallowed: &NameSet,
        scratch: &mut PipelineScratch,
        give: &mut impl FnMut(u32, usize) -> bool,
    ) -> Result<(), SpecialFound> {
        let (merging, cache) = (&mut scratch.merging, &mut scratch.cache);
        let written = self.has_byte_alphabet();
        self.trace(text, allowed, disallowed, &mut |found| {
            let (piece, starts) = match found {
                Step::Token(id, start, _) => return give(id, start),
                Step::Piece(piece, starts) => (piece, starts),
            };
            let mut wanted = true;
            if written {
                let offsets = written_offsets(text, piece, starts);
                pre_tokenise::read(piece, &mut scratch.bytes);
                self.model.locate(&scratch.bytes, merging, cache, |id, at| {
                    wanted = give(id, offsets[at.min(offsets.len() - 1)]);
                    wanted
                });
            } else {
                self.model
                    .locate(piece.as_bytes(), merging, cache, |id, at| {
                        wanted = give(id, offset(text, piece, starts, at.min(piece.len() - 1)));
                        wanted
                    });
            }
            wanted && !merging.is_cancelled()
        })
    }

    /// Call `give` with each added token and each piece of a text, until it returns false. Errors as
    /// `locate`.
    pub(super) fn trace(
        &self,
        text: &str,
        allowed: &NameSet,
        disallowed: &NameSet,
        give: &mut impl FnMut(Step<'_>) -> bool,
    ) -> Result<(), SpecialFound> {
        let mut outcome = Ok(true);
        let (names, not) = (&allowed.names, &disallowed.names);
        let found = self.as_it_came.each_part(text, names, not, |part, token| {
            outcome = match token {
                Some(id) => Ok(give(Step::Token(
                    id,
                    part.start,
                    text.floor_char_boundary(part.end - 1),
                ))),
                None => self.trace_stretch(text, part, allowed, disallowed, give),
            };
            matches!(outcome, Ok(true))
        });
        outcome?;
        found.map_err(|found| SpecialFound {
            token: found.name,
            byte_offset: found.at,
        })
    }

    /// Returns: false if `give` returned false.
    fn trace_stretch(
        &self,
        text: &str,
        stretch: Range<usize>,
        allowed: &NameSet,
        disallowed: &NameSet,
        give: &mut impl FnMut(Step<'_>) -> bool,
    ) -> Result<bool, SpecialFound> {
        let stretch = Aligned::original(text, stretch);
        let Aligned {
            text: normal,
            starts,
        } = self.normalisers.apply_traced(stretch, text);
        let mut wanted = true;
        let (names, not) = (&allowed.names, &disallowed.names);
        let found = self
            .normalised
            .each_part(&normal, names, not, |part, token| {
                wanted = if let Some(id) = token {
                    give(Step::Token(id, starts[part.start], starts[part.end - 1]))
                } else {
                    let origins = Origins::of(&starts[part.clone()]);
                    let give = &mut |piece: &str, origins: Origins<'_>| {
                        give(Step::Piece(piece, origins.starts().unwrap_or_default()))
                    };
                    pre_tokenise::each_piece(&self.pre_tokenizers, &normal[part], origins, give)
                };
                wanted
            });
        match found {
            Ok(()) => Ok(wanted),
            Err(found) => Err(SpecialFound {
                token: found.name,
                byte_offset: starts[found.at],
            }),
        }
    }
}

/// A part of a text.
pub(super) enum Step<'a> {
    /// An added token: its id, and the starts of its first and its last character.
    Token(u32, usize, usize),
    /// A piece, and the origin of each of its bytes.
    Piece(&'a str, &'a [usize]),
}

/// The origin of the byte `at` of a piece.
fn offset(text: &str, piece: &str, starts: &[usize], at: usize) -> usize {
    let start = starts[at];
    let boundary = (0..=at).rev().find(|&byte| piece.is_char_boundary(byte));
    let Some(character) = boundary.filter(|&byte| byte < at) else {
        return start;
    };
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
