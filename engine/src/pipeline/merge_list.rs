//! Converts merges from spellings to columns of ids: the twin of `formats/merge_list.py`.

use super::tokens::Tokens;

/// The columns of merges in order of priority.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Columns {
    pub priorities: Vec<u32>,
    pub results: Vec<u32>,
    pub lefts: Vec<u32>,
    pub rights: Vec<u32>,
}

/// Look up the ids of merges. `halves` has the left and the right half of each merge, alternating;
/// None is never in the vocabulary. The result of a merge is the left half and the right half
/// without its first `prefix` bytes. A duplicate pair has the priority of its last occurrence. The
/// error is the index of a merge with a missing token.
pub fn merge_columns(
    halves: &[Option<&str>],
    vocabulary: &[(&str, u32)],
    prefix: usize,
) -> Result<Columns, usize> {
    let (empty, spelled): (Vec<_>, Vec<_>) = vocabulary
        .iter()
        .copied()
        .partition(|(token, _)| token.is_empty());
    let empty = empty.first().map(|&(_, id)| id);
    // Its tables store short strings inline, because memory latency dominates lookups.
    let tokens = Tokens::new(&spelled);
    let pairs = halves.as_chunks::<2>().0;
    let mut columns = Columns::default();
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
        columns.lefts.push(find(left)?);
        columns.rights.push(find(right)?);
        columns.results.push(find(&name)?);
        columns.priorities.push(index as u32);
    }
    Ok(columns.without_repeats())
}

impl Columns {
    fn without_repeats(self) -> Self {
        let halves = self.lefts.iter().zip(&self.rights).zip(&self.priorities);
        let mut keys: Vec<(u32, u32, u32)> = halves.map(|((&l, &r), &i)| (l, r, i)).collect();
        keys.sort_unstable();
        let repeats = |two: &[(u32, u32, u32)]| (two[0].0, two[0].1) == (two[1].0, two[1].1);
        if !keys.windows(2).any(repeats) {
            return self;
        }
        let last = |&at: &usize| keys.get(at..at + 2).is_none_or(|two| !repeats(two));
        let mut kept: Vec<u32> = (0..keys.len()).filter(last).map(|at| keys[at].2).collect();
        kept.sort_unstable();
        let column = |of: &[u32]| kept.iter().map(|&index| of[index as usize]).collect();
        Columns {
            priorities: column(&self.priorities),
            results: column(&self.results),
            lefts: column(&self.lefts),
            rights: column(&self.rights),
        }
    }
}
