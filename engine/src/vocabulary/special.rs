//! Search for special tokens in text: the leftmost match of a set, and the longest at one position.

use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Anchored, Input, Match, MatchKind, StartKind};
use memchr::memmem::Finder;

/// A compiled set of strings to search for.
#[derive(Debug)]
pub struct SpecialSet {
    /// In order.
    names: Vec<String>,
    search: Option<Arc<Search>>,
    /// The members that are special tokens of the encoding; None if there are none.
    known: Option<Known>,
}

#[derive(Debug)]
struct Known {
    ids: Vec<u32>,
    search: Arc<Search>,
}

impl SpecialSet {
    /// Compiles `names`. `id_of` returns the id of a special token and None for other strings.
    pub fn new(mut names: Vec<String>, id_of: impl Fn(&str) -> Option<u32>) -> Self {
        names.sort();
        names.dedup();
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let search = Search::of(&all).map(Arc::new);
        let with_id = |name| Some((name, id_of(name)?));
        let (known_names, ids): (Vec<&str>, Vec<u32>) =
            all.iter().copied().filter_map(with_id).unzip();
        // Compiling is most of the cost: it is done once for names that are all special tokens.
        let of_known = if ids.len() == all.len() {
            search.clone()
        } else {
            Search::of(&known_names).map(Arc::new)
        };
        let known = of_known.map(|search| Known { ids, search });
        SpecialSet {
            search,
            known,
            names,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns whether this is the name of a member.
    pub fn has(&self, name: &str) -> bool {
        let found = self
            .names
            .binary_search_by(|known| known.as_str().cmp(name));
        found.is_ok()
    }

    /// Returns the first member of the set in `text` and its start in bytes; None if there is none.
    pub fn first(&self, text: &str) -> Option<(&str, usize)> {
        let found = self.search.as_ref()?.find(text.as_bytes(), 0)?;
        Some((&self.names[found.pattern().as_usize()], found.start()))
    }

    /// Returns whether a member occurs in `data`, which may be text cut at any byte.
    pub fn is_in(&self, data: &[u8]) -> bool {
        let search = self.search.as_ref();
        search.is_some_and(|search| search.find(data, 0).is_some())
    }

    /// Returns where the first special token at or after byte `from` is, in bytes, and its id; None
    /// if there is none.
    pub fn next_known(&self, text: &str, from: usize) -> Option<(Range<usize>, u32)> {
        let known = self.known.as_ref()?;
        let found = known.search.find(text.as_bytes(), from)?;
        Some((found.range(), known.ids[found.pattern().as_usize()]))
    }
}

/// Total length in bytes from which strings are long. A DFA has up to 2 KiB for each byte.
const LONG: usize = 8 << 10;

/// Maximum length in bytes of names with a search for their common prefix: each of its matches
/// starts the automaton.
const MAX_RESTARTED: usize = 64;

/// Compiles a search for the longest of the strings at the leftmost position; None if there are too
/// many.
pub fn automaton(strings: &[impl AsRef<[u8]>], start: StartKind) -> Option<AhoCorasick> {
    let bytes: usize = strings.iter().map(|string| string.as_ref().len()).sum();
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .start_kind(start)
        .kind((bytes >= LONG).then_some(AhoCorasickKind::ContiguousNFA))
        .build(strings)
        .ok()
}

/// An automaton, and the common prefix of all members.
#[derive(Debug)]
struct Search {
    automaton: AhoCorasick,
    /// None if the prefix is empty, or the names are long. Searching for it costs a fraction of
    /// running the automaton over the whole text.
    prefix: Option<Finder<'static>>,
}

impl Search {
    /// Compiles names, which must be sorted.
    fn of(names: &[&str]) -> Option<Self> {
        let (first, last) = (names.first()?.as_bytes(), names.last()?.as_bytes());
        let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        // An encoding without the automaton would let every special token through.
        let automaton =
            automaton(names, StartKind::Both).expect("strings of fewer states than 32 bits count");
        let is_short = |name: &&str| name.len() <= MAX_RESTARTED;
        let prefix = (shared > 0 && (names.len() == 1 || names.iter().all(is_short)))
            .then(|| Finder::new(&first[..shared]).into_owned());
        Some(Search { automaton, prefix })
    }

    fn find(&self, text: &[u8], from: usize) -> Option<Match> {
        let Some(prefix) = &self.prefix else {
            return self.automaton.find(Input::new(text).range(from..));
        };
        let mut at = from;
        loop {
            at += prefix.find(&text[at..])?;
            let here = Input::new(text).range(at..).anchored(Anchored::Yes);
            if let Some(found) = self.automaton.find(here) {
                return Some(found);
            }
            at += 1;
        }
    }
}
