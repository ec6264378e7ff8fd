//! Rules of merging, converted to pairs of symbols.

use std::collections::HashMap;

use super::concatenations::concatenations;

/// Left symbol, right symbol, priority (the lowest first) and resulting symbol.
pub type Pair = (u32, u32, u32, u32);

/// The two parts of each id that is taken apart.
pub type TakenApart = HashMap<u32, [Vec<u8>; 2]>;

/// A rule of merging.
pub enum Rule {
    /// Two ids merge if their concatenation is a token, the lowest id first.
    Ranks,
    /// Ids: (left, right, priority, result).
    Merges(Vec<Pair>),
    /// Two strings merge if their concatenation has a score, the highest first. Also the two parts
    /// of each id that is taken apart.
    Scores(Vec<(u32, f64)>, TakenApart),
}

/// The single characters that are tokens, with their ids.
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

/// Tokens have more pairs than the core can store.
pub struct TooManyPairs;

/// Maximum number of pairs: fourteen times those of Gemma. They take 400 MB while a pipeline is
/// built.
pub const MAX_PAIRS: usize = 1 << 23;

/// All pairs of tokens whose concatenation is a token.
pub fn rank_pairs(list: &[(Vec<u8>, u32)]) -> Result<Vec<Pair>, TooManyPairs> {
    let tokens: Vec<&[u8]> = list.iter().map(|(token, _)| token.as_slice()).collect();
    let id = |index: u32| list[index as usize].1;
    pairs_of(&tokens, |[whole, left, right]| {
        (id(left), id(right), id(whole), id(whole))
    })
}

/// The pairs of symbols for strings: tokens with a score, and single characters. Also the symbols
/// of the characters.
pub fn score_pairs(
    list: &[(Vec<u8>, u32)],
    scores: &[(u32, f64)],
) -> Result<(Vec<Pair>, HashMap<char, u32>), TooManyPairs> {
    let mut order: Vec<f64> = scores.iter().map(|&(_, score)| score).collect();
    order.sort_by(|a, b| b.total_cmp(a));
    order.dedup();
    let priority = |score: f64| order.partition_point(|&other| other > score) as u32;
    let scores: HashMap<u32, f64> = scores.iter().copied().collect();
    // The symbol of a string with a score is its id. Characters without a score follow.
    let mut next = list.iter().map(|&(_, id)| id).max().unwrap_or(0);
    let mut symbols = Vec::new();
    let (mut strings, priorities): (Vec<&str>, Vec<u32>) = list
        .iter()
        .filter_map(|(token, id)| {
            let text = std::str::from_utf8(token).ok()?;
            let priority = priority(*scores.get(id)?);
            symbols.push(*id);
            Some((text, priority))
        })
        .unzip();
    let mut characters: HashMap<char, u32> = symbols
        .iter()
        .zip(&strings)
        .filter_map(|(&symbol, text)| Some((single(text.as_bytes())?, symbol)))
        .collect();
    for at in 0..priorities.len() {
        let text = strings[at];
        for (start, character) in text.char_indices() {
            characters.entry(character).or_insert_with(|| {
                strings.push(&text[start..start + character.len_utf8()]);
                next += 1;
                symbols.push(next);
                next
            });
        }
    }
    let strings: Vec<&[u8]> = strings.into_iter().map(str::as_bytes).collect();
    let pairs = pairs_of(&strings, |[whole, left, right]| {
        let [result, left, right] = [whole, left, right].map(|index| symbols[index as usize]);
        (left, right, priorities[whole as usize], result)
    })?;
    Ok((pairs, characters))
}

fn pairs_of(strings: &[&[u8]], pair: impl Fn([u32; 3]) -> Pair) -> Result<Vec<Pair>, TooManyPairs> {
    let mut pairs = Vec::new();
    concatenations(strings, |indices| {
        pairs.push(pair(indices));
        pairs.len() <= MAX_PAIRS
    });
    if pairs.len() > MAX_PAIRS {
        return Err(TooManyPairs);
    }
    Ok(pairs)
}
