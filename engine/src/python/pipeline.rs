//! `_core.Pipeline`: a vocabulary of another format, built from the arguments of
//! `pipeline/native.py`.

use std::iter::zip;

use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyFrozenSet, PyList, PyTuple};

use super::encoding::SpecialSet;
use super::guard::{ERRORS, guarded, pattern_error, raise};
use super::ids::{array_of, list_of, token_ids};
use super::text::{joined, located, names_in_text, on_text, on_utf8, python_text};
use crate::cache::scratch::Pool;
use crate::output::varint;
use crate::pipeline;
use crate::pipeline::{
    AddedToken, AddedTokens, Behaviour, CharsMap, Decoder, Middle, Model, Normaliser, Normalisers,
    Pad, Parts, PreTokenizer, Rule, Search, Spacing, UnicodeForm, Units,
};
use crate::split::Splitter;
use crate::split::regex::CharSet;
use crate::vocabulary::special;

/// A pipeline.
#[pyclass(frozen, module = "bytepair_engine._core")]
pub(super) struct Pipeline {
    pub(super) core: Box<pipeline::Pipeline>,
}

/// Whether a piece starts as bytes, `whole_first`, byte tokens, the unknown id, `fuse_unknown`,
/// prefix and suffix.
type ModelParts = (
    bool,
    bool,
    Vec<(u8, u32)>,
    Option<u32>,
    bool,
    String,
    String,
);

/// A step as Python passes it: its kind and its arguments.
type Step<'py> = (String, Bound<'py, PyTuple>);

type Added = (String, u32, bool, String, bool, bool, bool, bool);

