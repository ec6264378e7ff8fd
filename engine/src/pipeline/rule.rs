//! Which neighbours merge, and in which order, as pairs of symbols.

use std::collections::HashMap;

use super::concatenations::concatenations;

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

/// There are more ways to put tokens together than the core can hold.
pub struct TooManyPairs;

/// Fourteen times as many as Gemma's merges; they take 400 MB while a pipeline is built.
pub const MOST_PAIRS: usize = 1 << 23;

/// Every way to put a token together from two.
pub fn rank_pairs(list: &[(Vec<u8>, u32)]) -> Result<Vec<Pair>, TooManyPairs> {
    let tokens: Vec<&[u8]> = list.iter().map(|(token, _)| token.as_slice()).collect();
    let id = |index: u32| list[index as usize].1;
    pairs_of(&tokens, |[whole, left, right]| {
        (id(left), id(right), id(whole), id(whole))
    })
}

/// Pairs of symbols for strings: those of tokens with a score, and of single characters. Also the
/// symbols of the characters.
pub fn score_pairs(
    list: &[(Vec<u8>, u32)],
    scores: &[(u32, f64)],
) -> Result<(Vec<Pair>, HashMap<char, u32>), TooManyPairs> {
    let mut order: Vec<f64> = scores.iter().map(|&(_, score)| score).collect();
    order.sort_by(|a, b| b.total_cmp(a));
    order.dedup();
    let priority = |score: f64| order.partition_point(|&other| other > score) as u32;
    let scores: HashMap<u32, f64> = scores.iter().copied().collect();
    let (mut strings, priorities): (Vec<&str>, Vec<u32>) = list
        .iter()
        .filter_map(|(token, id)| {
            let text = std::str::from_utf8(token).ok()?;
            Some((text, priority(*scores.get(id)?)))
        })
        .unzip();
    // The symbol of a string is its index; characters that have no score come after the others.
    let mut characters: HashMap<char, u32> = (0..)
        .zip(&strings)
        .filter_map(|(symbol, text)| Some((single(text.as_bytes())?, symbol)))
        .collect();
    for at in 0..priorities.len() {
        let text = strings[at];
        for (start, character) in text.char_indices() {
            characters.entry(character).or_insert_with(|| {
                strings.push(&text[start..start + character.len_utf8()]);
                strings.len() as u32 - 1
            });
        }
    }
    let strings: Vec<&[u8]> = strings.into_iter().map(str::as_bytes).collect();
    let pairs = pairs_of(&strings, |[whole, left, right]| {
        (left, right, priorities[whole as usize], whole)
    })?;
    Ok((pairs, characters))
}

fn pairs_of(strings: &[&[u8]], pair: impl Fn([u32; 3]) -> Pair) -> Result<Vec<Pair>, TooManyPairs> {
    let mut pairs = Vec::new();
    concatenations(strings, |indices| {
        pairs.push(pair(indices));
        pairs.len() <= MOST_PAIRS
    });
    if pairs.len() > MOST_PAIRS {
        return Err(TooManyPairs);
    }
    Ok(pairs)
}
