//! Rank tables: the tokens of a vocabulary and their ids, and the reader of rank files.

use std::collections::HashSet;

use crate::vocabulary::hash::hash;
use crate::vocabulary::index::TokenIndex;
use crate::vocabulary::short_table::{Key, ShortTable, first_bytes};

/// The greatest id that a table may contain.
pub const MAX_ID: u32 = i32::MAX as u32;

/// The tokens of a vocabulary in id order.
#[derive(Debug)]
pub struct RankTable {
    tokens: Tokens,
    ids: Vec<u32>,
    short: ShortTable,
    /// Index of the tokens that are not in `short`.
    index: TokenIndex,
}

/// Concatenated byte strings.
#[derive(Debug, Default)]
pub struct Tokens {
    bytes: Vec<u8>,
    /// The end of each string.
    ends: Vec<u32>,
}

impl Tokens {
    pub fn get(&self, i: usize) -> &[u8] {
        &self.bytes[self.start(i)..self.ends[i] as usize]
    }

    /// Returns the key of a string; see `Key::of`.
    #[inline(always)]
    fn key(&self, i: usize) -> Key {
        // Mostly one load, as other strings follow.
        let start = self.start(i);
        Key::of(&self.bytes, start, self.ends[i] as usize - start)
    }

    /// Returns the `len` bytes from `start` of all strings.
    pub fn bytes(&self, start: u32, len: u32) -> &[u8] {
        &self.bytes[start as usize..][..len as usize]
    }

    /// Returns the start of a string in the bytes of all strings.
    pub fn start(&self, i: usize) -> usize {
        if i == 0 { 0 } else { self.ends[i - 1] as usize }
    }

    /// Ends the string that consists of the bytes since the last one.
    fn finish(&mut self) {
        self.ends.push(self.bytes.len() as u32);
    }
}

/// The kinds of errors in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    EmptyFile,
    Crlf,
    MalformedLine,
    NotBase64,
    EmptyToken,
    RankNotANumber,
    RankTooLarge,
    DuplicateToken,
    DuplicateRank,
}

impl Fault {
    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Fault::EmptyFile => "empty_file",
            Fault::Crlf => "crlf",
            Fault::MalformedLine => "malformed_line",
            Fault::NotBase64 => "not_base64",
            Fault::EmptyToken => "empty_token",
            Fault::RankNotANumber => "rank_not_a_number",
            Fault::RankTooLarge => "rank_too_large",
            Fault::DuplicateToken => "duplicate_token",
            Fault::DuplicateRank => "duplicate_rank",
        }
    }
}

/// An error, and the 1-based line or item where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFault {
    pub fault: Fault,
    pub line: usize,
}

impl RankTable {
    /// Parses a rank file. Each line has a token in base64, one space and its rank.
    ///
    /// Lines end in a line feed, which is optional on the last. The first faulty line is reported.
    pub fn parse_tiktoken(data: &[u8]) -> Result<Self, TableFault> {
        let mut builder = Builder::default();
        builder.tokens.bytes.reserve(data.len() / 2);
        let body = data.strip_suffix(b"\n").unwrap_or(data);
        let mut start = 0;
        let mut ends = memchr::memchr_iter(b'\n', body).chain([body.len()]);
        let read = ends.try_for_each(|end| {
            let line = &body[start..end];
            start = end + 1;
            builder.read_line(line)
        });
        let read = if data.is_empty() {
            Err(Fault::EmptyFile)
        } else {
            read
        };
        builder.build(read)
    }

    /// Makes a table of pairs. The line of an error is the 1-based position of the pair.
    pub fn from_items<T: AsRef<[u8]>>(
        items: impl IntoIterator<Item = (T, u32)>,
    ) -> Result<Self, TableFault> {
        let mut builder = Builder::default();
        let read = items.into_iter().try_for_each(|(token, id)| {
            builder.tokens.bytes.extend_from_slice(token.as_ref());
            builder.finish_token(id)
        });
        builder.build(read)
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Iterates over tokens and ids, in id order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u32)> + Clone {
        (0..self.len()).map(|i| (self.tokens.get(i), self.ids[i]))
    }

