"""Describe single tokens: their kind, their bytes, and the merges that produce them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import UnknownToken, UnknownTokenId
from bytepair_engine.pipeline.definition import Merges, Model, Ranks, Scores
from bytepair_engine.pipeline.derivation import Derivations, Part

#: "byte" is the token of a single byte, "unknown" that of text without a token.
Kind = Literal["token", "byte", "special", "unknown"]
OrderName = Literal["rank", "priority", "score"]


@dataclass(frozen=True, slots=True)
class Description:
    """The description of a token.

    Attributes:
        id: The id.
        data: The bytes that it decodes to in the middle of a text.
        kind: The kind of token.
        parts: The result of merging its units: one part with its tree, or several if merging does
            not produce the token; [] if it was not merged.
    """

    id: int
    data: bytes
    kind: Kind
    parts: Sequence[Part]


class Describer:
    """Describes the tokens of one encoding. Thread-safe.

    Attributes:
        encoding: The encoding.
        model: The model of the encoding.
        order_name: The meaning of `Part.order`; a score is negated there.
    """

    def __init__(self, encoding: Encoding) -> None:
        """Prepare the derivations of an encoding."""
        self.encoding: Final = encoding
        pipeline = encoding.pipeline
        if pipeline is not None:
            self.model = pipeline.model
        else:
            tokens = _RankTable(encoding)
            self.model = Model(tokens=tokens, rule=Ranks(), units="bytes", whole_first=True)
        self._derivations: Final = Derivations(self.model)
        self._byte_ids: Final = set(self.model.byte_tokens.values())
        self._spellings: Final[Mapping[int, bytes] | None] = (
            None if pipeline is None else {i: token for token, i in pipeline.model.tokens.items()}
        )
        names: dict[type, OrderName] = {Merges: "priority", Scores: "score"}
        self.order_name: Final = names.get(type(self.model.rule), "rank")

    def kind(self, token_id: int) -> Kind:
        """Return the kind of a token; "token" for an unknown id."""
        if self.encoding.is_special_id(token_id):
            return "special"
        if token_id == self.model.unknown:
            return "unknown"
        is_byte = self.model.units == "bytes" and len(self._spelling(token_id) or b"") == 1
        return "byte" if is_byte or token_id in self._byte_ids else "token"

    def describe(self, token_id: int, *, max_bytes: int | None = None) -> Description:
        """Describe one token.

        Args:
            token_id: The id.
            max_bytes: Maximum length of a token to derive; the `parts` of a longer one are []. None
                for no limit.
        Raises:
            UnknownTokenId: No token has this id.
        """
        data = self.encoding.decode_single_token_bytes(token_id)
        kind, spelling = self.kind(token_id), self._spelling(token_id)
        if spelling is None or kind != "token":
            return Description(token_id, data, kind, [])
        if max_bytes is not None and len(spelling) > max_bytes:
            return Description(token_id, data, kind, [])
        return Description(token_id, data, kind, self._derivations.of(spelling))

    def _spelling(self, token_id: int) -> bytes | None:
        if self._spellings is not None:
            return self._spellings.get(token_id)
        try:
            return self.encoding.decode_single_token_bytes(token_id)
        except UnknownTokenId:
            return None


class _RankTable(Mapping[bytes, int]):
    """A view of the ordinary tokens of a rank table. A copy would take longer than a derivation,
    and tens of megabytes."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding: Final = encoding

    def __getitem__(self, token: bytes) -> int:
        try:
            token_id = self._encoding.encode_single_token(token)
        except UnknownToken:
            raise KeyError from None
        if self._encoding.is_special_id(token_id):
            raise KeyError
        return token_id

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._encoding.token_byte_values())

    def __len__(self) -> int:
        return len(self._encoding.token_byte_values())
