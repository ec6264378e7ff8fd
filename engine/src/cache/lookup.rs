//! From one pre-token to its ids: what was recent, then the vocabulary, then the cache, then
//! merging.

use std::ops::Range;

use crate::cache::recent::{Recent, Slot};
use crate::cache::{Cache, Entry, LONGEST_PIECE, MOST_IDS, long_hash};
use crate::merge::Merger;
use crate::output::Sink;
use crate::vocabulary::Vocabulary;
use crate::vocabulary::short_table::{Key, LONGEST};

/// Where one pre-token in this many was not recent, the next ones are prepared.
const MANY: usize = 16;

pub struct Lookup<'a> {
    pub vocabulary: &'a Vocabulary,
    pub merger: &'a mut Merger,
    pub cache: &'a mut Cache,
    pub recent: &'a mut Recent,
    /// Where the pre-tokens are that have to be merged.
    pub unknown: &'a mut Vec<(Range<usize>, Key, u64)>,
    /// How many of the last batch of pre-tokens were not recent.
    pub missed: &'a mut usize,
}

impl Lookup<'_> {
    /// Give the ids of consecutive pre-tokens, the first of which starts at `start`, to the
    /// sink.
    #[inline(always)]
    pub fn encode_pieces<S: Sink>(
        mut self,
        text: &[u8],
        start: usize,
        ends: &[usize],
        sink: &mut S,
    ) {
        let prepare = *self.missed * MANY >= ends.len();
        *self.missed = 0;
        if prepare {
            self.prepare(text, start, ends);
        }
        let mut at = start;
        for &end in ends {
            let key = Key::or_none(text, at, end - at);
            let hash = key.hash();
            match self.recent.find(key, hash) {
                Some(slot) => sink.put_few(slot),
                None => self.encode_piece(&text[at..end], key, hash, sink),
            }
            sink.end_piece();
            at = end;
        }
    }

    /// Make recent or cached what is neither: to wait for the memory of all, and to merge many,
    /// takes hardly longer than for one.
    #[inline(never)]
    fn prepare(&mut self, text: &[u8], start: usize, ends: &[usize]) {
        let mut at = start;
        self.unknown.clear();
        self.unknown.extend(ends.iter().map(|&end| {
            let key = Key::or_none(text, at, end - at);
            let hash = key.hash();
            self.recent.fetch(hash);
            self.vocabulary.expect(hash);
            (std::mem::replace(&mut at, end)..end, key, hash)
        }));
        let mut unknown = std::mem::take(self.unknown);
        unknown.retain(|&(_, key, hash)| {
            let is_new = self.recent.find(key, hash).is_none();
            if is_new {
                self.vocabulary.fetch(hash);
            }
            is_new
        });
        unknown.retain(|(range, key, hash)| !self.is_known(&text[range.clone()], *key, *hash));
        *self.missed += unknown.len();
        let pieces = unknown.iter().map(|(range, ..)| &text[range.clone()]);
        let (recent, cache) = (&mut *self.recent, &mut *self.cache);
        self.merger
            .merge_each(self.vocabulary, pieces, |piece, ids| {
                keep(recent, cache, piece, ids)
            });
        *self.unknown = unknown;
    }

    /// Whether a piece that is not recent need not be merged here. A token is made recent. Long
    /// pieces are few, and to look them up once more costs as much as merging them beside others
    /// saves.
    fn is_known(&mut self, piece: &[u8], key: Key, hash: u64) -> bool {
        if piece.len() > LONGEST {
            return true;
        }
        if let Some(id) = self.vocabulary.whole_short(key, hash) {
            *self.missed += 1;
            remember(self.recent, self.cache, Slot::new(key, &[id]), hash);
            return true;
        }
        self.cache.find_short(key, hash).is_some()
            || piece.len() > MOST_IDS && self.cache.find_long(piece, long_hash(piece)).is_some()
    }

    /// As `encode_pieces`, for one that is not among the recent ones.
    #[inline(never)]
    fn encode_piece<S: Sink>(&mut self, piece: &[u8], key: Key, hash: u64, sink: &mut S) {
        if piece.len() > LONGEST {
            self.encode_long(piece, sink);
        } else if let Some(id) = self.vocabulary.whole_short(key, hash) {
            *self.missed += 1;
            remember(self.recent, self.cache, Slot::new(key, &[id]), hash);
            sink.push(id);
        } else if let Some(entry) = self.cache.find_short(key, hash) {
            sink.extend(entry.ids());
            let slot = Slot::new(key, entry.ids());
            remember(self.recent, self.cache, slot, hash);
        } else {
            self.merge_short(piece, sink);
        }
    }

    #[inline(never)]
    fn merge_short<S: Sink>(&mut self, piece: &[u8], sink: &mut S) {
        // An entry holds the ids of any piece of so few bytes.
        if piece.len() > MOST_IDS
            && let Some(ids) = self.cache.find_long(piece, long_hash(piece))
        {
            sink.extend(ids);
            return;
        }
        *self.missed += 1;
        let ids = self.merger.merge(self.vocabulary, piece);
        sink.extend(ids);
        keep(self.recent, self.cache, piece, ids);
    }

    fn encode_long<S: Sink>(&mut self, piece: &[u8], sink: &mut S) {
        if piece.len() > LONGEST_PIECE {
            match self.vocabulary.whole_long(piece, long_hash(piece)) {
                Some(id) => sink.push(id),
                None => sink.extend(self.merger.merge(self.vocabulary, piece)),
            }
            return;
        }
        let hash = long_hash(piece);
        if let Some(ids) = self.cache.find_long(piece, hash) {
            sink.extend(ids);
            return;
        }
        *self.missed += 1;
        let whole;
        let ids = match self.vocabulary.whole_long(piece, hash) {
            Some(id) => {
                whole = [id];
                &whole[..]
            }
            None => self.merger.merge(self.vocabulary, piece),
        };
        self.cache.insert_long(piece, hash, ids);
        sink.extend(ids);
    }
}

/// Put a slot among the recent ones. The merged one that makes way goes into the cache; most never
/// have to.
#[inline]
fn remember(recent: &mut Recent, cache: &mut Cache, slot: Option<Slot>, hash: u64) {
    let Some(slot) = slot else { return };
    let old = recent.insert(slot, hash);
    if old.count() > 1 {
        let (key, hash) = (old.key(), old.key().hash());
        if cache.find_short(key, hash).is_none()
            && let Some(entry) = Entry::new(key, &old.ids()[..old.count()])
        {
            cache.insert_short(hash, entry);
        }
    }
}

/// Keep the ids of a merged piece where they will be looked for.
fn keep(recent: &mut Recent, cache: &mut Cache, piece: &[u8], ids: &[u32]) {
    if piece.len() > LONGEST {
        cache.insert_long(piece, long_hash(piece), ids);
        return;
    }
    let key = Key::of(piece, 0, piece.len());
    let hash = key.hash();
    match (Slot::new(key, ids), Entry::new(key, ids)) {
        (slot @ Some(_), _) => remember(recent, cache, slot, hash),
        (None, Some(entry)) => cache.insert_short(hash, entry),
        (None, None) => cache.insert_long(piece, long_hash(piece), ids),
    }
}
