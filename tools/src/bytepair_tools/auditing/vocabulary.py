"""The tokens of an encoding for an audit."""

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
    """An ordinary token: not special, not a single byte, and not the unknown token.

    Attributes:
        id: The id.
        data: The bytes that it decodes to in the middle of a text.
        spelling: The spelling in the model's vocabulary; None if the token is only decoded.
    """

    id: int
    data: bytes
    spelling: bytes | None

    @property
    def text(self) -> str | None:
        """The decoded text; None if it is not complete UTF-8."""
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            return None


class Vocabulary:
    """The tokens of an encoding and their derivations.

    Attributes:
        encoding: The encoding.
        tokens: The ordinary tokens in order of ids.
        derivations: Their derivations by merges.
        always_found: Id to spelling of the added tokens that are recognised in every text, even
            if a request does not allow them.
    """

    def __init__(self, encoding: Encoding) -> None:
        """Collect the tokens of an encoding."""
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
    r"""Whether some UTF-8 text contains these bytes in sequence.

    >>> can_be_in_text(b"\x82\xac a\xf0\x9f"), can_be_in_text(b"a\x82"), can_be_in_text(b"\xff")
    (True, False, False)
    """
    if data[-2:-1] == b"\xed" and data[-1] >= 0xA0:
        return False  # half a surrogate, which the decoder holds back
    start = 0
    while start < min(3, len(data)) and data[start] in _CONTINUATION:
        start += 1
    try:
        # `final` is False because the bytes may end within a character.
        _UTF8().decode(data[start:], final=False)
    except UnicodeDecodeError:
        return False
    return True
