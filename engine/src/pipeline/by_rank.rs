//! Whether merging by a list is merging by rank: docs/formats.md proves what is asked here.

use std::collections::HashSet;

use crate::vocabulary::rank_table::RankTable;

/// A token of more bytes is not looked at, so that a file of any tokens is answered in time.
const LONGEST: usize = 256;

/// No token.
const NONE: u32 = u32::MAX;

/// The merges of a list, in order of priority: left, right and what they become.
pub struct Listed {
    pub lefts: Vec<u32>,
    pub rights: Vec<u32>,
    pub results: Vec<u32>,
}

/// Whether it is certain that the list merges as ranks do, pieces that are a token taken whole.
///
/// Args: `ranks`, in which every single byte is a token; `whole_first`, whether the list's pieces
/// are taken whole too.
pub fn merges_by_rank(ranks: &RankTable, list: &Listed, whole_first: bool) -> bool {
    if !list.results.is_sorted() {
        return false; // an earlier priority for a later rank
    }
    let halves = list.lefts.iter().copied().zip(list.rights.iter().copied());
    let listed: HashSet<(u32, u32)> = halves.collect();
    let mut parts = Vec::new();
    ranks
        .iter()
        .filter(|(token, _)| token.len() > 1)
        .all(|(token, _)| {
            if token.len() > LONGEST {
                return false;
            }
            merge_to_two(ranks, token, &mut parts);
            match parts.as_slice() {
                [left, right] => listed.contains(&(left.id, right.id)),
                // A piece that is this token would be one token by rank.
                _ => whole_first,
            }
        })
}

/// A part, where it ends, and what it makes with the next one.
struct Part {
    id: u32,
    end: usize,
    joined: u32,
}

/// Merge the bytes of a token by rank until two parts are left, or nothing can merge.
fn merge_to_two(ranks: &RankTable, token: &[u8], parts: &mut Vec<Part>) {
    let id = |start: usize, end: usize| ranks.id_of(&token[start..end]).unwrap_or(NONE);
    parts.clear();
    parts.extend((0..token.len()).map(|at| Part {
        id: id(at, at + 1),
        end: at + 1,
        joined: if at + 1 < token.len() {
            id(at, at + 2)
        } else {
            NONE
        },
    }));
    while parts.len() > 2 {
        let lowest = parts.iter().map(|part| part.joined).enumerate();
        let Some((at, joined)) = lowest.min_by_key(|&(at, joined)| (joined, at)) else {
            return;
        };
        if joined == NONE {
            return;
        }
        let gone = parts.remove(at + 1);
        (parts[at].id, parts[at].end) = (joined, gone.end);
        for at in [at.checked_sub(1), Some(at)].into_iter().flatten() {
            let start = at.checked_sub(1).map_or(0, |before| parts[before].end);
            let end = parts.get(at + 1).map(|next| next.end);
            parts[at].joined = end.map_or(NONE, |end| id(start, end));
        }
    }
}
