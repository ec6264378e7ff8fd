//! Merging: the pair of adjacent parts with the lowest rank first, the leftmost among equals.
//!
//! A pair's rank is the id of the token that its bytes spell. Short pieces are scanned for the
//! lowest rank at every step. Longer ones keep their pairs in a heap. Pieces longer than a window
//! are merged in overlapping windows, which are joined at a common token. `docs/algorithms.md`
//! proves that one common token is enough.

pub mod blocks;
mod heap;
pub mod initial;
pub mod segments;
mod short;

use crate::cancel;
use crate::merge::heap::HeapMerge;
use crate::merge::short::{Parts, SHORT};
use crate::vocabulary::Vocabulary;

/// The rank of a string that is no token: greater than every rank.
pub const NO_RANK: u32 = u32::MAX;

/// Maximum length in bytes of a piece that is merged at once, and initial size of a window. The
/// heap then fits the processor's cache, and its memory does not grow with the piece.
const WINDOW: usize = 4096;

/// A token and its start in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub start: usize,
    pub id: u32,
}

/// Reusable buffers for merging.
#[derive(Debug, Default)]
pub struct Merger {
    ids: Vec<u32>,
    short: Parts,
    heap: HeapMerge,
    /// The tokens of a window and of the next one.
    windows: [Vec<Part>; 2],
    /// Number of merges done. The time is proportional to it, up to a logarithm.
    pub merges: u64,
}

impl Merger {
    /// Returns the tokens of `piece`. They are arbitrary if the work was cancelled and the piece is
    /// longer than a window.
    pub fn merge(&mut self, vocabulary: &Vocabulary, piece: &[u8]) -> &[u32] {
        self.ids.clear();
        if piece.len() <= SHORT {
            self.merges += self.short.run(vocabulary, piece, &mut self.ids);
        } else {
            self.merge_windows(vocabulary, piece, WINDOW);
        }
        &self.ids
    }

    fn merge_windows(&mut self, vocabulary: &Vocabulary, piece: &[u8], window: usize) {
        let mut window = window;
        while !self.try_windows(vocabulary, piece, window) {
            // No common token in an overlap: retry with larger windows. One window for the whole
            // piece cannot fail.
            self.ids.clear();
            window *= 4;
        }
    }

    /// Merges window by window. Returns whether each window shares a token with the next.
    fn try_windows(&mut self, vocabulary: &Vocabulary, piece: &[u8], window: usize) -> bool {
        let [current, next] = &mut self.windows;
        let mut end = piece.len().min(window);
        self.merges += self.heap.run(vocabulary, piece, 0..end, current);
        // The first token of `current` that is not in `ids` yet.
        let mut first = 0;
        while end < piece.len() && !cancel::is_set() {
            // Only the tokens near the end can still change.
            let overlap = current.partition_point(|part| part.start < end - window / 8);
            let Some(base) = current.get(overlap).map(|part| part.start) else {
                return false;
            };
            end = piece.len().min(base + window);
            self.merges += self.heap.run(vocabulary, piece, base..end, next);
            let Some((i, j)) = first_common(&current[overlap..], next) else {
                return false;
            };
            self.ids
                .extend(current[first..overlap + i].iter().map(|part| part.id));
            std::mem::swap(current, next);
            first = j;
        }
        self.ids.extend(current[first..].iter().map(|part| part.id));
        true
    }
}

