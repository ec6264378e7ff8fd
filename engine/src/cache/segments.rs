//! Encodes a pre-token of wide characters by its segments.

use std::ops::Range;

use crate::cache::lookup::Lookup;
use crate::cache::recent::Slot;
use crate::cache::{Entry, MAX_PIECE_BYTES, long_hash};
use crate::cancel;
use crate::merge::segments::Segment;
use crate::output::Sink;
use crate::vocabulary::short_table::{Key, LONGEST};

/// Maximum length in bytes of the first segment of a short pre-token that is encoded by segments:
/// two characters and a space. Those that begin with a longer one have few segments.
const MAX_FIRST: usize = 7;

/// Length in bytes from which a pre-token is encoded by segments whatever its first one.
const LONG: usize = 49;

/// Number of bits of `Seen`.
const SEEN_BITS: usize = 1 << 18;

/// After so many pre-tokens that were not repeated, those before them count half.
const HALF_LIFE: u32 = 256;

/// Number of segments between checks for cancellation; more than a cached pre-token has.
const ASK_EVERY: usize = 4096;

/// Decides which pre-tokens of several segments are cached: all where many are repeated, and else,
/// as in Japanese, those that are seen for the second time. Caching costs more than segments do.
pub struct Seen {
    /// A Bloom filter of the hashes of those that were seen.
    bits: Vec<u64>,
    used: usize,
    /// Weights of those that were repeated, and of the others.
    repeated: u32,
    new: u32,
}

impl Default for Seen {
    fn default() -> Self {
        Seen {
            bits: Vec::new(),
            used: 0,
            repeated: 2 * HALF_LIFE,
            new: 0,
        }
    }
}

impl Seen {
    /// Returns whether a pre-token that is not cached is to be.
    fn is_worth_caching(&mut self, hash: u64) -> bool {
        if self.used * 4 >= self.bits.len() * 64 {
            self.bits.clear();
            self.bits.resize(SEEN_BITS / 64, 0);
            self.used = 0;
        }
        let word = &mut self.bits[(hash >> 32) as usize & (SEEN_BITS / 64 - 1)];
        let bit = 1 << (hash >> 58);
        let is_repeated = *word & bit != 0;
        *word |= bit;
        if is_repeated {
            self.repeated += 1;
            return true;
        }
        self.used += 1;
        self.new += 1;
        if self.new >= HALF_LIFE {
            self.new /= 2;
            self.repeated /= 2;
        }
        self.repeated >= self.new
    }
}

impl Lookup<'_> {
    /// Returns the first segment of a pre-token that is to be encoded by segments: one of characters
    /// of three bytes, after a space or punctuation or not.
    #[inline(always)]
    pub fn first_segment(&self, piece: &[u8]) -> Option<Segment> {
        if piece.len() <= 3 || piece[0] < 0xe0 && piece[1] < 0xe0 {
            return None;
        }
        let first = self.vocabulary.crossings().segment(piece, 0);
        let is_worthwhile = first.end <= MAX_FIRST || piece.len() >= LONG;
        (first.end < piece.len() && is_worthwhile).then_some(first)
    }

    /// Encodes a pre-token of several segments. No token crosses their ends, so it is no token, and
    /// merging it is merging them.
    pub fn encode_wide<S: Sink>(
        &mut self,
        piece: &[u8],
        known: (Key, u64),
        first: Segment,
        sink: &mut S,
    ) {
        let is_short = piece.len() <= LONGEST;
        let (key, hash) = match is_short {
            true => known,
            false => (known.0, long_hash(piece)),
        };
        let found = match is_short {
            true => self.cache.find_short(key, hash).map(Entry::ids),
            false => self.cache.find_long(piece, hash),
        };
        if let Some(ids) = found {
            self.seen.repeated += 1;
            sink.extend(ids);
            let slot = Slot::new(key, ids).filter(|_| is_short);
            self.remember(slot, hash);
            return;
        }
        if piece.len() > MAX_PIECE_BYTES || !self.seen.is_worth_caching(hash) {
            self.encode_segments(piece, first, true, sink);
            return;
        }
        let mut ids = std::mem::take(self.ids);
        ids.0.clear();
        self.encode_segments(piece, first, false, &mut ids);
        sink.extend(&ids.0);
        match (Slot::new(key, &ids.0), Entry::new(key, &ids.0)) {
            _ if !is_short => self.cache.insert_long(piece, hash, &ids.0),
            (slot @ Some(_), _) => self.remember(slot, hash),
            (None, Some(entry)) => self.cache.insert_short(hash, entry),
            (None, None) => {}
        }
        *self.ids = ids;
    }

    /// Passes the ids of each segment to `sink`, and caches those of several characters if so asked.
    fn encode_segments<S: Sink>(
        &mut self,
        piece: &[u8],
        first: Segment,
        caches: bool,
        sink: &mut S,
    ) {
        let (mut start, mut segment) = (0, first);
        for count in 1.. {
            let Segment { end, single } = segment;
            match single {
                Some(point) => {
                    let bytes = &piece[start..end];
                    self.vocabulary.push_character(bytes, point, sink);
                }
                None => self.encode_segment(piece, start..end, caches, sink),
            }
            start = end;
            if start == piece.len() || count % ASK_EVERY == 0 && cancel::is_set() {
                return;
            }
            segment = self.vocabulary.crossings().segment(piece, start);
        }
    }

    /// Encodes a segment of several characters. It may be a token that its bytes do not merge to, so
    /// it is not looked up in the vocabulary.
    fn encode_segment<S: Sink>(
        &mut self,
        piece: &[u8],
        range: Range<usize>,
        caches: bool,
        sink: &mut S,
    ) {
        let segment = &piece[range.clone()];
        let key = Key::of_segment(piece, range.start, range.len());
        let hash = key.map_or_else(|| long_hash(segment), Key::hash);
        if let Some(slot) = key.and_then(|key| self.recent.find(key, hash)) {
            sink.extend(&slot.ids()[..slot.count()]);
            return;
        }
        if key.is_none()
            && let Some(ids) = self.cache.find_long(segment, hash)
        {
            sink.extend(ids);
            return;
        }
        let ids = self.merger.merge(self.vocabulary, segment);
        sink.extend(ids);
        match key {
            _ if !caches => {}
            Some(key) => {
                let slot = Slot::new(key, ids);
                self.remember(slot, hash);
            }
            None => self.cache.insert_long(segment, hash, ids),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_again_is_cached_and_what_is_not_is_not() {
        let mut seen = Seen::default();
        let hash = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let cached = |seen: &mut Seen, range: Range<u64>| {
            range.filter(|&i| seen.is_worth_caching(hash(i))).count()
        };
        // At first all are, until most turn out to be new.
        assert_eq!(cached(&mut seen, 0..100), 100);
        cached(&mut seen, 100..1000);
        assert!(cached(&mut seen, 1000..5000) < 400);
        assert_eq!(cached(&mut seen, 4000..5000), 1000);
        // The filter is emptied before it answers yes to all.
        assert!(cached(&mut seen, 10_000..400_000) < 200_000);
    }
}
