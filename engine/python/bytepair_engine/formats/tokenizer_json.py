"""Convert Hugging Face's tokenizer.json with a BPE model to a pipeline.

The file contains everything that determines ids: normaliser, pre-tokenizer, model, added tokens,
post-processor and decoder. The behaviour is that of `tokenizers` 0.23. Settings for truncation and
padding are ignored: they concern callers, not the vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection

from bytepair_engine.formats.json_file import Node
from bytepair_engine.formats.tokenizer_json_added import read_added_tokens
from bytepair_engine.formats.tokenizer_json_decoder import read_decoder
from bytepair_engine.formats.tokenizer_json_model import read_model, read_vocabulary
from bytepair_engine.formats.tokenizer_json_normalisers import normalisers
from bytepair_engine.formats.tokenizer_json_steps import pre_tokenizers
from bytepair_engine.formats.tokenizer_json_template import read_template
from bytepair_engine.pipeline.byte_alphabet import BYTE_ALPHABET
from bytepair_engine.pipeline.definition import (
    ByteAlphabet,
    Normaliser,
    Pipeline,
    Prefix,
    PreTokenizer,
)
from bytepair_engine.pipeline.growth import MAX_GROWTH, growth


def pipeline_of(root: Node, *, also_special: Collection[str] = ()) -> Pipeline:
    """Convert a parsed file to a pipeline.

    Args:
        root: The parsed file.
        also_special: Added tokens to treat as special although they are not special in the file.
    Raises:
        VocabularyError: The file is invalid, or has a feature that is not supported exactly; the
            error has the path of the member.
    """
    version = root.get("version")
    if version is not None and version.value != "1.0":
        version.reject(f"it is {version.value!r}, and only 1.0 is supported")
    model = root["model"]
    vocabulary = read_vocabulary(model)
    normal = normalisers(root.get("normalizer"))
    steps = pre_tokenizers(root.get("pre_tokenizer"))
    _check_growth(root, normal, steps)
    byte_level = ByteAlphabet() in steps
    added = read_added_tokens(root.get("added_tokens"), vocabulary, normal, also_special)
    spellings = {i: token for token, i in vocabulary.items()}
    # As in `tokenizers`, a token searched in normalised text decodes to its normalised form.
    spellings.update((token.id, token.content) for token in added)
    template = read_template(root.get("post_processor"))
    for token_id in (*template.before, *template.after):
        if token_id not in spellings:
            root["post_processor"].reject(f"no token has the id {token_id}")
    return Pipeline(
        normalisers=normal,
        pre_tokenizers=_without_last_alphabet(root, steps),
        added=added,
        model=read_model(model, vocabulary, byte_level=byte_level),
        decoder=read_decoder(root.get("decoder"), spellings),
        template=template,
    )


def _check_growth(
    root: Node, normal: tuple[Normaliser, ...], steps: tuple[PreTokenizer, ...]
) -> None:
    problem = f"its steps can make a text more than {MAX_GROWTH} times longer"
    if growth(normal) > MAX_GROWTH:
        root["normalizer"].reject(problem)
    if growth((*normal, *steps)) > MAX_GROWTH:
        root["pre_tokenizer"].reject(f"after the normalizer, {problem}")


def _without_last_alphabet(root: Node, steps: tuple[PreTokenizer, ...]) -> tuple[PreTokenizer, ...]:
    if steps.count(ByteAlphabet()) > 1:
        root["pre_tokenizer"].reject("it contains ByteLevel twice")
    after = steps[steps.index(ByteAlphabet()) :] if ByteAlphabet() in steps else ()
    if any(isinstance(s, Prefix) and s.character not in BYTE_ALPHABET for s in after):
        root["pre_tokenizer"].reject("after ByteLevel, Metaspace adds a character for no byte")
    return steps[:-1] if steps[-1:] == (ByteAlphabet(),) else steps