#[pymethods]
impl Pipeline {
    /// Builds a pipeline from the parts that `pipeline/native.py` describes. Raises VocabularyError
    /// for a pattern that cannot be run in bounded time.
    #[staticmethod]
    #[allow(clippy::too_many_arguments)]
    fn build(
        py: Python<'_>,
        tokens: Vec<(Vec<u8>, u32)>,
        rule: (String, Bound<'_, PyAny>, Bound<'_, PyAny>),
        model: ModelParts,
        normalisers: (Vec<Step<'_>>, Vec<(u32, u32)>),
        pre_tokenizers: Vec<Step<'_>>,
        added: Vec<Added>,
        decoder: (Vec<(u32, Vec<u8>)>, Bound<'_, PyTuple>),
        cache_bytes: usize,
    ) -> PyResult<Self> {
        let rule = rule_of(&rule)?;
        let (bytes, whole_first, byte_tokens, unknown, fuse_unknown, prefix, suffix) = model;
        if bytes && matches!(rule, Rule::Scores(..)) {
            return Err(unknown_part(py, "scores of bytes"));
        }
        let (steps, younger) = normalisers;
        let steps = steps.iter().map(normaliser).collect::<PyResult<_>>()?;
        let pre_tokenizers = pre_tokenizers
            .iter()
            .map(pre_tokenizer)
            .collect::<PyResult<_>>()?;
        let decoder = decoder_of(decoder)?;
        let parts = Parts {
            tokens,
            rule,
            units: if bytes {
                Units::Bytes
            } else {
                Units::Characters
            },
            whole_first,
            byte_tokens,
            unknown,
            fuse_unknown,
            prefix,
            suffix,
        };
        let (normalised, as_it_came) = added.into_iter().partition::<Vec<Added>, _>(|t| t.7);
        let model = guarded(py, || Model::new(parts))?.map_err(|_| too_many_pairs(py))?;
        let core = guarded(py, || pipeline::Pipeline {
            model,
            normalisers: Normalisers {
                steps,
                younger: CharSet::of_ranges(&younger),
            },
            pre_tokenizers,
            as_it_came: added_tokens(as_it_came),
            normalised: added_tokens(normalised),
            decoder,
            pool: Pool::new(cache_bytes, pipeline::PipelineScratch::new),
        })?;
        Ok(Pipeline {
            core: Box::new(core),
        })
    }

    #[staticmethod]
    fn special_set(names: &Bound<'_, PyFrozenSet>) -> PyResult<SpecialSet> {
        let strings = names_in_text(names)?;
        let set = guarded(names.py(), || special::SpecialSet::new(strings, |_| None))?;
        Ok(SpecialSet(Box::new(set)))
    }
}

text_methods!(Pipeline);

fn rule_of((kind, first, second): &(String, Bound<'_, PyAny>, Bound<'_, PyAny>)) -> PyResult<Rule> {
    Ok(match kind.as_str() {
        "ranks" => Rule::Ranks,
        "merges" => {
            let columns: [Bound<'_, PyAny>; 4] = first.extract()?;
            let [lefts, rights, priorities, results] = columns.each_ref().map(token_ids);
            let halves = zip(lefts?.0, rights?.0);
            let merges = zip(halves, zip(priorities?.0, results?.0));
            Rule::Merges(merges.map(|((l, r), (p, m))| (l, r, p, m)).collect())
        }
        "scores" => {
            let apart: Vec<(u32, Vec<u8>, Vec<u8>)> = second.extract()?;
            let apart = apart.into_iter().map(|(id, l, r)| (id, [l, r]));
            Rule::Scores(first.extract()?, apart.collect())
        }
        other => return Err(unknown_part(first.py(), other)),
    })
}

/// Makes the error for a part that `pipeline/native.py` passes and this file does not know.
fn unknown_part(py: Python<'_>, part: &str) -> PyErr {
    let problem = format!("the core does not know {part}");
    let args = ("the vocabulary", problem, "this is a bug: report it");
    raise(py, ERRORS, "VocabularyError", args)
}

fn too_many_pairs(py: Python<'_>) -> PyErr {
    let most = pipeline::MAX_PAIRS;
    let problem = format!("more than {most} pairs of tokens join to a token");
    let remedy = "serve a vocabulary of fewer long tokens";
    let args = ("the vocabulary", problem, remedy);
    raise(py, ERRORS, "VocabularyError", args)
}

fn search(py: Python<'_>, pattern: &str) -> PyResult<Search> {
    Search::new(pattern).map_err(|fault| pattern_error(py, fault))
}

fn normaliser((kind, parts): &Step<'_>) -> PyResult<Normaliser> {
    let unknown = || unknown_part(parts.py(), kind);
    Ok(match kind.as_str() {
        "unicode" => {
            let (name,): (String,) = parts.extract()?;
            Normaliser::Unicode(UnicodeForm::named(&name).ok_or_else(unknown)?)
        }
        "lowercase" => Normaliser::Lowercase(parts.extract::<(_,)>()?.0),
        "prepend" => Normaliser::Prepend(parts.extract::<(_,)>()?.0),
        "replace" => {
            let (pattern, content): (String, String) = parts.extract()?;
            Normaliser::Replace(search(parts.py(), &pattern)?, content)
        }
        "surround" => {
            let (pattern, content): (String, String) = parts.extract()?;
            Normaliser::Surround(search(parts.py(), &pattern)?, content)
        }
        "strip" => {
            let (left, right) = parts.extract()?;
            Normaliser::Strip { left, right }
        }
        "charsmap" => {
            let (table,): (Vec<u8>,) = parts.extract()?;
            Normaliser::CharsMap(Box::new(CharsMap::new(&table).ok_or_else(unknown)?))
        }
        "spacing" => {
            let (table, kept, tidy, pad, mark): (Vec<u8>, Vec<String>, bool, String, char) =
                parts.extract()?;
            let pad = match pad.as_str() {
                "before" => Pad::Before,
                "after" => Pad::After,
                _ => Pad::Nowhere,
            };
            let spacing = Spacing::new(&table, &kept, tidy, pad, mark).ok_or_else(unknown)?;
            Normaliser::Spacing(Box::new(spacing))
        }
        _ => return Err(unknown()),
    })
}

fn pre_tokenizer((kind, parts): &Step<'_>) -> PyResult<PreTokenizer> {
    Ok(match kind.as_str() {
        "split" => {
            let (pattern, behaviour, inverted): (String, String, bool) = parts.extract()?;
            split(parts.py(), &pattern, &behaviour, inverted)?
        }
        "substitute" => {
            let (old, new) = parts.extract()?;
            PreTokenizer::Substitute(old, new)
        }
        "prefix" => {
            let (character, first_only) = parts.extract()?;
            PreTokenizer::Prefix {
                character,
                first_only,
            }
        }
        "byte_alphabet" => PreTokenizer::ByteAlphabet,
        _ => return Err(unknown_part(parts.py(), kind)),
    })
}

fn split(py: Python<'_>, pattern: &str, behaviour: &str, inverted: bool) -> PyResult<PreTokenizer> {
    let behaviour = match behaviour {
        // A scanner returns isolated matches and the text between them.
        "isolated" if !pattern.contains('\n') => {
            let splitter = Splitter::for_pattern(pattern).map(PreTokenizer::Scan);
            return splitter.map_err(|fault| pattern_error(py, fault));
        }
        "isolated" => Behaviour::Isolated,
        "removed" => Behaviour::Removed,
        "merged_with_previous" => Behaviour::MergedWithPrevious,
        "merged_with_next" => Behaviour::MergedWithNext,
        "contiguous" => Behaviour::Contiguous,
        other => return Err(unknown_part(py, other)),
    };
    Ok(PreTokenizer::Split {
        search: search(py, pattern)?,
        behaviour,
        inverted,
    })
}

fn added_tokens(tokens: Vec<Added>) -> AddedTokens {
    let tokens = tokens.into_iter().map(
        |(content, id, special, name, left_strip, right_strip, single_word, _)| AddedToken {
            content,
            id,
            special,
            name,
            left_strip,
            right_strip,
            single_word,
        },
    );
    AddedTokens::new(tokens.collect())
}

fn decoder_of((middle, ends): (Vec<(u32, Vec<u8>)>, Bound<'_, PyTuple>)) -> PyResult<Decoder> {
    let (first, first_until_text, last, only, strip_start, strip_end) = ends.extract()?;
    Ok(Decoder {
        first,
        first_until_text,
        last,
        only,
        strip_start,
        strip_end,
        middle: Middle::new(&middle),
    })
}
