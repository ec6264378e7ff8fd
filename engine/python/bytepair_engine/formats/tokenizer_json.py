"""HuggingFace's tokenizer.json with a BPE model, to a pipeline.

The file holds everything that decides ids: normaliser, pre-tokenizer, model, added tokens,
post-processor and decoder. `tokenizers` is the program that defines what it means; where one of its
versions differs from another, 0.23 counts. Its settings for truncating and padding are no part of
a vocabulary: they concern callers, and are ignored here.
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
from bytepair_engine.pipeline.definition import ByteAlphabet, Pipeline, PreTokenizer


def pipeline_of(root: Node, *, also_special: Collection[str] = ()) -> Pipeline:
    """The pipeline of a parsed file.

    Args:
        root: The file's JSON.
        also_special: Added tokens that are special although the file does not say so.
    Raises:
        VocabularyError: It is not what it must be, or has something that is not known to be
            exact here; the error names the member.
    """
    version = root.get("version")
    if version is not None and version.value != "1.0":
        version.refuse(f"it is {version.value!r}, and 1.0 is known")
    model = root["model"]
    vocabulary = read_vocabulary(model)
    normal = normalisers(root.get("normalizer"))
    steps = pre_tokenizers(root.get("pre_tokenizer"))
    byte_level = ByteAlphabet() in steps
    added = read_added_tokens(root.get("added_tokens"), vocabulary, normal, also_special)
    spellings = {i: token for token, i in vocabulary.items()}
    # As `tokenizers` shows them: a token that is found in normalised text, as it is found.
    spellings.update((token.id, token.content) for token in added)
    template = read_template(root.get("post_processor"))
    for token_id in (*template.before, *template.after):
        if token_id not in spellings:
            root["post_processor"].refuse(f"no token has the id {token_id}")
    return Pipeline(
        normalisers=normal,
        pre_tokenizers=_without_last_alphabet(root, steps),
        added=added,
        model=read_model(model, vocabulary, byte_level=byte_level),
        decoder=read_decoder(root.get("decoder"), spellings),
        template=template,
    )


def _without_last_alphabet(root: Node, steps: tuple[PreTokenizer, ...]) -> tuple[PreTokenizer, ...]:
    if steps.count(ByteAlphabet()) > 1:
        root["pre_tokenizer"].refuse("ByteLevel stands in it twice")
    return steps[:-1] if steps[-1:] == (ByteAlphabet(),) else steps
