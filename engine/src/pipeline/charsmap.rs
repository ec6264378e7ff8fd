//! The normaliser `CharsMap` of `pipeline/definition.py`: a compiled map, applied to clusters.

use unicode_segmentation::UnicodeSegmentation;

use super::double_array::DoubleArray;
use super::origins::Made;

/// Length in bytes from which a grapheme cluster is mapped character by character.
const LONG_CLUSTER: usize = 6;

/// A compiled step.
pub struct CharsMap(DoubleArray);

impl CharsMap {
    /// Create a map from its bytes; None if they are invalid.
    pub fn new(table: &[u8]) -> Option<Self> {
        DoubleArray::new(table).map(CharsMap)
    }

    /// Map each grapheme cluster of a text.
    pub fn apply(&self, text: &str, made: &mut impl Made) {
        let mut start = 0;
        // Clusters end between two ASCII characters, except CR and LF: most need no segmentation.
        let bytes = text.as_bytes();
        for at in 1..=bytes.len() {
            let ends = at == bytes.len()
                || (bytes[at - 1].is_ascii()
                    && bytes[at].is_ascii()
                    && &bytes[at - 1..=at] != b"\r\n");
            if !ends {
                continue;
            }
            if at - start == 1 {
                self.cluster(text, start, at, made);
            } else {
                for (offset, cluster) in text[start..at].grapheme_indices(true) {
                    let from = start + offset;
                    self.cluster(text, from, from + cluster.len(), made);
                }
            }
            start = at;
        }
    }

    fn cluster(&self, text: &str, start: usize, end: usize, made: &mut impl Made) {
        let cluster = &text[start..end];
        let whole = (cluster.len() < LONG_CLUSTER)
            .then(|| self.0.shortest(cluster.as_bytes()))
            .flatten();
        if let Some(value) = whole {
            // Aligned one to one; any further characters come from the cluster's last one.
            let mut offsets = cluster.char_indices().map(|(offset, _)| start + offset);
            let mut from = start;
            for character in value.chars() {
                from = offsets.next().unwrap_or(from);
                made.given(character.encode_utf8(&mut [0; 4]), from);
            }
            return;
        }
        for (offset, character) in cluster.char_indices() {
            let at = start + offset;
            let range = at..at + character.len_utf8();
            match self.0.shortest(&text.as_bytes()[range.clone()]) {
                Some(value) => made.given(value, at),
                None => made.kept(range),
            }
        }
    }
}
