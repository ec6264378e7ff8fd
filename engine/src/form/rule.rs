//! Which neighbours merge, and in which order, as pairs of symbols.

use std::collections::HashMap;

use super::tokens::Tokens;

/// Two symbols, the priority of merging them, the lowest first, and what they become.
pub type Pair = (u32, u32, u32, u32);

/// Which neighbours merge, and in which order.
pub enum Rule {
    /// Ids: two whose concatenation is a token, the lowest id first.
    Ranks,
    /// Ids: (left, right, priority, result).
    Merges(Vec<Pair>),
    /// Strings: two whose concatenation has a score, the highest first; and what is taken apart.
    Scores(Vec<(u32, f64)>, HashMap<u32, [Vec<u8>; 2]>),
}

/// The characters that are tokens, and their ids.
pub fn single_characters(tokens: &[(Vec<u8>, u32)]) -> HashMap<char, u32> {
    let single = tokens
        .iter()
        .filter_map(|(token, id)| Some((single(token)?, *id)));
    single.collect()
}

fn single(token: &[u8]) -> Option<char> {
    let mut characters = std::str::from_utf8(token).ok()?.chars();
    let first = characters.next()?;
    characters.next().is_none().then_some(first)
}

/// Every way to put a token together from two.
pub fn rank_pairs(list: &[(Vec<u8>, u32)], tokens: &Tokens) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (token, id) in list {
        for at in 1..token.len() {
            if let (Some(left), Some(right)) = (tokens.get(&token[..at]), tokens.get(&token[at..]))
            {
                pairs.push((left, right, *id, *id));
            }
        }
    }
    pairs
}

/// Pairs of symbols for strings: those of tokens with a score, and of single characters. Also the
/// symbols of the characters.
pub fn score_pairs(
    list: &[(Vec<u8>, u32)],
    scores: &[(u32, f64)],
) -> (Vec<Pair>, HashMap<char, u32>) {
    let mut order: Vec<f64> = scores.iter().map(|&(_, score)| score).collect();
    order.sort_by(|a, b| b.total_cmp(a));
    order.dedup();
    let priority = |score: f64| order.partition_point(|&other| other > score) as u32;
    let scores: HashMap<u32, f64> = scores.iter().copied().collect();
    let scored: Vec<(&str, u32)> = list
        .iter()
        .filter_map(|(token, id)| {
            let text = std::str::from_utf8(token).ok()?;
            Some((text, priority(*scores.get(id)?)))
        })
        .collect();
    let mut symbols: HashMap<&str, u32> = HashMap::new();
    let mut characters = HashMap::new();
    for &(text, _) in &scored {
        let next = symbols.len() as u32;
        symbols.entry(text).or_insert(next);
        for (at, character) in text.char_indices() {
            let next = symbols.len() as u32;
            let symbol = symbols
                .entry(&text[at..at + character.len_utf8()])
                .or_insert(next);
            characters.insert(character, *symbol);
        }
    }
    let mut pairs = Vec::new();
    for &(text, priority) in &scored {
        for (at, _) in text.char_indices().skip(1) {
            if let (Some(&left), Some(&right)) =
                (symbols.get(&text[..at]), symbols.get(&text[at..]))
            {
                pairs.push((left, right, priority, symbols[text]));
            }
        }
    }
    (pairs, characters)
}
