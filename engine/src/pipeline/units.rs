//! What a piece is cut into, and the ids of what is looked up: units, bytes in their place, and the
//! unknown one.

use super::model::{Model, Strings};
use super::pair_merge::Part;

/// What a piece starts as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Units {
    Bytes,
    Characters,
}

/// One of them.
#[derive(Clone, Copy)]
pub enum Unit {
    Byte(u8),
    Character(char),
}

impl Units {
    /// Call `work` with each unit of a piece, and where it starts. In units of characters the
    /// piece is UTF-8.
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
    /// Its bytes, in `buffer`.
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

/// Ids of units that are looked up one after the other, each with where it starts.
pub struct LookedUp<'a> {
    model: &'a Model,
    found: &'a mut Vec<Part>,
    /// Where an unknown part starts that is not given yet.
    pending: Option<u32>,
}

impl<'a> LookedUp<'a> {
    pub fn into(model: &'a Model, found: &'a mut Vec<Part>) -> Self {
        found.clear();
        LookedUp {
            model,
            found,
            pending: None,
        }
    }

    /// A unit, or a string that units merged to.
    pub fn push(&mut self, unit: &[u8], start: u32) {
        let model = self.model;
        if let Some(id) = model.tokens.get(unit) {
            self.known(id, start);
            return;
        }
        let spelled = unit.iter().map(|&byte| model.byte_tokens[byte as usize]);
        if spelled.clone().all(|id| id.is_some()) {
            let places = start..;
            let parts = spelled.flatten().zip(places);
            self.found
                .extend(parts.map(|(symbol, start)| Part { symbol, start }));
            return;
        }
        if !(self.pending.is_some() && model.fuse_unknown) {
            self.finish();
            self.pending = Some(start);
        }
    }

    /// A unit of which the id is known.
    #[inline]
    pub fn known(&mut self, id: u32, start: u32) {
        self.finish();
        self.found.push(Part { symbol: id, start });
    }

    /// A string, or what it is taken apart to.
    pub fn push_apart(&mut self, part: &[u8], start: u32, strings: &Strings) {
        let id = self.model.tokens.get(part);
        match id.and_then(|id| strings.taken_apart.get(&id)) {
            Some([left, right]) => {
                self.push_apart(left, start, strings);
                self.push_apart(right, start + left.len() as u32, strings);
            }
            None => self.push(part, start),
        }
    }

    /// Give the unknown part that was not given yet.
    pub fn finish(&mut self) {
        if let Some(start) = self.pending.take()
            && let Some(symbol) = self.model.unknown
        {
            self.found.push(Part { symbol, start });
        }
    }
}
