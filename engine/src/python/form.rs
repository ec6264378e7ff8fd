//! `_core.Form`: a vocabulary of another format, as `pipeline/native.py` gives it.

use std::collections::HashMap;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyFrozenSet, PyList, PyString, PyTuple};

use super::guard::{ERRORS, guarded, raise, released};
use super::ids::{Integers, array_of, token_ids};
use super::text::utf8;
use crate::form;
use crate::form::{
    AddedToken, AddedTokens, Behaviour, Decoder, Middle, Model, NameSet, Normaliser, Normalisers,
    Pad, Parts, PreTokenizer, Refusal, Rule, Search, Spacing, UnicodeForm, Units, characters,
};
use crate::pool::Pool;
use crate::split::Splitter;

/// A compiled set of special tokens' names.
///
/// Boxed for the reason that `SpecialSet` is.
#[pyclass(frozen, module = "bytepair_engine._core")]
pub(super) struct FormNames(Box<NameSet>);

/// One form. `new` is None for what only the reference can do.
#[pyclass(frozen, module = "bytepair_engine._core")]
pub(super) struct Form {
    core: Box<form::Form>,
    integers: Integers,
}

/// What a piece starts as (bytes or not), `whole_first`, byte tokens, the unknown id,
/// `fuse_unknown`, prefix and suffix.
type ModelParts = (
    bool,
    bool,
    Vec<(u8, u32)>,
    Option<u32>,
    bool,
    String,
    String,
);

/// The parts of a step as Python has them: its kind, and what belongs to it.
type Step<'py> = (String, Bound<'py, PyTuple>);

type Added = (String, u32, bool, String, bool, bool, bool, bool);

#[pymethods]
impl Form {
    /// The parts of a form: see `pipeline/native.py`. None if a step is not known here.
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
    ) -> PyResult<Option<Self>> {
        let Some(rule) = rule_of(&rule)? else {
            return Ok(None);
        };
        let (bytes, whole_first, byte_tokens, unknown, fuse_unknown, prefix, suffix) = model;
        if bytes && matches!(rule, Rule::Scores(..)) {
            return Ok(None);
        }
        let (steps, younger) = normalisers;
        let steps: Option<Vec<Normaliser>> =
            steps.iter().map(normaliser).collect::<PyResult<_>>()?;
        let pre_tokenizers: Option<Vec<PreTokenizer>> = pre_tokenizers
            .iter()
            .map(pre_tokenizer)
            .collect::<PyResult<_>>()?;
        let (Some(steps), Some(pre_tokenizers)) = (steps, pre_tokenizers) else {
            return Ok(None);
        };
        let decoder = decoder_of(decoder)?;
        let most = decoder.middle.max_id();
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
        let core = guarded(py, || form::Form {
            model: Model::new(parts),
            normalisers: Normalisers {
                steps,
                younger: characters(&younger),
            },
            pre_tokenizers,
            as_it_came: added_tokens(as_it_came),
            normalised: added_tokens(normalised),
            decoder,
            pool: Pool::new(cache_bytes),
        })?;
        Ok(Some(Form {
            core: Box::new(core),
            integers: Integers::up_to(most),
        }))
    }

    #[staticmethod]
    fn names(py: Python<'_>, names: &Bound<'_, PyFrozenSet>) -> PyResult<FormNames> {
        let mut strings = Vec::with_capacity(names.len());
        for name in names {
            // A name with a lone surrogate is in no text.
            if let Ok(name) = name.cast::<PyString>()?.to_str() {
                strings.push(name.to_owned());
            }
        }
        Ok(FormNames(Box::new(guarded(py, || NameSet::new(strings))?)))
    }

    fn encode<'py>(
        &self,
        text: &Bound<'py, PyString>,
        allowed: &FormNames,
        disallowed: &FormNames,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let ids = on_text(text, |text| {
            self.core.encode(text, &allowed.0, &disallowed.0)
        })?;
        ids.map(|ids| self.integers.list(text.py(), &ids))
            .transpose()
    }

    fn encode_array<'py>(
        &self,
        text: &Bound<'py, PyString>,
        allowed: &FormNames,
        disallowed: &FormNames,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let ids = on_text(text, |text| {
            self.core.encode(text, &allowed.0, &disallowed.0)
        })?;
        ids.map(|ids| array_of(text.py(), &ids)).transpose()
    }

    fn encode_packed<'py>(
        &self,
        text: &Bound<'py, PyString>,
        allowed: &FormNames,
        disallowed: &FormNames,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let packed = on_text(text, |text| {
            self.core.encode_packed(text, &allowed.0, &disallowed.0)
        })?;
        Ok(packed.map(|packed| PyBytes::new(text.py(), &packed)))
    }

    fn count(
        &self,
        text: &Bound<'_, PyString>,
        allowed: &FormNames,
        disallowed: &FormNames,
        limit: Option<usize>,
    ) -> PyResult<Option<usize>> {
        on_text(text, |text| {
            self.core.count(text, &allowed.0, &disallowed.0, limit)
        })
    }

    fn decode_bytes<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (known, stranger) = token_ids(ids)?;
        if stranger.is_some() {
            return Ok(None);
        }
        let bytes = released(py, known.len(), || self.core.decoder.decode(&known))?;
        Ok(bytes.ok().map(|bytes| PyBytes::new(py, &bytes)))
    }
}

