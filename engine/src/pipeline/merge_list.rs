//! Converts merges from spellings to ids: the twin of `formats/merge_list.py`.

use std::cmp::Reverse;

use super::tokens::Tokens;

/// A merge: its priority, the result, and the left and the right half.
type Merge = [u32; 4];

/// Look up the ids of merges. `halves` has the left and the right half of each merge, alternating;
/// None is never in the vocabulary. The result of a merge is the left half and the right half
/// without its first `prefix` bytes. A duplicate pair has the priority of its last occurrence. The
/// error is the index of a merge with a missing token.
///
/// Returns: the merges in order of priority.
pub fn merges_of(
    halves: &[Option<&str>],
    vocabulary: &[(&str, u32)],
    prefix: usize,
) -> Result<Vec<Merge>, usize> {
    let (empty, spelled): (Vec<_>, Vec<_>) = vocabulary
        .iter()
        .copied()
        .partition(|(token, _)| token.is_empty());
    let empty = empty.first().map(|&(_, id)| id);
    // Its tables store short strings inline, because memory latency dominates lookups.
    let tokens = Tokens::new(&spelled);
    let pairs = halves.as_chunks::<2>().0;
    let mut merges = Vec::with_capacity(pairs.len());
    let mut name = String::new();
    for (index, two) in pairs.iter().enumerate() {
        let &[Some(left), Some(right)] = two else {
            return Err(index);
        };
        name.clear();
        name.push_str(left);
        name.push_str(right.get(prefix..).unwrap_or_default());
        let find = |spelling: &str| match spelling {
            "" => empty.ok_or(index),
            _ => tokens.get(spelling.as_bytes()).ok_or(index),
        };
        merges.push([index as u32, find(&name)?, find(left)?, find(right)?]);
    }
    remove_repeats(&mut merges);
    Ok(merges)
}

fn remove_repeats(merges: &mut Vec<Merge>) {
    let mut pairs: Vec<[u32; 2]> = merges.iter().map(|&[.., l, r]| [l, r]).collect();
    pairs.sort_unstable();
    if pairs.is_sorted_by(|a, b| a < b) {
        return;
    }
    merges.sort_unstable_by_key(|&[priority, _, left, right]| (left, right, Reverse(priority)));
    merges.dedup_by_key(|&mut [.., left, right]| (left, right));
    merges.sort_unstable();
}
