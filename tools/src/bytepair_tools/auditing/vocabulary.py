"""The tokens of an encoding, as an audit looks at them."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Final

from bytepair_engine import Encoding
from bytepair_engine.pipeline.derivation import Derivations, model_of

_CONTINUATION: Final = range(0x80, 0xC0)
_UTF8: Final = codecs.getincrementaldecoder("utf-8")


@dataclass(frozen=True, slots=True)
class Token:
    """An ordinary token: no special one, none that stands for a single byte, and not the unknown
    one.

    Attributes:
        id: Its id.
        data: What it decodes to amid a text.
        spelling: How the model's vocabulary has it; None where only decoding knows it.
    """

    id: int
    data: bytes
    spelling: bytes | None

    @property
    def text(self) -> str | None:
        """What it decodes to; None where that is not whole UTF-8."""
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            return None


class Vocabulary:
    """The tokens of an encoding, and how they come to be.

    Attributes:
        encoding: The encoding.
        tokens: Its ordinary tokens, by id.
        derivations: How they are merged.
        always_found: Added tokens that any text which contains them becomes though no request
            allows them: id to spelling.
    """

    def __init__(self, encoding: Encoding) -> None:
        """Look at all tokens of an encoding."""
        self.encoding: Final = encoding
        model, pipeline = model_of(encoding), encoding.pipeline
        self.derivations: Final = Derivations(model)
        added = () if pipeline is None else pipeline.added
        self.always_found: Final = {t.id: t.name or t.content for t in added if not t.special}
        spellings = {token_id: spelling for spelling, token_id in model.tokens.items()}
        known = spellings.keys() if pipeline is None else pipeline.decoder.middle.keys()
        left_out = {*model.byte_tokens.values(), model.unknown}
        if model.units == "bytes":
            left_out |= {i for spelling, i in model.tokens.items() if len(spelling) == 1}
        self.tokens: Final = [
            Token(i, encoding.decode_single_token_bytes(i), spellings.get(i))
            for i in sorted(known - left_out)
            if not encoding.is_special_id(i)
        ]


def can_be_in_text(data: bytes) -> bool:
    r"""Whether some UTF-8 text holds these bytes one after the other.

    >>> can_be_in_text(b"\x82\xac a\xf0\x9f"), can_be_in_text(b"a\x82"), can_be_in_text(b"\xff")
    (True, False, False)
    """
    if data[-2:-1] == b"\xed" and data[-1] >= 0xA0:
        return False  # half a surrogate, which the decoder waits for the rest of
    start = 0
    while start < min(3, len(data)) and data[start] in _CONTINUATION:
        start += 1
    try:
        # Not the end: a character may be cut off there.
        _UTF8().decode(data[start:], final=False)
    except UnicodeDecodeError:
        return False
    return True
