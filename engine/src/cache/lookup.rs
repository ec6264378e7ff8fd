//! From one pre-token to its ids: what was recent, then the vocabulary, then the cache, then
//! merging.

use crate::cache::recent::Recent;
use crate::cache::{Cache, Entry, LONGEST_PIECE, MOST_IDS, long_hash};
use crate::merge::Merger;
use crate::output::Sink;
use crate::vocabulary::Vocabulary;
use crate::vocabulary::short_table::{Key, LONGEST};

pub struct Lookup<'a> {
    pub vocabulary: &'a Vocabulary,
    pub merger: &'a mut Merger,
    pub cache: &'a mut Cache,
    pub recent: &'a mut Recent,
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
        let mut at = start;
        for &end in ends {
            let key = Key::or_none(text, at, end - at);
            let hash = key.hash();
            match self.recent.find(key, hash) {
                Some(slot) => sink.put_few(slot),
                None => self.encode_piece(&text[at..end], key, hash, sink),
            }
            at = end;
        }
    }

    /// As `encode_pieces`, for one that is not among the recent ones.
    #[inline(never)]
    fn encode_piece<S: Sink>(&mut self, piece: &[u8], key: Key, hash: u64, sink: &mut S) {
        if piece.len() > LONGEST {
            self.encode_long(piece, sink);
        } else if let Some(id) = self.vocabulary.whole_short(key, hash) {
            self.recent.insert(key, hash, &[id]);
            sink.push(id);
        } else if let Some(entry) = self.cache.find_short(key, hash) {
            self.recent.insert(key, hash, entry.ids());
            sink.put_entry(entry);
        } else {
            self.merge_short(piece, key, hash, sink);
        }
    }

    #[inline(never)]
    fn merge_short<S: Sink>(&mut self, piece: &[u8], key: Key, hash: u64, sink: &mut S) {
        // An entry holds the ids of any piece of so few bytes.
        let long = (piece.len() > MOST_IDS).then(|| long_hash(piece));
        if let Some(ids) = long.and_then(|long| self.cache.find_long(piece, long)) {
            sink.extend(ids);
            return;
        }
        let ids = self.merger.merge(self.vocabulary, piece);
        self.recent.insert(key, hash, ids);
        match (Entry::new(key, ids), long) {
            (Some(entry), _) => self.cache.insert_short(hash, entry),
            (None, Some(long)) => self.cache.insert_long(piece, long, ids),
            (None, None) => {}
        }
        sink.extend(ids);
    }

    fn encode_long<S: Sink>(&mut self, piece: &[u8], sink: &mut S) {
        if piece.len() > LONGEST_PIECE {
            match self.vocabulary.whole_long(piece) {
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
        let whole;
        let ids = match self.vocabulary.whole_long(piece) {
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
