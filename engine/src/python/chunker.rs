//! Chunks of a text, for `context/splitting.py`; places are code points.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyString};

use super::encoding::Bpe;
use super::guard::released;
use super::text::utf8;
use crate::context::boundaries::{Excerpt, LEVELS, Level};
use crate::context::chunker::{self, Chunk};

/// Where the next chunk starts, in bytes and in code points; where the last one ends; and how many
/// tokens they share.
type Next = (usize, usize, usize, usize);

/// The most tokens, the least at a coarse boundary, the most that are shared, and the coarsest
/// boundary to look for, by its place among all.
type Rule = (usize, usize, usize, usize);

/// The starts, ends, counts, overlaps and boundaries of the chunks, each in a list: a tuple for
/// each chunk costs Python more. Their texts, and where the next one starts.
type Found<'py> = ([Vec<usize>; 5], Vec<Bound<'py, PyAny>>, Next);

#[pymethods]
impl Bpe {
    /// Finds the next chunks of ordinary text, as far as the text near them decides.
    fn chunks<'py>(
        &self,
        text: &Bound<'py, PyString>,
        here: Next,
        rule: Rule,
        is_start: bool,
        known: Option<usize>,
        most: usize,
    ) -> PyResult<Found<'py>> {
        let utf8 = utf8(text)?;
        let (byte, start, last_end, overlap) = here;
        let (budget, least, shared, level) = rule;
        let level = level_of(level)?;
        if !utf8.is_char_boundary(byte) {
            return Err(PyValueError::new_err("start"));
        }
        let (chunks, columns, next) = released(text.py(), utf8.len(), || {
            let rule = chunker::Rule {
                budget,
                least,
                overlap: shared,
                level,
            };
            let next = chunker::Next {
                start: byte,
                last_end: forward(utf8, byte, last_end - start),
                overlap,
            };
            let part = Excerpt {
                text: utf8,
                is_start,
            };
            let known = known.map(|known| forward(utf8, byte, known.saturating_sub(start)));
            let (chunks, next) = self.core.chunks(part, next, rule, known, most);
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
                [start, end, chunk.count, chunk.overlap, chunk.level as usize]
            };
            let rows: Vec<[usize; 5]> = chunks.iter().map(row).collect();
            let (start, last_end) = (point(next.start), point(next.last_end));
            let column = |i| rows.iter().map(|row| row[i]).collect::<Vec<_>>();
            let columns = [0, 1, 2, 3, 4].map(column);
            (chunks, columns, (next.start, start, last_end, next.overlap))
        })?;
        let mut texts = Vec::with_capacity(chunks.len());
        for (chunk, (&start, &end)) in chunks.iter().zip(columns[0].iter().zip(&columns[1])) {
            let part = &utf8[chunk.start..chunk.end];
            // Python would read mostly ASCII text in wide characters to narrow it.
            texts.push(if part.len() - (end - start) <= part.len() / 16 {
                PyString::new(text.py(), part).into_any()
            } else {
                text.get_item(PySlice::new(text.py(), start as isize, end as isize, 1))?
            });
        }
        Ok((columns, texts, next))
    }

    /// Finds the longest start or end of ordinary text that fits, if the text near it decides.
    fn longest(
        &self,
        text: &Bound<'_, PyString>,
        budget: usize,
        level: usize,
        from_end: bool,
        is_complete: bool,
    ) -> PyResult<Option<(usize, usize)>> {
        let utf8 = utf8(text)?;
        let level = level_of(level)?;
        released(text.py(), utf8.len(), || {
            let (place, count) = if from_end {
                self.core.longest_end(utf8, budget, level, is_complete)?
            } else {
                self.core.longest_start(utf8, budget, level, is_complete)?
            };
            Some((utf8[..place].chars().count(), count))
        })
    }
}

fn level_of(index: usize) -> PyResult<Level> {
    let level = LEVELS.get(index).copied();
    level.ok_or_else(|| PyValueError::new_err("level"))
}

/// The place `points` code points after `place`; at most the end of the text.
fn forward(text: &str, place: usize, points: usize) -> usize {
    let mut rest = text[place..].char_indices();
    rest.nth(points).map_or(text.len(), |(at, _)| place + at)
}