    /// Iterates over the tokens that are not ASCII, and their ids, in id order.
    pub fn wide(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.iter().filter(|(token, _)| !token.is_ascii())
    }

    /// Iterates backwards over those of the first `most` tokens that have a key, and their ids.
    pub fn keys(&self, most: usize) -> impl Iterator<Item = (Key, u32)> {
        let places = (0..self.len().min(most)).rev();
        let items = places.map(|i| (self.tokens.key(i), self.ids[i]));
        items.filter(|(key, _)| key.len() > 0)
    }

    /// Iterates over the tokens' places in the short table, and the hashes that find them.
    pub fn places(&self) -> impl Iterator<Item = (usize, u64)> {
        (0..self.len()).map(|i| {
            let (token, key) = (self.tokens.get(i), self.tokens.key(i));
            let (bytes, hash) = match key.len() {
                0 => (first_bytes(token), hash(token)),
                _ => (key.low, key.hash()),
            };
            (self.short.place(bytes, hash), hash)
        })
    }

    /// Returns the greatest id; None for an empty table.
    pub fn max_id(&self) -> Option<u32> {
        self.ids.last().copied()
    }

    /// Returns the id of the token with exactly these bytes; None if there is none.
    pub fn id_of(&self, token: &[u8]) -> Option<u32> {
        if !token.is_empty() && self.short.has_all_of(token.len()) {
            let key = Key::of(token, 0, token.len());
            return self.short.find(key, key.hash());
        }
        self.id_of_long(token, hash(token))
    }

    /// Returns the id of a token that is not in `short`, by its `hash`; None if there is none.
    pub fn id_of_long(&self, token: &[u8], hash: u64) -> Option<u32> {
        self.index.find(token, hash, &self.tokens)
    }

    /// Returns the table of most tokens of at most 15 bytes.
    pub fn short(&self) -> &ShortTable {
        &self.short
    }

    /// Returns the bytes of the token with this id; None if there is none.
    pub fn token(&self, id: u32) -> Option<&[u8]> {
        self.position(id).map(|position| self.tokens.get(position))
    }

    #[inline]
    fn position(&self, id: u32) -> Option<usize> {
        // Most tables are ranks without gaps, so that position and id are equal.
        match self.ids.get(id as usize) {
            Some(&found) if found == id => Some(id as usize),
            _ => self.ids.binary_search(&id).ok(),
        }
    }

    /// Returns the lowest byte that is not a token; None if all are.
    pub fn missing_byte(&self) -> Option<u8> {
        (0..=255).find(|&byte| self.id_of(&[byte]).is_none())
    }
}

/// A table under construction, in the order of the file.
#[derive(Default)]
struct Builder {
    tokens: Tokens,
    ids: Vec<u32>,
}

impl Builder {
    fn read_line(&mut self, line: &[u8]) -> Result<(), Fault> {
        if line.last() == Some(&b'\r') {
            return Err(Fault::Crlf);
        }
        // From the end, because most ranks have as many digits as the one before.
        let space = line.iter().rposition(|&byte| byte == b' ');
        let (token, rank) = line.split_at(space.ok_or(Fault::MalformedLine)?);
        let is_base64 = decode_base64(token, &mut self.tokens.bytes);
        if rank.len() == 1 || is_base64.is_err() && token.contains(&b' ') {
            return Err(Fault::MalformedLine);
        }
        is_base64?;
        let id = parse_rank(&rank[1..])?;
        self.finish_token(id)
    }

    /// Ends the token that consists of the bytes since the last one, with this id.
    fn finish_token(&mut self, id: u32) -> Result<(), Fault> {
        if self.tokens.bytes.len() == self.tokens.start(self.ids.len()) {
            return Err(Fault::EmptyToken);
        }
        if id > MAX_ID {
            return Err(Fault::RankTooLarge);
        }
        self.tokens.finish();
        self.ids.push(id);
        Ok(())
    }

