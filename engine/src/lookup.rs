//! From one pre-token to its ids: the vocabulary, then the cache, then merging.

use crate::cache::{Cache, LONGEST_PIECE, long_hash};
use crate::merge::Merger;
use crate::short_table::{Ids, Key, LONGEST};
use crate::sink::Sink;
use crate::vocabulary::Vocabulary;

pub struct Lookup<'a> {
    pub vocabulary: &'a Vocabulary,
    pub merger: &'a mut Merger,
    pub cache: &'a mut Cache,
}

impl Lookup<'_> {
    /// Give the ids of `text[start..end]` to the sink, which has room for one `put`.
    #[inline(always)]
    pub fn encode_piece<S: Sink>(self, text: &[u8], start: usize, end: usize, sink: &mut S) {
        let len = end - start;
        if len <= LONGEST {
            let key = Key::of(text, start, len);
            let hash = key.hash();
            if let Some(ids) = self.vocabulary.whole_short(key, hash) {
                sink.put(ids);
            } else if let Some(ids) = self.cache.find_short(key, hash) {
                sink.put(ids);
            } else {
                self.merge_short(&text[start..end], key, hash, sink);
            }
        } else {
            self.encode_long(&text[start..end], sink);
        }
    }

    #[inline(never)]
    fn merge_short<S: Sink>(self, piece: &[u8], key: Key, hash: u64, sink: &mut S) {
        let long = long_hash(piece);
        if let Some(ids) = self.cache.find_long(piece, long) {
            sink.extend(ids);
            return;
        }
        let ids = self.merger.merge(self.vocabulary, piece);
        match Ids::of(ids.iter().copied()) {
            Some(few) => self.cache.insert_short(key, hash, few),
            None => self.cache.insert_long(piece, long, ids),
        }
        sink.extend(ids);
    }

    #[inline(never)]
    fn encode_long<S: Sink>(self, piece: &[u8], sink: &mut S) {
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
