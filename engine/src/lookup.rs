//! From one pre-token to its ids: the vocabulary, then the cache, then merging.

use crate::cache::{Cache, Entry, LONGEST_PIECE, MOST_IDS, long_hash};
use crate::merge::Merger;
use crate::short_table::{Key, LONGEST};
use crate::sink::Sink;
use crate::vocabulary::Vocabulary;

/// A pre-token's key, if it is short, and its hash.
#[derive(Clone, Copy, Default)]
pub struct Prepared {
    key: Key,
    hash: u64,
}

impl Prepared {
    #[inline(always)]
    fn of(text: &[u8], start: usize, end: usize) -> Self {
        let len = end - start;
        if len <= LONGEST {
            let key = Key::of(text, start, len);
            let hash = key.hash();
            Prepared { key, hash }
        } else if len <= LONGEST_PIECE {
            let hash = long_hash(&text[start..end]);
            Prepared {
                key: Key::default(),
                hash,
            }
        } else {
            Prepared::default()
        }
    }
}

pub struct Lookup<'a> {
    pub vocabulary: &'a Vocabulary,
    pub merger: &'a mut Merger,
    pub cache: &'a mut Cache,
}

impl Lookup<'_> {
    /// Give the ids of consecutive pre-tokens, the first of which starts at `start`, to the
    /// sink. All are hashed before the first is looked up: Korean, where most are looked up
    /// twice, gains a fifth.
    pub fn encode_pieces<S: Sink>(
        mut self,
        text: &[u8],
        start: usize,
        ends: &[usize],
        prepared: &mut [Prepared],
        sink: &mut S,
    ) {
        let mut at = start;
        for (&end, prepared) in ends.iter().zip(prepared.iter_mut()) {
            *prepared = Prepared::of(text, at, end);
            at = end;
        }
        sink.reserve(ends.len());
        let mut at = start;
        for (&end, &prepared) in ends.iter().zip(prepared.iter()) {
            self.encode_piece(text, at, end, prepared, sink);
            at = end;
        }
    }

    #[inline(always)]
    fn encode_piece<S: Sink>(
        &mut self,
        text: &[u8],
        start: usize,
        end: usize,
        Prepared { key, hash }: Prepared,
        sink: &mut S,
    ) {
        if end - start > LONGEST {
            self.encode_long(&text[start..end], hash, sink);
        } else if let Some(id) = self.vocabulary.whole_short(key, hash) {
            sink.push_reserved(id);
        } else if let Some(entry) = self.cache.find_short(key, hash) {
            sink.put_entry(entry);
        } else {
            self.merge_short(&text[start..end], key, hash, sink);
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
        match (Entry::new(key, ids), long) {
            (Some(entry), _) => self.cache.insert_short(hash, entry),
            (None, Some(long)) => self.cache.insert_long(piece, long, ids),
            (None, None) => {}
        }
        sink.extend(ids);
    }

    #[inline(never)]
    fn encode_long<S: Sink>(&mut self, piece: &[u8], hash: u64, sink: &mut S) {
        if piece.len() > LONGEST_PIECE {
            match self.vocabulary.whole_long(piece) {
                Some(id) => sink.push(id),
                None => sink.extend(self.merger.merge(self.vocabulary, piece)),
            }
            return;
        }
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