    /// Makes the table after the last token was read, or reading failed: a duplicate before that
    /// takes precedence.
    fn build(self, read: Result<(), Fault>) -> Result<RankTable, TableFault> {
        let increasing = self.ids.is_sorted_by(|id, next| id < next);
        let repeated_id = match increasing {
            true => None,
            false => first_repeated(&self.ids),
        };
        let (table, repeated_token) = self.index();
        let fault = match (repeated_token, repeated_id) {
            (Some(token), id) if id.is_none_or(|id| token <= id) => {
                Some((Fault::DuplicateToken, token))
            }
            (_, Some(id)) => Some((Fault::DuplicateRank, id)),
            _ => read.err().map(|fault| (fault, table.len())),
        };
        if let Some((fault, position)) = fault {
            let line = position + 1;
            return Err(TableFault { fault, line });
        }
        if increasing {
            return Ok(table);
        }
        let mut items: Vec<_> = table.iter().collect();
        items.sort_by_key(|&(_, id)| id);
        RankTable::from_items(items)
    }

    /// Builds the table in this order. Also returns the first position that repeats an earlier
    /// token.
    fn index(self) -> (RankTable, Option<usize>) {
        let Builder { tokens, ids } = self;
        let keys = (0..ids.len()).map(|i| (tokens.key(i), ids[i]));
        let (short, repeated_short) = ShortTable::of(keys);
        let is_long = |&i: &usize| !short.has_all_of(tokens.get(i).len());
        let long: Vec<usize> = (0..ids.len()).filter(is_long).collect();
        let (index, repeated_long) = TokenIndex::of(&tokens, &ids, &long);
        let repeated = repeated_short.into_iter().chain(repeated_long).min();
        let table = RankTable {
            tokens,
            ids,
            short,
            index,
        };
        (table, repeated)
    }
}

fn first_repeated(ids: &[u32]) -> Option<usize> {
    let mut seen = HashSet::with_capacity(ids.len());
    ids.iter().position(|id| !seen.insert(id))
}

fn parse_rank(digits: &[u8]) -> Result<u32, Fault> {
    let mut value = 0u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return Err(Fault::RankNotANumber);
        }
        value = value.wrapping_mul(10).wrapping_add((digit - b'0') as u64);
    }
    // At most ten digits, as in the reference.
    match u32::try_from(value) {
        Ok(id) if digits.len() <= 10 => Ok(id),
        _ => Err(Fault::RankTooLarge),
    }
}

/// The values of digits in base64, and `PADDING` for padding; three times that for other bytes.
const DIGITS: [u64; 256] = {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut table = [3 * PADDING; 256];
    table[b'=' as usize] = PADDING;
    let mut i = 0;
    while i < alphabet.len() {
        table[alphabet[i] as usize] = i as u64;
        i += 1;
    }
    table
};

const PADDING: u64 = 1 << 32;

/// Decodes canonical base64, which is padded and has no bits left over, and appends the bytes.
fn decode_base64(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let (quads, rest) = text.as_chunks::<4>();
    let (mut before, mut last) = (rest.len() as u64, 0);
    for quad in quads {
        before |= last / PADDING;
        last = quad
            .iter()
            .fold(0, |bits, &digit| bits << 6 | DIGITS[digit as usize]);
        out.extend_from_slice(&(last as u32).to_be_bytes()[1..]);
    }
    // Without branches, which would be unpredictable.
    let flags = last / PADDING;
    let padding = (flags & 1) + (flags >> 6 & 1);
    let expected = [0, 1, 1 << 6 | 1][padding as usize];
    let left_over = last & ((1 << (8 * padding)) - 1);
    if before | (flags ^ expected) | left_over != 0 {
        return Err(Fault::NotBase64);
    }
    out.truncate(out.len() - padding as usize);
    Ok(())
}
