//! Looks up the ids of one pre-token: in the recent ones, the vocabulary and the cache. A pre-token
//! that is in none of them is merged.

use crate::cache::recent::{Recent, Slot};
use crate::cache::segments::Seen;
use crate::cache::{Cache, Entry, MAX_IDS, MAX_PIECE_BYTES};
use crate::merge::Merger;
use crate::merge::blocks::{BlockSegments, ends_in_block};
use crate::merge::segments::{Segments, starts_wide};
use crate::output::{Ids, MAX_RECENT, Sink};
use crate::vocabulary::Vocabulary;
use crate::vocabulary::hash;
use crate::vocabulary::short_table::{Key, LONGEST};

pub struct Lookup<'a> {
    pub vocabulary: &'a Vocabulary,
    pub merger: &'a mut Merger,
    pub cache: &'a mut Cache,
    pub recent: &'a mut Recent,
    pub seen: &'a mut Seen,
    /// The ids of one pre-token.
    pub ids: &'a mut Ids,
}

impl Lookup<'_> {
    /// Passes the ids of consecutive pre-tokens to `sink`. The first one starts at `start`.
    #[inline(always)]
    pub fn encode_pieces<S: Sink>(
        mut self,
        text: &[u8],
        start: usize,
        ends: &[usize],
        sink: &mut S,
    ) {
        let mut keys = [(Key::default(), 0); MAX_RECENT];
        let mut at = start;
        for ends in ends.chunks(MAX_RECENT) {
            let mut next = at;
            for (known, &end) in keys.iter_mut().zip(ends) {
                let key = Key::of(text, next, end - next);
                *known = (key, self.recent.fetch(key.hash()));
                next = end;
            }
            let mut done = 0;
            while done < ends.len() {
                let rest = &keys[done..ends.len()];
                done += {
                    let find = self.recent.finder();
                    sink.put_recent(rest.iter().map_while(|&(key, place)| find(key, place)))
                };
                let Some(&end) = ends.get(done) else { break };
                let start = if done == 0 { at } else { ends[done - 1] };
                self.encode_piece(&text[start..end], keys[done].0, sink);
                sink.end_piece();
                done += 1;
            }
            at = next;
        }
    }

    /// Encodes a pre-token that is not recent.
    #[inline(never)]
    fn encode_piece<S: Sink>(&mut self, piece: &[u8], key: Key, sink: &mut S) {
        let key = Some(key).filter(|_| piece.len() <= LONGEST);
        if let Some(id) = self.vocabulary.whole_spaces(piece) {
            sink.push(id);
            return;
        }
        let hash = key.map_or_else(|| hash::hash(piece), Key::hash);
        if starts_wide(piece) {
            // Both first, because finding segments costs more.
            if key.is_none()
                && let Some(id) = self.vocabulary.whole_long(piece, hash)
            {
                sink.push(id);
                return;
            }
            let was_seen = piece.len() <= MAX_PIECE_BYTES && self.seen.add(hash);
            if was_seen && self.put_cached(piece, key, hash, sink) {
                return;
            }
            let (crossings, known) = (self.vocabulary.crossings(), (key, hash, was_seen));
            let was_put = if ends_in_block(piece) {
                self.put_segments(piece, known, BlockSegments::of(crossings, piece), sink)
            } else {
                self.put_segments(piece, known, Segments::of(crossings, piece), sink)
            };
            if was_put {
                return;
            }
        }
        self.encode_whole(piece, key, hash, sink);
    }

    /// Encodes a pre-token, or a segment with the same ids, that is not recent.
    #[inline(always)]
    pub(super) fn encode_whole<S: Sink>(
        &mut self,
        piece: &[u8],
        key: Option<Key>,
        hash: u64,
        sink: &mut S,
    ) {
        let whole = match key {
            Some(key) => self.vocabulary.whole_short(key, hash),
            None => self.vocabulary.whole_long(piece, hash),
        };
        if let Some(id) = whole {
            self.remember(key.and_then(|key| Slot::new(key, &[id])), hash);
            sink.push(id);
        } else if !self.put_cached(piece, key, hash, sink) {
            self.merge(piece, key, hash, sink);
        }
    }

    /// Passes the ids of a cached pre-token or segment to `sink`. Returns whether it is cached.
    #[inline(always)]
    pub(super) fn put_cached<S: Sink>(
        &mut self,
        piece: &[u8],
        key: Option<Key>,
        hash: u64,
        sink: &mut S,
    ) -> bool {
        let found = match key {
            Some(key) => self.cache.find_short(key, hash).map(Entry::ids),
            None => self.cache.long.find(piece, hash),
        };
        let Some(ids) = found else { return false };
        sink.extend(ids);
        let slot = key.and_then(|key| Slot::new(key, ids));
        self.remember(slot.map(Slot::in_cache), hash);
        true
    }

    /// Inserts a slot into the recent ones. The evicted slot moves to the cache if its pre-token
    /// was merged, which most were not.
    #[inline]
    pub(super) fn remember(&mut self, slot: Option<Slot>, hash: u64) {
        let Some(slot) = slot else { return };
        let old = self.recent.insert(slot, hash);
        if old.should_be_cached() {
            let key = old.key();
            if let Some(entry) = Entry::new(key, &old.ids()[..old.count()]) {
                self.cache.insert_short(key.hash(), entry);
            }
        }
    }

    #[inline(never)]
    fn merge<S: Sink>(&mut self, piece: &[u8], key: Option<Key>, hash: u64, sink: &mut S) {
        let mut long = Some(hash);
        if key.is_some() {
            // An entry holds the ids of every piece of at most that many bytes.
            long = (piece.len() > MAX_IDS).then(|| hash::hash(piece));
            if long.is_some_and(|long| self.put_cached(piece, None, long, sink)) {
                return;
            }
        }
        let ids = self.merger.merge(self.vocabulary, piece);
        sink.extend(ids);
        let made = key.map(|key| (Slot::new(key, ids), Entry::new(key, ids)));
        match (made.unwrap_or_default(), long) {
            ((slot @ Some(_), _), _) => self.remember(slot, hash),
            ((None, Some(entry)), _) => self.cache.insert_short(hash, entry),
            ((None, None), Some(long)) => self.cache.long.insert(piece, long, ids),
            ((None, None), None) => {}
        }
    }
}
