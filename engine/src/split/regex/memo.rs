//! The results that the matcher records for one text; see `matcher`.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::program::Pc;

const BLOCK: usize = 4096;

type Bits = Option<Box<[u64; BLOCK / 64]>>;

/// End of a body's match that a choice or a run is part of.
type End = usize;

/// The known results for the shorter forms of an unbounded run.
#[derive(Clone, Copy)]
pub struct Shortened {
    /// All forms that end here or later have failed.
    pub failed_from: usize,
    /// End of the longest form that matched, and end of that match.
    pub won: Option<(usize, End)>,
}

#[derive(Default)]
pub struct Memo {
    /// By instruction: a bit for each position where it failed.
    failed: Vec<VecDeque<Bits>>,
    /// Block number of the first block of each of `failed`.
    first_block: usize,
    won: HashMap<(Pc, usize), End>,
    shortened: HashMap<(Pc, usize), Shortened>,
    /// For each set, the known parts of its runs: start to end. The end is that of the maximal run.
    runs: HashMap<u32, BTreeMap<usize, usize>>,
    entries_kept: usize,
}

impl Memo {
    /// Drops all entries before `at`, which are not looked up again.
    pub fn forget_before(&mut self, at: usize) {
        let block = at / BLOCK;
        if block > self.first_block {
            for bits in &mut self.failed {
                bits.drain(..(block - self.first_block).min(bits.len()));
            }
            self.first_block = block;
        }
        // Done rarely, so that it costs no more than the work that made the entries.
        if self.won.len() + self.shortened.len() > 2 * self.entries_kept + 1024 {
            self.won.retain(|&(_, position), _| position >= at);
            self.shortened.retain(|&(_, end), _| end >= at);
            self.entries_kept = self.won.len() + self.shortened.len();
        }
        for runs in self.runs.values_mut() {
            while let Some(first) = runs.first_entry()
                && *first.get() <= at
            {
                first.remove();
            }
        }
    }

    pub fn has_failed(&self, pc: Pc, at: usize) -> bool {
        let bits = self.failed.get(pc as usize);
        let block = bits.and_then(|bits| bits.get((at / BLOCK).wrapping_sub(self.first_block)));
        match block {
            Some(Some(block)) => block[at % BLOCK / 64] >> (at % 64) & 1 == 1,
            _ => false,
        }
    }

    pub fn fail(&mut self, pc: Pc, at: usize) {
        let Some(block) = (at / BLOCK).checked_sub(self.first_block) else {
            return;
        };
        if self.failed.len() <= pc as usize {
            self.failed.resize(pc as usize + 1, VecDeque::new());
        }
        let bits = &mut self.failed[pc as usize];
        if bits.len() <= block {
            bits.resize(block + 1, None);
        }
        let block = bits[block].get_or_insert_with(|| Box::new([0; BLOCK / 64]));
        block[at % BLOCK / 64] |= 1 << (at % 64);
    }

    pub fn won(&self, pc: Pc, at: usize) -> Option<End> {
        self.won.get(&(pc, at)).copied()
    }

    pub fn win(&mut self, pc: Pc, at: usize, end: End) {
        self.won.insert((pc, at), end);
    }

    pub fn shortened(&self, pc: Pc, run_end: usize) -> Option<Shortened> {
        self.shortened.get(&(pc, run_end)).copied()
    }

    /// Records that the run's forms that end at `from` or later have failed.
    pub fn shorten(&mut self, pc: Pc, run_end: usize, from: usize) {
        let fresh = Shortened {
            failed_from: from,
            won: None,
        };
        let known = self.shortened.entry((pc, run_end)).or_insert(fresh);
        known.failed_from = known.failed_from.min(from);
    }

    /// Records that the form that ends at `shortened_end` is part of a match that ends at `end`.
    /// Needs a call of `shorten` for the same run before.
    pub fn win_shortened(&mut self, pc: Pc, run_end: usize, shortened_end: usize, end: End) {
        let known = self.shortened.get_mut(&(pc, run_end));
        if let Some(known) = known {
            known.won = Some((shortened_end, end));
        }
    }

    /// Returns the end of the run of `set` through `at`, if known; and else the position from which
    /// on it is known.
    pub fn run_end(&self, set: u32, at: usize) -> (Option<usize>, usize) {
        let Some(runs) = self.runs.get(&set) else {
            return (None, usize::MAX);
        };
        match runs.range(..=at).next_back() {
            Some((_, &end)) if at < end => return (Some(end), at),
            _ => {}
        }
        let next = runs.range(at..).next();
        (None, next.map_or(usize::MAX, |(&start, _)| start))
    }

    /// Records that the run of `set` from `at` ends at `end`, or where a known run from `end` does.
    /// Returns the end.
    pub fn keep_run(&mut self, set: u32, at: usize, end: usize) -> usize {
        let runs = self.runs.entry(set).or_default();
        let end = runs.remove(&end).unwrap_or(end);
        runs.insert(at, end);
        end
    }
}
