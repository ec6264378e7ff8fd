//! Chunks of a text, for `context/splitting.py`; places are code points.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::guard::released;
use super::text::utf8;
use crate::borders::{BORDERS, Border};
use crate::bpe::Bpe;
use crate::chunker::{self, Chunk};

/// Where the next chunk starts, in bytes and in code points; where the last one ends; and how many
/// tokens they share.
pub(super) type Next = (usize, usize, usize, usize);

/// The most tokens, the least at a coarse border, the most that are shared, and the coarsest border
/// to look for, by its place among all.
pub(super) type Rule = (usize, usize, usize, usize);

/// The starts, ends, counts, overlaps and borders of the chunks, each in a list: a tuple for each
/// chunk costs Python more. And where the next one starts.
pub(super) type Found = ([Vec<usize>; 5], Next);

/// See `Bpe::chunks`.
pub(super) fn chunks(
    core: &Bpe,
    text: &Bound<'_, PyString>,
    next: Next,
    rule: Rule,
    known: Option<usize>,
    most: usize,
) -> PyResult<Found> {
    let utf8 = utf8(text)?;
    let (byte, start, covered, overlap) = next;
    let (budget, least, shared, border) = rule;
    let border = border_of(border)?;
    if !utf8.is_char_boundary(byte) {
        return Err(PyValueError::new_err("start"));
    }
    released(text.py(), utf8.len(), || {
        let rule = chunker::Rule {
            budget,
            least,
            overlap: shared,
            border,
        };
        let next = chunker::Next {
            start: byte,
            covered: forward(utf8, byte, covered - start),
            overlap,
        };
        let known = known.map(|known| forward(utf8, byte, known.saturating_sub(start)));
        let (chunks, next) = core.chunks(utf8, next, rule, known, most);
        let mut place = (byte, start);
        let mut point = |at: usize| {
            // With an overlap the next chunk starts before the last one ends.
            place.1 = if at < place.0 {
                place.1 - utf8[at..place.0].chars().count()
            } else {
                place.1 + utf8[place.0..at].chars().count()
            };
            place.0 = at;
            place.1
        };
        let row = |chunk: &Chunk| {
            let (start, end) = (point(chunk.start), point(chunk.end));
            [
                start,
                end,
                chunk.count,
                chunk.overlap,
                chunk.border as usize,
            ]
        };
        let rows: Vec<[usize; 5]> = chunks.iter().map(row).collect();
        let column = |index| rows.iter().map(|row| row[index]).collect();
        let (start, covered) = (point(next.start), point(next.covered));
        let columns = [0, 1, 2, 3, 4].map(column);
        (columns, (next.start, start, covered, next.overlap))
    })
}

/// See `Bpe::longest_start` and `Bpe::longest_end`.
pub(super) fn longest(
    core: &Bpe,
    text: &Bound<'_, PyString>,
    budget: usize,
    border: usize,
    from_end: bool,
    is_complete: bool,
) -> PyResult<Option<(usize, usize)>> {
    let utf8 = utf8(text)?;
    let border = border_of(border)?;
    released(text.py(), utf8.len(), || {
        let (place, count) = if from_end {
            core.longest_end(utf8, budget, border, is_complete)?
        } else {
            core.longest_start(utf8, budget, border, is_complete)?
        };
        Some((utf8[..place].chars().count(), count))
    })
}

fn border_of(index: usize) -> PyResult<Border> {
    let border = BORDERS.get(index).copied();
    border.ok_or_else(|| PyValueError::new_err("level"))
}

/// The place `points` code points after `place`; at most the end of the text.
fn forward(text: &str, place: usize, points: usize) -> usize {
    let mut rest = text[place..].char_indices();
    rest.nth(points).map_or(text.len(), |(at, _)| place + at)
}