/// Run `work` on the text's UTF-8; None if only the reference can say what is wrong.
fn on_text<T: Send>(
    text: &Bound<'_, PyString>,
    work: impl FnOnce(&str) -> Result<T, Refusal> + Send,
) -> PyResult<Option<T>> {
    let utf8 = utf8(text)?;
    match released(text.py(), utf8.len(), || work(utf8))? {
        Ok(result) => Ok(Some(result)),
        Err(Refusal::Normalised) => Ok(None),
        Err(Refusal::Spelled(found)) => {
            let args = (found.token, found.byte_offset);
            Err(raise(text.py(), ERRORS, "SpecialTokenFound", args))
        }
    }
}

fn rule_of(
    (kind, first, second): &(String, Bound<'_, PyAny>, Bound<'_, PyAny>),
) -> PyResult<Option<Rule>> {
    Ok(match kind.as_str() {
        "ranks" => Some(Rule::Ranks),
        "merges" => {
            // Four integers for each pair: left, right, priority and result.
            // An array without items says that it is at an address which no u32 could have.
            let flat = if first.is_empty()? {
                Vec::new()
            } else {
                PyBuffer::<u32>::get(first)?.to_vec(first.py())?
            };
            let pairs = flat.as_chunks::<4>().0;
            Some(Rule::Merges(
                pairs.iter().map(|&pair| pair.into()).collect(),
            ))
        }
        "scores" => {
            let apart: Vec<(u32, Vec<u8>, Vec<u8>)> = second.extract()?;
            let apart = apart
                .into_iter()
                .map(|(id, left, right)| (id, [left, right]));
            Some(Rule::Scores(first.extract()?, apart.collect()))
        }
        _ => None,
    })
}

fn normaliser((kind, parts): &Step<'_>) -> PyResult<Option<Normaliser>> {
    Ok(match kind.as_str() {
        "unicode" => {
            let (name,): (String,) = parts.extract()?;
            UnicodeForm::named(&name).map(Normaliser::Unicode)
        }
        "lowercase" => {
            let (lower,): (HashMap<char, String>,) = parts.extract()?;
            Some(Normaliser::Lowercase(lower))
        }
        "prepend" => {
            let (text,) = parts.extract()?;
            Some(Normaliser::Prepend(text))
        }
        "replace" => {
            let (pattern, content): (String, String) = parts.extract()?;
            Search::new(&pattern).map(|search| Normaliser::Replace(search, content))
        }
        "strip" => {
            let (left, right) = parts.extract()?;
            Some(Normaliser::Strip { left, right })
        }
        "spacing" => {
            let (table, kept, tidy, pad, mark): (Vec<u8>, Vec<String>, bool, String, char) =
                parts.extract()?;
            let pad = match pad.as_str() {
                "before" => Pad::Before,
                "after" => Pad::After,
                _ => Pad::Nowhere,
            };
            Spacing::new(&table, &kept, tidy, pad, mark).map(|s| Normaliser::Spacing(Box::new(s)))
        }
        _ => None,
    })
}

fn pre_tokenizer((kind, parts): &Step<'_>) -> PyResult<Option<PreTokenizer>> {
    Ok(match kind.as_str() {
        "split" => {
            let (pattern, behaviour, inverted): (String, String, bool) = parts.extract()?;
            split(&pattern, &behaviour, inverted)
        }
        "substitute" => {
            let (old, new) = parts.extract()?;
            Some(PreTokenizer::Substitute(old, new))
        }
        "prefix" => {
            let (character, first_only) = parts.extract()?;
            Some(PreTokenizer::Prefix {
                character,
                first_only,
            })
        }
        "byte_alphabet" => Some(PreTokenizer::ByteAlphabet),
        _ => None,
    })
}

fn split(pattern: &str, behaviour: &str, inverted: bool) -> Option<PreTokenizer> {
    let behaviour = match behaviour {
        "isolated" => Behaviour::Isolated,
        "removed" => Behaviour::Removed,
        "merged_with_previous" => Behaviour::MergedWithPrevious,
        "merged_with_next" => Behaviour::MergedWithNext,
        "contiguous" => Behaviour::Contiguous,
        _ => return None,
    };
    let search = Search::new(pattern);
    // Isolated matches and the stretches between them are what a scanner gives.
    if behaviour == Behaviour::Isolated && !pattern.contains('\n') {
        match Splitter::for_pattern(pattern) {
            Ok(Splitter::General(_)) if search.is_none() => return None,
            Ok(splitter) => return Some(PreTokenizer::Scan(splitter)),
            Err(_) => return None,
        }
    }
    Some(PreTokenizer::Split {
        search: search?,
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
    type Table = HashMap<u32, Vec<u8>>;
    let (first, first_until_text, last, only, strip_start, strip_end): (
        Table,
        bool,
        Table,
        Table,
        (String, usize),
        (String, usize),
    ) = ends.extract()?;
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