/// Returns the indices of the first common token of two lists of tokens, each sorted by start.
fn first_common(a: &[Part], b: &[Part]) -> Option<(usize, usize)> {
    let (mut i, mut j) = (0, 0);
    while let (Some(left), Some(right)) = (a.get(i), b.get(j)) {
        if left == right {
            return Some((i, j));
        }
        if left.start <= right.start {
            i += 1;
        } else {
            j += 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::merge::blocks::BlockSegments;
    use crate::merge::segments::Segments;
    use crate::output::Ids;
    use crate::vocabulary::rank_table::{MAX_ID, RankTable};
    use fastrand::Rng;

    /// The definition, literally.
    fn merge_by_definition(table: &RankTable, piece: &[u8]) -> Vec<u32> {
        let mut parts: Vec<Vec<u8>> = piece.iter().map(|&byte| vec![byte]).collect();
        loop {
            let pairs = parts.windows(2).enumerate();
            let ranked = pairs.filter_map(|(i, pair)| Some((table.id_of(&pair.concat())?, i)));
            let Some((_, i)) = ranked.min() else { break };
            let second = parts.remove(i + 1);
            parts[i].extend(second);
        }
        parts.iter().filter_map(|part| table.id_of(part)).collect()
    }

    /// Characters with common bytes, characters that occur before words, and an overlong "é" that
    /// is not UTF-8.
    const WIDE: [&[u8]; 16] = [
        "あ".as_bytes(),
        "い".as_bytes(),
        "ぁ".as_bytes(),
        "아".as_bytes(),
        "ก".as_bytes(),
        "ข".as_bytes(),
        "ค".as_bytes(),
        "क".as_bytes(),
        "é".as_bytes(),
        "è".as_bytes(),
        "д".as_bytes(),
        b"\xe0\x83\xa9",
        "😀".as_bytes(),
        "😁".as_bytes(),
        b" ",
        b"a",
    ];

    const LETTERS: [&[u8]; 3] = [b"a", b"b", b"\0"];

    fn text(random: &mut Rng, parts: &[&[u8]], len: usize) -> Vec<u8> {
        let parts = (0..len).flat_map(|_| parts[random.usize(..parts.len())]);
        parts.copied().collect()
    }

    /// A vocabulary of random substrings of such text, not always whole characters. In random
    /// order, or with short ones first as in training. It does not result from training, so that
    /// only the definition can be relied on.
    fn hostile(random: &mut Rng, parts: &[&[u8]]) -> Vocabulary {
        let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        for _ in 0..random.usize(..80) {
            let text = text(random, parts, 26);
            let start = random.usize(..4);
            let most = [24, 15, 3, 3][random.usize(..4)];
            let len = 2 + random.usize(..most);
            let token = text[start..text.len().min(start + len)].to_vec();
            if !tokens.contains(&token) {
                let at = random.usize(..tokens.len() + 1);
                tokens.insert(at, token);
            }
        }
        if random.usize(..2) == 0 {
            tokens.sort_by_key(Vec::len);
        }
        // Ids that the short table holds, some that it does not, and the greatest.
        let first = [0, (1 << 28) - 260, MAX_ID - tokens.len() as u32 + 1][random.usize(..3)];
        let items = tokens.into_iter().zip(first..);
        Vocabulary::new(Arc::new(
            RankTable::from_items(items).expect("no duplicates"),
        ))
    }

    #[test]
    fn every_way_of_merging_is_the_definition() {
        let mut random = Rng::with_seed(3);
        let mut merger = Merger::default();
        let mut pairs = 0;
        for _ in 0..if cfg!(miri) { 3 } else { 300 } {
            let letters = &LETTERS[random.usize(..3)..];
            let vocabulary = hostile(&mut random, letters);
            for _ in 0..8 {
                let near = SHORT - 3..SHORT + 4;
                let len = [random.usize(near), random.usize(..200)][random.usize(..2)];
                let piece = text(&mut random, letters, len);
                let openings = (0..len).map(|start| vocabulary.opening(&piece, start));
                pairs += openings.filter(|opening| opening.len == 2).count();
                let expected = merge_by_definition(vocabulary.table(), &piece);
                assert_eq!(merger.merge(&vocabulary, &piece), expected, "{piece:?}");
                let window = 16 << random.usize(..4);
                merger.ids.clear();
                merger.merge_windows(&vocabulary, &piece, window);
                assert_eq!(merger.ids, expected, "windows of {window}: {piece:?}");
            }
        }
        assert!(pairs > 1_000 || cfg!(miri), "{pairs} pairs to begin with");
    }

    #[test]
    fn merging_from_characters_and_by_segments_equals_the_definition() {
        let mut random = Rng::with_seed(11);
        let (mut openings, mut segments) = ([0; 4], [0; 2]);
        for _ in 0..if cfg!(miri) { 3 } else { 3_000 } {
            let kinds = &WIDE[random.usize(..WIDE.len())..];
            let kinds = &kinds[..1 + random.usize(..kinds.len())];
            let vocabulary = hostile(&mut random, kinds);
            let tokens = vocabulary.table().iter().map(|(token, _)| token);
            let long: Vec<_> = tokens.filter(|token| token.len() > 9).collect();
            let mut merger = Merger::default();
            for _ in 0..8 {
                let most = if random.usize(..4) == 0 { 40 } else { 8 };
                let len = 1 + random.usize(..most);
                let mut piece = text(&mut random, kinds, len);
                if let Some(token) = random.choice(&long) {
                    piece.extend_from_slice(token);
                }
                // Windows may be cut at any byte.
                piece.drain(..random.usize(..3).min(piece.len() - 1));
                piece.truncate(piece.len() - random.usize(..3).min(piece.len() - 1));
                if random.usize(..4) == 0 && piece.len() > 1 {
                    piece.remove(random.usize(..piece.len()));
                }
                for start in 0..piece.len() {
                    let opening = vocabulary.opening(&piece, start);
                    openings[opening.len] += 1;
                    openings[0] += (opening.first < opening.len) as usize;
                }
                let expected = merge_by_definition(vocabulary.table(), &piece);
                assert_eq!(merger.merge(&vocabulary, &piece), expected, "{piece:?}");
                merger.ids.clear();
                merger.merge_windows(&vocabulary, &piece, 16);
                assert_eq!(merger.ids, expected, "windows: {piece:?}");
                let crossings = vocabulary.crossings();
                let found = match random.usize(..2) {
                    0 => Segments::of(crossings, &piece).collect::<Vec<_>>(),
                    _ => BlockSegments::of(crossings, &piece).collect(),
                };
                let (mut ids, mut start) = (Ids::default(), 0);
                for segment in found {
                    let bytes = &piece[start..segment.end];
                    match segment.single {
                        Some(point) => vocabulary.push_character(bytes, point, &mut ids),
                        None => ids.0.extend(merger.merge(&vocabulary, bytes)),
                    }
                    segments[usize::from(segment.single.is_some())] += 1;
                    start = segment.end;
                    let mut crossing = vocabulary.table().iter().filter(|(token, _)| {
                        let from = start.saturating_sub(token.len() - 1);
                        (from..start).any(|from| piece[from..].starts_with(token))
                    });
                    let is_end = start == piece.len() || crossing.next().is_none();
                    assert!(is_end, "{piece:?}");
                }
                assert_eq!(ids.0, expected, "segments: {piece:?}");
            }
        }
        let segments = segments[0].min(segments[1]);
        assert!(segments > 1_000 || cfg!(miri), "{segments}");
        // As two parts, as bytes, and whole with two and three bytes: each must occur.
        assert!(
            openings.iter().all(|&count| count > 100 || cfg!(miri)),
            "{openings:?}"
        );
    }

    #[test]
    fn work_is_proportional_to_the_length() {
        let mut random = Rng::with_seed(5);
        for round in 0..if cfg!(miri) { 0 } else { 30 } {
            let vocabulary = hostile(&mut random, &LETTERS);
            let unit_len = 1 + random.usize(..40);
            let unit = text(&mut random, &LETTERS, unit_len);
            let work = |len: usize| {
                let piece: Vec<u8> = unit.iter().copied().cycle().take(len).collect();
                let mut merger = Merger::default();
                merger.merge(&vocabulary, &piece);
                merger.merges
            };
            let (once, twice) = (work(50_000), work(100_000));
            assert!(
                twice as f64 <= 2.3 * once as f64 + 100.0,
                "round {round}: {once}, {twice}"
            );
        }
    }
}
