//! Encoding to ids with offsets, by the origin of each character.

use super::Pipeline;
use super::pre_tokenise;
use super::walk::Found;
use crate::bpe::{SpecialFound, reject};
use crate::output::offsets::{OffsetUnit, in_units};
use crate::vocabulary::special::SpecialSet;

impl Pipeline {
    /// Encode a text into ids and the start of each token. The byte offset is exact if the
    /// character in which the token starts is unchanged; otherwise it is the start of that
    /// character's source. Offsets never decrease, although an unknown token can follow the tokens
    /// of later bytes.
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
            self.walk(text, allowed, disallowed, true, &mut |found| {
                let (piece, origins) = match found {
                    Found::Token(id, start, _) => {
                        give(id, start);
                        return true;
                    }
                    Found::Piece(piece, origins) => (piece, origins),
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
