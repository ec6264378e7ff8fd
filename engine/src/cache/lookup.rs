//! Looks up the ids of one pre-token: in the recent ones, the vocabulary and the cache. A pre-token
//! that is in none of them is merged.

use crate::cache::recent::{Recent, Slot};
use crate::cache::segments::Seen;
use crate::cache::{Cache, Entry, MAX_IDS, MAX_PIECE_BYTES, long_hash};
use crate::merge::Merger;
use crate::output::{Ids, MAX_RECENT, Sink};
use crate::vocabulary::Vocabulary;
use crate::vocabulary::short_table::{Key, LONGEST};

/// The entries of long pre-tokens are prefetched if at least one in `MANY_LONG` pre-tokens is long.
const MANY_LONG: usize = 4;

/// The memory for pre-tokens that are not recent is prefetched if at least one in `MANY` of the
/// last batch was not.
const MANY: usize = 16;

pub struct Lookup<'a> {
    pub vocabulary: &'a Vocabulary,
    pub merger: &'a mut Merger,
    pub cache: &'a mut Cache,
    pub recent: &'a mut Recent,
    pub seen: &'a mut Seen,
    /// The ids of one pre-token.
    pub ids: &'a mut Ids,
    /// Number of short pre-tokens of the last batch that were not recent.
    pub missed: &'a mut usize,
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
        let many_new = *self.missed * MANY >= ends.len();
        *self.missed = 0;
        let mut keys = [(Key::default(), 0); MAX_RECENT];
        let mut at = start;
        for ends in ends.chunks(MAX_RECENT) {
            let (mut next, mut long) = (at, 0);
            for (known, &end) in keys.iter_mut().zip(ends) {
                let key = Key::or_none(text, next, end - next);
                *known = (key, key.hash());
                self.recent.fetch(known.1);
                long += usize::from(end - next > LONGEST);
                next = end;
            }
            if long * MANY_LONG >= ends.len() {
                self.fetch_long(text, at, ends);
            }
            if many_new {
                self.fetch(&keys[..ends.len()]);
            }
            let mut done = 0;
            while done < ends.len() {
                let rest = &keys[done..ends.len()];
                let recent = &*self.recent;
                let found = rest.iter().map_while(|&(key, hash)| recent.find(key, hash));
                done += sink.put_recent(found);
                let Some(&end) = ends.get(done) else { break };
                let start = if done == 0 { at } else { ends[done - 1] };
                let (key, hash) = keys[done];
                self.encode_piece(&text[start..end], key, hash, sink);
                sink.end_piece();
                done += 1;
            }
            at = next;
        }
    }

    /// Prefetches the memory that `encode_piece` reads for pre-tokens that are not recent.
    #[inline(never)]
    fn fetch(&self, keys: &[(Key, u64)]) {
        for &(_, hash) in keys {
            self.vocabulary.fetch_filter(hash);
        }
        for &(key, hash) in keys {
            if self.recent.find(key, hash).is_none() {
                self.vocabulary.fetch(hash);
                self.cache.fetch(hash);
            }
        }
    }

    /// Prefetches the cache's memory for long pre-tokens, which have no key.
    #[inline(never)]
    fn fetch_long(&self, text: &[u8], start: usize, ends: &[usize]) {
        let mut at = start;
        let mut hashes = [None; MAX_RECENT];
        for (hash, &end) in hashes.iter_mut().zip(ends) {
            if end - at > LONGEST {
                let long = long_hash(&text[at..end]);
                self.cache.fetch_long(long);
                *hash = Some(long);
            }
            at = end;
        }
        for hash in hashes.into_iter().flatten() {
            self.cache.fetch_long_ids(hash);
        }
    }

    /// Encodes a pre-token that is not recent.
    #[inline(never)]
    fn encode_piece<S: Sink>(&mut self, piece: &[u8], key: Key, hash: u64, sink: &mut S) {
        if let Some(first) = self.first_segment(piece) {
            self.encode_wide(piece, (key, hash), first, sink);
            return;
        }
        if piece.len() > LONGEST {
            self.encode_long(piece, sink);
            return;
        }
        *self.missed += 1;
        if let Some(id) = self.vocabulary.whole_short(key, hash) {
            self.remember(Slot::new(key, &[id]), hash);
            sink.push(id);
        } else if let Some(entry) = self.cache.find_short(key, hash) {
            sink.extend(entry.ids());
            self.remember(Slot::new(key, entry.ids()), hash);
        } else {
            self.merge_short(piece, key, hash, sink);
        }
    }

    /// Inserts a slot into the recent ones. The evicted slot moves to the cache if its pre-token
    /// was merged, which most were not.
    #[inline]
    pub(super) fn remember(&mut self, slot: Option<Slot>, hash: u64) {
        let Some(slot) = slot else { return };
        let old = self.recent.insert(slot, hash);
        if old.count() > 1 {
            let (key, hash) = (old.key(), old.key().hash());
            if self.cache.find_short(key, hash).is_none()
                && let Some(entry) = Entry::new(key, &old.ids()[..old.count()])
            {
                self.cache.insert_short(hash, entry);
            }
        }
    }

    #[inline(never)]
    fn merge_short<S: Sink>(&mut self, piece: &[u8], key: Key, hash: u64, sink: &mut S) {
        // An entry holds the ids of every piece of at most that many bytes.
        let long = (piece.len() > MAX_IDS).then(|| long_hash(piece));
        if let Some(ids) = long.and_then(|long| self.cache.find_long(piece, long)) {
            sink.extend(ids);
            return;
        }
        let ids = self.merger.merge(self.vocabulary, piece);
        sink.extend(ids);
        match (Slot::new(key, ids), Entry::new(key, ids), long) {
            (slot @ Some(_), _, _) => self.remember(slot, hash),
            (None, Some(entry), _) => self.cache.insert_short(hash, entry),
            (None, None, Some(long)) => self.cache.insert_long(piece, long, ids),
            (None, None, None) => {}
        }
    }

    fn encode_long<S: Sink>(&mut self, piece: &[u8], sink: &mut S) {
        let hash = long_hash(piece);
        if piece.len() > MAX_PIECE_BYTES {
            match self.vocabulary.whole_long(piece, hash) {
                Some(id) => sink.push(id),
                None => sink.extend(self.merger.merge(self.vocabulary, piece)),
            }
            return;
        }
        // Before the cache, which thus has only what was merged: segments are looked up there too.
        if let Some(id) = self.vocabulary.whole_long(piece, hash) {
            sink.push(id);
            return;
        }
        if let Some(ids) = self.cache.find_long(piece, hash) {
            sink.extend(ids);
            return;
        }
        let ids = self.merger.merge(self.vocabulary, piece);
        self.cache.insert_long(piece, hash, ids);
        sink.extend(ids);
    }
}
