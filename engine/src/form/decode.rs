//! Ids to bytes, where a token's bytes may depend on where it stands: the decoding of
//! docs/formats.md, all at once.

use std::collections::HashMap;

use crate::bpe::UnknownId;

/// What each token gives, and what the ends of a text do to it.
pub struct Decoder {
    pub middle: Middle,
    pub first: HashMap<u32, Vec<u8>>,
    pub first_until_text: bool,
    pub last: HashMap<u32, Vec<u8>>,
    pub only: HashMap<u32, Vec<u8>>,
    pub strip_start: (String, usize),
    pub strip_end: (String, usize),
}

/// Id to bytes.
pub struct Middle {
    /// Where each id's bytes are in `bytes`; nothing for an id without a token.
    places: Vec<Option<(u32, u32)>>,
    bytes: Vec<u8>,
}

impl Middle {
    /// The bytes of these ids.
    pub fn new(middle: &[(u32, Vec<u8>)]) -> Self {
        let count = middle.iter().map(|&(id, _)| id as usize + 1).max();
        let mut places = vec![None; count.unwrap_or(0)];
        let mut bytes = Vec::new();
        for (id, token) in middle {
            let start = bytes.len() as u32;
            bytes.extend_from_slice(token);
            places[*id as usize] = Some((start, bytes.len() as u32));
        }
        Middle { places, bytes }
    }

    /// The greatest id that has a token; 0 where there is none.
    pub fn max_id(&self) -> u32 {
        self.places.len().saturating_sub(1) as u32
    }

    fn token(&self, id: u32) -> Option<&[u8]> {
        let (start, end) = (*self.places.get(id as usize)?)?;
        self.bytes.get(start as usize..end as usize)
    }
}

impl Decoder {
    /// The bytes of a sequence of ids.
    pub fn decode(&self, ids: &[u32]) -> Result<Vec<u8>, UnknownId> {
        let mut joined = Vec::with_capacity(ids.len() * 4);
        let mut is_first = true;
        for (index, &id) in ids.iter().enumerate() {
            let middle = self.middle.token(id).ok_or(UnknownId { index })?;
            let is_last = index + 1 == ids.len();
            let ends = self.last.contains_key(&id) || (is_first && self.only.contains_key(&id));
            let token = match (is_first, is_last && ends) {
                (true, true) => self.only.get(&id),
                (true, false) => self.first.get(&id),
                (false, true) => self.last.get(&id),
                (false, false) => None,
            };
            let token = token.map_or(middle, Vec::as_slice);
            joined.extend_from_slice(token);
            is_first = is_first && self.first_until_text && token.is_empty();
        }
        let (unit, most) = &self.strip_start;
        let start = repeats(&joined, unit.as_bytes(), *most, |data, unit| {
            data.strip_prefix(unit)
        });
        joined.drain(..start);
        let (unit, most) = &self.strip_end;
        let end = repeats(&joined, unit.as_bytes(), *most, |data, unit| {
            data.strip_suffix(unit)
        });
        joined.truncate(joined.len() - end);
        Ok(joined)
    }
}

/// How many bytes go where at most `most` units are taken off one by one.
fn repeats<'d>(
    data: &'d [u8],
    unit: &[u8],
    most: usize,
    strip: impl Fn(&'d [u8], &[u8]) -> Option<&'d [u8]>,
) -> usize {
    let mut rest = data;
    for _ in 0..if unit.is_empty() { 0 } else { most } {
        let Some(shorter) = strip(rest, unit) else {
            break;
        };
        rest = shorter;
    }
    data.len() - rest.len()
}
