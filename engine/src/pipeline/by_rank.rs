//! Whether merging by a list is merging by rank, and the proof of what is checked here.
//!
//! Let *V* hold all 256 bytes, and let merges be a list of pairs (l, r) with results in *V*, both
//! without special tokens, as text meets them. Call the *run* of a token *t* what merging by rank
//! (`backends/reference.py`) does to the bytes of *t*.
//!
//! **Theorem.** Let priorities grow with the ids of the results, and for every token *t* whose run
//! ends in *t* let the last pair of its run be listed. Then merging by the list and merging by rank
//! give the same for every piece, apart from the rule that a piece that is a token is taken whole.
//!
//! *Proof.* Follow both from the same parts. Let merging by rank choose the pair (x, y) with the
//! result *t* of rank *k*, the least. No part reaches across the ends of the stretch that x and y
//! cover, so none of the merges so far did; and each of them was the best of all pairs, so the best
//! within the stretch. So they are a beginning of the run of *t*, which goes on with (x, y) and ends
//! in *t*: (x, y) is the last pair of the run of *t*, and is listed. The same holds for every other
//! place where a pair with the result *t* stands. Every listed pair that stands somewhere is one
//! that ranks could merge too, so none has a result of a lower rank; and as priorities grow with
//! results, (x, y) at the leftmost of its places is what the list chooses. Where nothing can merge
//! by rank, no listed pair stands anywhere. ∎

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
