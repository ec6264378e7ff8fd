//! Merging with a heap of pairs, in O(n log n) for n bytes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::cancel;
use crate::merge::initial::Opening;
use crate::merge::{NO_RANK, Part};
use crate::vocabulary::Vocabulary;

/// Number of merges between checks for cancellation; a power of two. Results of such length are not
/// cached, so a cancelled one is never kept.
const ASK_EVERY: u64 = 8192;

/// Value of `end` if no part starts at this byte.
const INSIDE: u32 = u32::MAX;

/// The part that starts at a byte: its end, the start of the part before it, its id, and its rank
/// when joined with the part after it.
#[derive(Clone, Copy, Debug)]
struct Node {
    end: u32,
    previous: u32,
    id: u32,
    joined: u32,
}

/// The node of a byte at which no part starts.
const NOWHERE: Node = Node {
    end: INSIDE,
    previous: 0,
    id: NO_RANK,
    joined: NO_RANK,
};

#[derive(Debug, Default)]
pub struct HeapMerge {
    nodes: Vec<Node>,
    /// The rank in the upper half, the start in the lower: the order in which pairs merge. An entry
    /// is stale if its part is gone or has another rank now.
    heap: Vec<Reverse<u64>>,
}

impl HeapMerge {
    /// Replaces `parts` by the tokens of a range of `text`, and returns the number of merges. If
    /// the work was cancelled, merging may be incomplete.
    pub fn run(
        &mut self,
        vocabulary: &Vocabulary,
        text: &[u8],
        range: Range<usize>,
        parts: &mut Vec<Part>,
    ) -> u64 {
        let bytes = &text[range.clone()];
        let len = bytes.len();
        let rank = |from: usize, to: usize| vocabulary.rank(bytes, from, to - from);
        let entry = |rank: u32, start: usize| Reverse((rank as u64) << 32 | start as u64);
        let nodes = &mut self.nodes;
        open(vocabulary, bytes, nodes);
        let mut heap = std::mem::take(&mut self.heap);
        heap.clear();
        let mut start = 0;
        while start < len {
            let middle = nodes[start].end as usize;
            if let Some(next) = nodes.get(middle) {
                nodes[start].joined = rank(start, next.end as usize);
                if nodes[start].joined != NO_RANK {
                    heap.push(entry(nodes[start].joined, start));
                }
            }
            start = middle;
        }
        let mut heap = BinaryHeap::from(heap);
        let mut merges = 0;
        while let Some(Reverse(lowest)) = heap.pop() {
            let (found, start) = ((lowest >> 32) as u32, lowest as u32 as usize);
            if nodes[start].end == INSIDE || nodes[start].joined != found {
                continue;
            }
            merges += 1;
            if merges & (ASK_EVERY - 1) == 0 && cancel::is_set() {
                break;
            }
            let middle = nodes[start].end as usize;
            let end = nodes[middle].end as usize;
            nodes[middle].end = INSIDE;
            nodes[start].end = end as u32;
            nodes[start].id = found;
            if end < len {
                nodes[end].previous = start as u32;
                nodes[start].joined = rank(start, nodes[end].end as usize);
                if nodes[start].joined != NO_RANK {
                    heap.push(entry(nodes[start].joined, start));
                }
            } else {
                nodes[start].joined = NO_RANK;
            }
            if start > 0 {
                let before = nodes[start].previous as usize;
                nodes[before].joined = rank(before, end);
                if nodes[before].joined != NO_RANK {
                    heap.push(entry(nodes[before].joined, before));
                }
            }
        }
        self.heap = heap.into_vec();
        parts.clear();
        let mut start = 0;
        while start < len {
            let Node { end, id, .. } = self.nodes[start];
            parts.push(Part {
                start: range.start + start,
                id,
            });
            start = end as usize;
        }
        merges
    }
}

/// Replaces `nodes` by the initial parts of `bytes`.
fn open(vocabulary: &Vocabulary, bytes: &[u8], nodes: &mut Vec<Node>) {
    nodes.clear();
    nodes.resize(bytes.len(), NOWHERE);
    let (mut start, mut previous) = (0, u32::MAX);
    while start < bytes.len() {
        let Opening { first, len } = vocabulary.opening(bytes, start);
        for (from, to) in [(start, start + first), (start + first, start + len)] {
            if from < to {
                nodes[from] = Node {
                    end: to as u32,
                    previous,
                    id: vocabulary.part_id(bytes, from, to - from),
                    joined: NO_RANK,
                };
                previous = from as u32;
            }
        }
        start += len;
    }
}
