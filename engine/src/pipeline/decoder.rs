//! Decoding of ids to bytes, which may depend on the position of a token: docs/formats.md.

use std::collections::HashMap;

use crate::bpe::UnknownId;

/// A decoder; `pipeline/definition.py` describes the fields.
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
    /// The range in `bytes` of each id; None for an id without a token.
    ranges: Vec<Option<(u32, u32)>>,
    bytes: Vec<u8>,
    /// The ids of the entries of `ranges`, if ids are too sparse to index it directly.
    scattered: Option<Vec<u32>>,
}

/// Whether ids are dense enough for a table with an entry for each up to the largest: even a small
/// file can have very large ids.
pub fn is_dense(count: usize, max_id: u32) -> bool {
    (max_id as usize) < 8 * count + (1 << 16)
}

impl Middle {
    /// Create a table from ids and bytes.
    pub fn new(middle: &[(u32, Vec<u8>)]) -> Self {
        let mut ids: Vec<u32> = middle.iter().map(|&(id, _)| id).collect();
        ids.sort_unstable();
        let max_id = ids.last().copied().unwrap_or(0);
        let scattered = (!is_dense(ids.len(), max_id)).then_some(ids);
        let entries = scattered.as_ref().map_or(max_id as usize + 1, Vec::len);
        let mut found = Middle {
            ranges: vec![None; entries],
            bytes: Vec::new(),
            scattered,
        };
        for (id, token) in middle {
            let start = found.bytes.len() as u32;
            found.bytes.extend_from_slice(token);
            if let Some(index) = found.index(*id) {
                found.ranges[index] = Some((start, found.bytes.len() as u32));
            }
        }
        found
    }

    #[inline]
    fn index(&self, id: u32) -> Option<usize> {
        match &self.scattered {
            Some(ids) => ids.binary_search(&id).ok(),
            None => Some(id as usize),
        }
    }

    fn token(&self, id: u32) -> Option<&[u8]> {
        let (start, end) = (*self.ranges.get(self.index(id)?)?)?;
        self.bytes.get(start as usize..end as usize)
    }
}

impl Decoder {
    /// Decode a sequence of ids.
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
        let units = joined.chunks(unit.len().max(1)).take(*most);
        let units = units.take_while(|part| *part == unit.as_bytes()).count();
        joined.drain(..units * unit.len());
        let (unit, most) = &self.strip_end;
        let units = joined.rchunks(unit.len().max(1)).take(*most);
        let units = units.take_while(|part| *part == unit.as_bytes()).count();
        joined.truncate(joined.len() - units * unit.len());
        Ok(joined)
    }
}
