//! Whether merging by a list is equivalent to merging by rank, with a proof of the criterion.
//!
//! Let *V* contain all 256 bytes, and let merges be a list of pairs (l, r) with results in *V*,
//! both without special tokens. The *run* of a token *t* is the sequence of merges that merging by
//! rank (`backends/reference.py`) applies to the bytes of *t*.
//!
//! **Theorem.** Let priorities increase with the ids of the results, and for every token *t* whose
//! run ends in *t* let the last pair of its run be listed. Then merging by the list and merging by
//! rank have the same result for every piece, apart from the rule of whole pieces.
//!
//! *Proof.* Compare both from the same parts. Let merging by rank choose the pair (x, y) with the
//! result *t* of the lowest rank *k*. No part crosses the ends of the range of x and y, so no
//! earlier merge did; and each of them was the best of all pairs, so the best within the range. So
//! they are the start of the run of *t*, which continues with (x, y) and ends in *t*: (x, y) is the
//! last pair of the run of *t*, and is listed. The same holds for every other position of a pair
//! with the result *t*. Every listed pair that occurs could also merge by rank, so none has a
//! result of a lower rank. Since priorities increase with results, the list chooses (x, y) at its
//! leftmost position. If nothing can merge by rank, no listed pair occurs. ∎

use std::collections::HashSet;
use std::iter::zip;

use crate::vocabulary::rank_table::RankTable;

/// Maximum length of a token in bytes, which bounds the time for any file. With a longer token, the
/// answer is false.
const LONGEST: usize = 256;

/// No token.
const NONE: u32 = u32::MAX;

/// Whether merging by the list is proven to equal merging by rank with whole pieces first.
///
/// Args: `ranks`, in which every single byte is a token; the lefts, rights and results of the list
/// in order of priority; `whole_first`, whether the list, too, is used with whole pieces first.
pub fn merges_by_rank(
    ranks: &RankTable,
    [lefts, rights, results]: [Vec<u32>; 3],
    whole_first: bool,
) -> bool {
    if !results.is_sorted() {
        return false; // the priorities are not in order of ranks
    }
    let listed: HashSet<(u32, u32)> = zip(lefts, rights).collect();
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
                // Merging by rank makes this piece one token.
                _ => whole_first,
            }
        })
}

/// A part, its end, and the token that it makes with the next part.
struct Part {
    id: u32,
    end: usize,
    joined: u32,
}

/// Merge the bytes of a token by rank until two parts are left, or nothing can merge.
fn merge_to_two(ranks: &RankTable, token: &[u8], parts: &mut Vec<Part>) {
    let id = |start: usize, end: usize| {
        let bytes = token.get(start..end);
        bytes.and_then(|bytes| ranks.id_of(bytes)).unwrap_or(NONE)
    };
    parts.clear();
    parts.extend((0..token.len()).map(|at| Part {
        id: id(at, at + 1),
        end: at + 1,
        joined: id(at, at + 2),
    }));
    while parts.len() > 2 {
        let joined = parts.iter().map(|part| part.joined).enumerate();
        let joined = joined.filter(|&(_, joined)| joined != NONE);
        let Some((at, joined)) = joined.min_by_key(|&(at, joined)| (joined, at)) else {
            return;
        };
        let gone = parts.remove(at + 1);
        (parts[at].id, parts[at].end) = (joined, gone.end);
        for at in [at.checked_sub(1), Some(at)].into_iter().flatten() {
            let start = at.checked_sub(1).map_or(0, |before| parts[before].end);
            let end = parts.get(at + 1).map(|next| next.end);
            parts[at].joined = end.map_or(NONE, |end| id(start, end));
        }
    }
}
