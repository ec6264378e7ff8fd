//! Merging: the lowest-ranked pair of adjacent parts first, the leftmost among equals.
//!
//! A pair's rank is the id of the token that its bytes spell. `merge_short` scans for the
//! lowest at every step; `merge_long` keeps the pairs in a heap. Both are the definition;
//! `window.rs` cuts what is longer still.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::rank_table::RankTable;

/// No token: greater than every rank.
pub const NO_RANK: u32 = u32::MAX;

/// Up to this length scanning beats the heap.
pub const SHORT: usize = 96;

/// A token and where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub start: usize,
    pub id: u32,
}

fn rank(table: &RankTable, bytes: &[u8]) -> u32 {
    table.id_of(bytes).unwrap_or(NO_RANK)
}

/// Replace `parts` by the tokens of `piece`.
pub fn merge(table: &RankTable, piece: &[u8], parts: &mut Vec<Part>) {
    if piece.len() <= SHORT {
        merge_short(table, piece, parts);
    } else {
        merge_long(table, piece, parts);
    }
}

fn merge_short(table: &RankTable, piece: &[u8], parts: &mut Vec<Part>) {
    // Here `id` is the rank of the part joined with the next.
    parts.clear();
    for start in 0..piece.len() {
        let end = start + 2;
        let id = if end <= piece.len() {
            rank(table, &piece[start..end])
        } else {
            NO_RANK
        };
        parts.push(Part { start, id });
    }
    let rank_at = |parts: &[Part], i: usize| {
        let end = match parts.get(i + 2) {
            Some(part) => part.start,
            None if i + 2 == parts.len() => piece.len(),
            None => return NO_RANK,
        };
        rank(table, &piece[parts[i].start..end])
    };
    while let Some((i, lowest)) = parts.iter().enumerate().min_by_key(|(_, part)| part.id) {
        if lowest.id == NO_RANK {
            break;
        }
        parts.remove(i + 1);
        parts[i].id = rank_at(parts, i);
        if i > 0 {
            parts[i - 1].id = rank_at(parts, i - 1);
        }
    }
    for i in 0..parts.len() {
        let end = parts.get(i + 1).map_or(piece.len(), |next| next.start);
        parts[i].id = rank(table, &piece[parts[i].start..end]);
    }
}

const DEAD: u32 = u32::MAX;

fn merge_long(table: &RankTable, piece: &[u8], parts: &mut Vec<Part>) {
    let len = piece.len();
    // Of the part that starts at each byte: where it ends, where the one before it starts,
    // and the rank of it joined with the next. A byte inside a part is DEAD.
    let mut end: Vec<u32> = (1..=len as u32).collect();
    let mut previous: Vec<u32> = (0..len as u32).map(|i| i.wrapping_sub(1)).collect();
    let mut joined: Vec<u32> = vec![NO_RANK; len];
    let mut heap = BinaryHeap::with_capacity(len);
    for start in 0..len - 1 {
        joined[start] = rank(table, &piece[start..start + 2]);
        if joined[start] != NO_RANK {
            heap.push(Reverse((joined[start], start as u32)));
        }
    }
    while let Some(Reverse((rank_found, start))) = heap.pop() {
        let i = start as usize;
        if end[i] == DEAD || joined[i] != rank_found {
            continue;
        }
        let middle = end[i] as usize;
        end[i] = end[middle];
        end[middle] = DEAD;
        if (end[i] as usize) < len {
            previous[end[i] as usize] = start;
        }
        let mut update = |i: usize| {
            let next = end[i] as usize;
            joined[i] = if next < len {
                rank(table, &piece[i..end[next] as usize])
            } else {
                NO_RANK
            };
            if joined[i] != NO_RANK {
                heap.push(Reverse((joined[i], i as u32)));
            }
        };
        update(i);
        if i > 0 {
            update(previous[i] as usize);
        }
    }
    parts.clear();
    let mut start = 0;
    while start < len {
        let stop = end[start] as usize;
        parts.push(Part {
            start,
            id: rank(table, &piece[start..stop]),
        });
        start = stop;
    }
}
