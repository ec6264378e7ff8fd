//! Maps from strings to strings in SentencePiece's compiled format: the twin of
//! `pipeline/charsmap.py`, which describes the format and has validated the map.

const LABEL: u32 = 0x8000_00ff;
const ENDS_KEY: u32 = 0x100;
const VALUE: u32 = 0x7fff_ffff;

/// The sentencepiece package finds only the shortest 32 of the keys that start at a position.
const MAX_KEYS_AT_ONE_PLACE: usize = 32;

/// A compiled map.
pub struct DoubleArray {
    units: Vec<u32>,
    strings: Vec<u8>,
    /// The bytes with which some key starts.
    is_start: [bool; 256],
}

impl DoubleArray {
    /// Create a map from its bytes; None if they are invalid.
    pub fn new(table: &[u8]) -> Option<Self> {
        let (size, rest) = table.split_first_chunk::<4>()?;
        let (trie, strings) = rest.split_at_checked(u32::from_le_bytes(*size) as usize)?;
        let units = trie.as_chunks().0.iter();
        let units: Vec<u32> = units.map(|unit| u32::from_le_bytes(*unit)).collect();
        let root = offset(*units.first()?);
        let is_start = std::array::from_fn(|byte| {
            let unit = units.get(root ^ byte);
            unit.is_some_and(|unit| unit & LABEL == byte as u32)
        });
        Some(DoubleArray {
            units,
            strings: strings.to_vec(),
            is_start,
        })
    }

    /// Whether some key starts with this byte.
    pub fn starts_with(&self, byte: u8) -> bool {
        self.is_start[byte as usize]
    }

    /// The length and the value of the longest key that `data` starts with.
    pub fn longest(&self, data: &[u8]) -> Option<(usize, &str)> {
        self.last_key(data, MAX_KEYS_AT_ONE_PLACE)
    }

    /// The value of the shortest key that `data` starts with.
    pub fn shortest(&self, data: &[u8]) -> Option<&str> {
        self.last_key(data, 1).map(|(_, value)| value)
    }

    /// The last of the first `most` keys that `data` starts with, the shortest first.
    #[inline]
    fn last_key(&self, data: &[u8], most: usize) -> Option<(usize, &str)> {
        if !self.is_start[*data.first()? as usize] {
            return None;
        }
        let mut position = offset(self.units[0]);
        let mut last = None;
        let mut found = 0;
        for (index, &byte) in data.iter().enumerate() {
            position ^= byte as usize;
            let Some(&unit) = self.units.get(position) else {
                break;
            };
            if unit & LABEL != u32::from(byte) {
                break;
            }
            position ^= offset(unit);
            if unit & ENDS_KEY != 0 {
                last = Some((index + 1, (self.units.get(position)? & VALUE) as usize));
                found += 1;
                if found == most {
                    break;
                }
            }
        }
        let (length, start) = last?;
        let value = self.strings.get(start..)?;
        let end = value.iter().position(|&byte| byte == 0)?;
        Some((length, std::str::from_utf8(&value[..end]).ok()?))
    }
}

fn offset(unit: u32) -> usize {
    (unit >> 10 << ((unit & 0x200) >> 6)) as usize
}
