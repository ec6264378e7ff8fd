//! Special tokens in text: the leftmost match of a set, the longest of those at one place.

use aho_corasick::{AhoCorasick, Anchored, Input, MatchKind, StartKind};
use memchr::memmem::Finder;

/// A set of strings to look for, compiled.
#[derive(Debug)]
pub struct SpecialSet {
    names: Vec<String>,
    search: Option<Search>,
    /// For the members that are special tokens of the encoding: their ids.
    known: Option<Known>,
}

#[derive(Debug)]
struct Known {
    ids: Vec<u32>,
    search: Search,
}

/// Where a member was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub start: usize,
    pub end: usize,
    index: usize,
}

impl SpecialSet {
    /// Compile `names`; `id_of` says which of them are special tokens.
    pub fn new(mut names: Vec<String>, id_of: impl Fn(&str) -> Option<u32>) -> Self {
        names.sort();
        names.dedup();
        let known_names: Vec<&str> = names
            .iter()
            .map(String::as_str)
            .filter(|name| id_of(name).is_some())
            .collect();
        let known = Search::of(&known_names).map(|search| Known {
            ids: known_names.iter().filter_map(|n| id_of(n)).collect(),
            search,
        });
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let search = Search::of(&all);
        SpecialSet {
            search,
            known,
            names,
        }
    }

    /// The first member of the set in `text`, and where.
    pub fn first(&self, text: &str) -> Option<(&str, usize)> {
        let found = self.search.as_ref()?.find(text.as_bytes(), 0)?;
        Some((&self.names[found.index], found.start))
    }

    /// Whether a member stands in bytes, which may be text that is cut anywhere.
    pub fn is_in(&self, data: &[u8]) -> bool {
        let search = self.search.as_ref();
        search.is_some_and(|search| search.find(data, 0).is_some())
    }

    /// Whether no member is a special token of the encoding.
    pub fn allows_nothing(&self) -> bool {
        self.known.is_none()
    }

    /// The first special token at or after byte `from`, and its id.
    pub fn next_known(&self, text: &str, from: usize) -> Option<(Found, u32)> {
        let known = self.known.as_ref()?;
        let found = known.search.find(text.as_bytes(), from)?;
        Some((found, known.ids[found.index]))
    }
}

/// An automaton, and the prefix that all members share.
#[derive(Debug)]
struct Search {
    automaton: AhoCorasick,
    /// Looking for the prefix costs a fraction of running the automaton over all of the text.
    prefix: Option<Finder<'static>>,
}

impl Search {
    fn of(names: &[&str]) -> Option<Self> {
        let first = names.first()?.as_bytes();
        let shared = names.iter().skip(1).fold(first.len(), |shared, name| {
            let same = first
                .iter()
                .zip(name.as_bytes())
                .take_while(|(a, b)| a == b);
            shared.min(same.count())
        });
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .start_kind(StartKind::Both)
            .build(names)
            // Going on without would let every one of them through.
            .expect("strings of fewer states than 32 bits count");
        let prefix = (shared > 0).then(|| Finder::new(&first[..shared]).into_owned());
        Some(Search { automaton, prefix })
    }

    fn find(&self, text: &[u8], from: usize) -> Option<Found> {
        let to_found = |m: aho_corasick::Match| Found {
            start: m.start(),
            end: m.end(),
            index: m.pattern().as_usize(),
        };
        let Some(prefix) = &self.prefix else {
            return self
                .automaton
                .find(Input::new(text).range(from..))
                .map(to_found);
        };
        let mut at = from;
        loop {
            at += prefix.find(&text[at..])?;
            let here = Input::new(text).range(at..).anchored(Anchored::Yes);
            if let Some(found) = self.automaton.find(here) {
                return Some(to_found(found));
            }
            at += 1;
        }
    }
}
