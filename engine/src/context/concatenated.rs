//! The tokens of a start of one text, followed by an end of another.
//!
//! In the pre-token that holds the place where they meet, one token crosses that place, or two meet
//! there. The tokens before and after it are those of their own bytes, of which `prefixes` knows
//! the last one and `suffixes` the first. A token is the one that crosses if it and each of these
//! two are what their bytes merge to (see `prefixes`).

use std::collections::HashMap;
use std::iter;
use std::ops::Range;

use crate::bpe::Bpe;
use crate::context::prefixes::Prefixes;
use crate::context::suffixes::Suffixes;
use crate::split::Ends;

pub struct Concatenated<'a> {
    core: &'a Bpe,
    left: &'a str,
    /// By the start of a pre-token of the left text.
    prefixes: HashMap<usize, Prefixes<'a>>,
    pub right: Suffixes<'a>,
    /// By the end of the left text and the start of the right one.
    known: HashMap<(usize, usize), (usize, usize)>,
    /// The bytes in each text of the token that crossed last.
    last: (usize, usize),
}

impl<'a> Concatenated<'a> {
    pub fn new(core: &'a Bpe, left: &'a str, right: &'a str) -> Self {
        Concatenated {
            core,
            left,
            prefixes: HashMap::new(),
            right: Suffixes::new(core, right),
            known: HashMap::new(),
            last: (0, 0),
        }
    }

    /// The tokens of the left text up to `to`, and of the right one from `from`; and where the
    /// first pre-token ends that ends after `from`, or `from` for none.
    pub fn count(&mut self, to: usize, from: usize) -> (usize, usize) {
        if let Some(&found) = self.known.get(&(to, from)) {
            return found;
        }
        let both = [&self.left[..to], &self.right.text[from..]].concat();
        let (mut ends, mut at, mut count, mut crossing) = (Ends::new(), 0, 0, from);
        while at < both.len() && crossing == from {
            self.core.splitter().fill(&both, at, &mut ends);
            for &end in ends.as_slice() {
                if end > to {
                    crossing = end - to + from;
                    count += if at < to {
                        self.crossing(at..to, from..crossing) + self.right.rest(crossing)
                    } else {
                        self.right.count(from)
                    };
                    break;
                }
                count += self.prefixes_from(at).count(end);
                at = end;
            }
        }
        self.known.insert((to, from), (count, crossing));
        (count, crossing)
    }

    fn prefixes_from(&mut self, start: usize) -> &mut Prefixes<'a> {
        let new = || Prefixes::new(self.core, self.left.as_bytes(), start);
        self.prefixes.entry(start).or_insert_with(new)
    }

    /// The tokens of a pre-token that holds the place where the texts meet, from its part of each.
    fn crossing(&mut self, left: Range<usize>, right: Range<usize>) -> usize {
        let (before, after) = (&self.left[left.clone()], &self.right.text[right.clone()]);
        let (before, after) = (before.as_bytes(), after.as_bytes());
        let longest = self.core.lengths().longest();
        let most = before.len().min(longest);
        let start = &before[before.len() - most..];
        let near = [start, &after[..after.len().min(longest)]].concat();
        if near.len() == left.len() + right.len() && self.right.neighbours.is_token(&near) {
            return 1;
        }
        let lengths = self.core.lengths();
        let with_head = |head: usize| {
            let longest = lengths.longest_from(&near[most - head..]);
            let tails = match head {
                0 => 0..=0,
                _ => 1..=longest.saturating_sub(head),
            };
            tails.map(move |tail| (head, tail))
        };
        // Often it is the same token beside another text.
        let last = iter::once(self.last).filter(|&(head, _)| head <= most);
        for (head, tail) in last.chain((0..=most).flat_map(with_head)) {
            if let Some(token) = near.get(most - head..most + tail)
                && let Some(count) = self.with_token(&left, &right, token, head)
            {
                self.last = (head, tail);
                return count;
            }
        }
        // One token may be a whole pre-token that its bytes do not merge to.
        self.core.ids_of(&[before, after].concat()).len()
    }

    /// The tokens of a pre-token if this one crosses, which starts with `head` bytes before; or for
    /// no bytes, if two tokens meet. Otherwise None.
    fn with_token(
        &mut self,
        left: &Range<usize>,
        right: &Range<usize>,
        token: &[u8],
        head: usize,
    ) -> Option<usize> {
        let (to, from) = (left.end - head, right.start + token.len() - head);
        let mut last = match token {
            [] => None,
            _ => Some(self.core.table().id_of(token)?),
        };
        let mut count = usize::from(last.is_some());
        if left.start < to {
            let (id, before) = self.prefixes_from(left.start).last(to);
            if last.is_some_and(|token| !self.right.neighbours.are(id, token)) {
                return None;
            }
            last = last.or(Some(id));
            count += before;
        }
        if from < right.end {
            let (id, after) = self.right.first(from, right.end);
            if last.is_some_and(|last| !self.right.neighbours.are(last, id)) {
                return None;
            }
            count += after;
        }
        Some(count)
    }
}

impl Bpe {
    /// The fewest tokens that a text has before a token that holds its end or starts there.
    pub(crate) fn least_before(&self, text: &str) -> usize {
        let (bytes, lengths) = (text.as_bytes(), self.lengths());
        let mut prefixes = Prefixes::new(self, bytes, 0);
        let places = text.len().saturating_sub(lengths.longest())..=text.len();
        let counts = places
            .filter(|&place| place + lengths.longest_from(&bytes[place..]) == text.len())
            .map(|place| match place {
                0 => 0,
                _ => self.count_and_least(text, 0, place, &mut prefixes).1,
            });
        counts.min().unwrap_or(0)
    }

    /// The fewest tokens that a text has after a token that holds its start.
    pub(crate) fn least_after(&self, text: &str) -> usize {
        let rest = text.len().saturating_sub(self.lengths().longest());
        rest.div_ceil(self.lengths().longest_in(text.as_bytes()))
    }
}
