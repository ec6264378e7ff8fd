//! Splits a piece into units, and looks up their ids: tokens, byte tokens, or the unknown token.

use super::model::Model;
use super::pair_merge::Part;
use super::rule::TakenApart;

/// The kind of units that merging starts from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Units {
    Bytes,
    Characters,
}

/// A unit.
#[derive(Clone, Copy)]
pub enum Unit {
    Byte(u8),
    Character(char),
}

impl Units {
    /// Call `work` with each unit of a piece and its start. With units of characters, the piece is
    /// UTF-8.
    #[inline]
    pub fn each(self, piece: &[u8], mut work: impl FnMut(usize, Unit)) {
        match (self, std::str::from_utf8(piece)) {
            (Units::Characters, Ok(text)) => {
                for (start, character) in text.char_indices() {
                    work(start, Unit::Character(character));
                }
            }
            _ => {
                for (start, &byte) in piece.iter().enumerate() {
                    work(start, Unit::Byte(byte));
                }
            }
        }
    }
}

impl Unit {
    /// The bytes of the unit, in `buffer`.
    pub fn bytes(self, buffer: &mut [u8; 4]) -> &[u8] {
        match self {
            Unit::Character(character) => character.encode_utf8(buffer).as_bytes(),
            Unit::Byte(byte) => {
                buffer[0] = byte;
                &buffer[..1]
            }
        }
    }
}

/// The ids of units that are looked up in order, each with its start.
pub struct LookedUp<'a> {
    model: &'a Model,
    found: &'a mut Vec<Part>,
    /// The start of an unknown part that was not emitted yet.
    pub(super) pending: Option<u32>,
    /// Whether each unit is before the one that was looked up last; then only the number counts.
    pub(super) leftwards: bool,
}

impl<'a> LookedUp<'a> {
    pub fn into(model: &'a Model, found: &'a mut Vec<Part>) -> Self {
        found.clear();
        LookedUp {
            model,
            found,
            pending: None,
            leftwards: false,
        }
    }

    /// Look up a unit, or a string that units merged to.
    pub fn push(&mut self, unit: &[u8], start: u32) {
        let model = self.model;
        if let Some(id) = model.tokens.get(unit) {
            self.known(id, start);
            return;
        }
        let spelled = unit.iter().map(|&byte| model.byte_tokens[byte as usize]);
        if spelled.clone().all(|id| id.is_some()) {
            let parts = spelled.flatten().zip(start..);
            self.found
                .extend(parts.map(|(symbol, start)| Part { symbol, start }));
            return;
        }
        if !(self.pending.is_some() && model.fuse_unknown) {
            self.finish();
            self.pending = Some(start);
        }
    }

    /// Add a unit with a known id.
    #[inline]
    pub fn known(&mut self, id: u32, start: u32) {
        self.finish();
        self.found.push(Part { symbol: id, start });
    }

    /// Look up a string, or the parts that it is taken apart to.
    pub fn push_apart(&mut self, part: &[u8], start: u32, taken_apart: &TakenApart) {
        let id = self.model.tokens.get(part);
        match id.and_then(|id| taken_apart.get(&id)) {
            Some([left, right]) if self.leftwards => {
                self.push_apart(right, start, taken_apart);
                self.push_apart(left, start, taken_apart);
            }
            Some([left, right]) => {
                self.push_apart(left, start, taken_apart);
                self.push_apart(right, start + left.len() as u32, taken_apart);
            }
            None => self.push(part, start),
        }
    }

    /// Emit the unknown part that was not emitted yet.
    pub fn finish(&mut self) {
        if let Some(start) = self.pending.take()
            && let Some(symbol) = self.model.unknown
        {
            self.found.push(Part { symbol, start });
        }
    }
}
