//! Encodes a pre-token of wide characters by its segments.

use std::ops::Range;

use crate::cache::Entry;
use crate::cache::lookup::Lookup;
use crate::cache::recent::Slot;
use crate::cancel;
use crate::merge::segments::Segment;
use crate::output::Sink;
use crate::vocabulary::hash;
use crate::vocabulary::short_table::{Key, LONGEST};

/// Number of bits of `Seen`.
const SEEN_BITS: usize = 1 << 18;

/// Number of segments between checks for cancellation; more than a cached pre-token has.
const ASK_EVERY: usize = 4096;

/// A Bloom filter of the hashes of pre-tokens that were seen. They are cached when they are seen
/// again: most never are, and looking them up or caching them costs more than merging a few
/// segments.
#[derive(Default)]
pub struct Seen {
    bits: Vec<u64>,
    used: usize,
}

impl Seen {
    /// Adds a hash. Returns whether it may have been added before.
    pub fn add(&mut self, hash: u64) -> bool {
        // A full filter would say so of every hash.
        if self.used * 4 >= self.bits.len() * 64 {
            self.bits.clear();
            self.bits.resize(SEEN_BITS / 64, 0);
            self.used = 0;
        }
        let word = &mut self.bits[(hash >> 32) as usize & (SEEN_BITS / 64 - 1)];
        let bit = 1 << (hash >> 58);
        let was_added = *word & bit != 0;
        *word |= bit;
        self.used += usize::from(!was_added);
        was_added
    }
}

impl Lookup<'_> {
    /// Encodes a pre-token that was not found if it has several segments. Returns whether it has.
    /// No token crosses their ends, so it is no token, and merging it is merging them.
    #[inline(never)]
    pub fn put_segments<S: Sink>(
        &mut self,
        piece: &[u8],
        (key, hash, was_seen): (Option<Key>, u64, bool),
        mut segments: impl Iterator<Item = Segment>,
        sink: &mut S,
    ) -> bool {
        let Some(first) = segments.next().filter(|first| first.end < piece.len()) else {
            return false;
        };
        if !was_seen {
            self.encode_segments(piece, first, segments, sink);
            return true;
        }
        let mut ids = std::mem::take(self.ids);
        ids.0.clear();
        self.encode_segments(piece, first, segments, &mut ids);
        sink.extend(&ids.0);
        match key.map(|key| (Slot::new(key, &ids.0), Entry::new(key, &ids.0))) {
            None => self.cache.long.insert(piece, hash, &ids.0),
            Some((None, Some(entry))) => self.cache.insert_short(hash, entry),
            Some((slot, _)) => self.remember(slot, hash),
        }
        *self.ids = ids;
        true
    }

    /// Passes the ids of each segment to `sink`.
    fn encode_segments<S: Sink>(
        &mut self,
        piece: &[u8],
        mut segment: Segment,
        mut rest: impl Iterator<Item = Segment>,
        sink: &mut S,
    ) {
        let mut start = 0;
        for count in 1.. {
            let Segment { end, single } = segment;
            match single {
                Some(point) => self
                    .vocabulary
                    .push_character(&piece[start..end], point, sink),
                None => self.encode_segment(piece, start..end, sink),
            }
            start = end;
            let Some(next) = rest.next() else { return };
            segment = next;
            if count % ASK_EVERY == 0 && cancel::is_set() {
                return;
            }
        }
    }

    /// Encodes a segment of several characters.
    fn encode_segment<S: Sink>(&mut self, piece: &[u8], range: Range<usize>, sink: &mut S) {
        let segment = &piece[range.clone()];
        if !self.vocabulary.is_like_pre_token(segment) {
            sink.extend(self.merger.merge(self.vocabulary, segment));
            return;
        }
        let key = (segment.len() <= LONGEST).then(|| Key::of(piece, range.start, range.len()));
        let hash = key.map_or_else(|| hash::hash(segment), Key::hash);
        match key.and_then(|key| self.recent.find(key, hash)) {
            Some(slot) => sink.extend(&slot.ids()[..slot.count()]),
            None => self.encode_whole(segment, key, hash, sink),
        }
    }
}
