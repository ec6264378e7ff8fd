//! Finds the strings of a set that are concatenations of two others, in time linear in their
//! lengths.

/// No string.
const NONE: u32 = u32::MAX;

/// Call `found` with the indices of each concatenation and its two parts, until it returns false.
///
/// In sorted order, a string comes after its prefixes, and the strings between them have these
/// prefixes too. So a stack yields the longest other string that is a prefix of each string, and
/// following these links yields all of them. The reversed strings yield the suffixes.
///
/// Args: `strings`, distinct and not empty.
pub fn concatenations(strings: &[&[u8]], mut found: impl FnMut([u32; 3]) -> bool) {
    let starts = longest_starts(strings);
    let reversed: Vec<Vec<u8>> = strings
        .iter()
        .map(|string| string.iter().rev().copied().collect())
        .collect();
    let reversed: Vec<&[u8]> = reversed.iter().map(Vec::as_slice).collect();
    let ends = longest_starts(&reversed);
    let length = |index: u32| strings[index as usize].len();
    let mut lefts = Vec::new();
    for whole in 0..strings.len() as u32 {
        lefts.clear();
        lefts.extend(chain(&starts, whole));
        for right in chain(&ends, whole) {
            // Rights become shorter, so the matching lefts become longer, from the end of the list.
            let rest = length(whole) - length(right);
            while lefts.pop_if(|left| length(*left) < rest).is_some() {}
            if let Some(&left) = lefts.last()
                && length(left) == rest
                && !found([whole, left, right])
            {
                return;
            }
        }
    }
}

/// The indices along the links from an index, the longest string first.
fn chain(links: &[u32], from: u32) -> impl Iterator<Item = u32> {
    let next = |&index: &u32| Some(links[index as usize]).filter(|&next| next != NONE);
    std::iter::successors(next(&from), next)
}

/// For each string, the longest other string that is a prefix of it, or `NONE`.
fn longest_starts(strings: &[&[u8]]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..strings.len() as u32).collect();
    order.sort_unstable_by_key(|&index| strings[index as usize]);
    let mut starts = vec![NONE; strings.len()];
    let mut open: Vec<u32> = Vec::new();
    for index in order {
        let string = strings[index as usize];
        let ends = |last: &mut u32| !string.starts_with(strings[*last as usize]);
        while open.pop_if(ends).is_some() {}
        starts[index as usize] = open.last().copied().unwrap_or(NONE);
        open.push(index);
    }
    starts
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use fastrand::Rng;

    #[test]
    fn random_sets_give_what_trying_every_cut_gives() {
        let seed = 20_261_121;
        let mut random = Rng::with_seed(seed);
        for round in 0..2000 {
            let most = 1 + random.usize(..9);
            let set: HashSet<Vec<u8>> = (0..random.usize(..40))
                .map(|_| {
                    let length = 1 + random.usize(..most);
                    (0..length).map(|_| b"ab"[random.usize(..2)]).collect()
                })
                .collect();
            let strings: Vec<&[u8]> = set.iter().map(Vec::as_slice).collect();
            let mut found = HashSet::new();
            concatenations(&strings, |indices| {
                let [whole, left, right] = indices.map(|index| strings[index as usize]);
                assert_eq!([left, right].concat(), whole);
                assert!(found.insert((left, right)), "seed {seed}, round {round}");
                true
            });
            let cuts = strings
                .iter()
                .flat_map(|whole| (1..whole.len()).map(|at| whole.split_at(at)));
            let expected: HashSet<_> = cuts
                .filter(|(left, right)| set.contains(*left) && set.contains(*right))
                .collect();
            assert_eq!(found, expected, "seed {seed}, round {round}");
        }
    }
}
