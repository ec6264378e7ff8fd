"""What one token is: its kind, what it decodes to, and the merges that make it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import UnknownToken, UnknownTokenId
from bytepair_engine.pipeline.definition import Merges, Model, Ranks, Scores
from bytepair_engine.pipeline.derivation import Derivations, Part

#: "byte" stands for one byte, "unknown" for text that cannot be spelled.
Kind = Literal["token", "byte", "special", "unknown"]
OrderName = Literal["rank", "priority", "score"]


@dataclass(frozen=True, slots=True)
class Description:
    """One token.

    Attributes:
        id: Its id.
        data: What it decodes to amid a text.
        kind: What kind of token it is.
        parts: What merging leaves of its units: one part, with its tree, or several where merging
            does not make it; [] where it is not merged at all.
    """

    id: int
    data: bytes
    kind: Kind
    parts: Sequence[Part]


class Describer:
    """Describes the tokens of one encoding. Thread-safe.

    Attributes:
        encoding: The encoding.
        model: Its model.
        order_name: What `Part.order` is; of a score it is minus that.
    """

    def __init__(self, encoding: Encoding) -> None:
        """Prepare."""
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
        """What kind of token an id is; "token" for an id of none."""
        if self.encoding.is_special_id(token_id):
            return "special"
        if token_id == self.model.unknown:
            return "unknown"
        is_byte = self.model.units == "bytes" and len(self._spelling(token_id) or b"") == 1
        return "byte" if is_byte or token_id in self._byte_ids else "token"

    def describe(self, token_id: int, *, max_bytes: int | None = None) -> Description:
        """Describe one token.

        Args:
            token_id: Its id.
            max_bytes: Longer tokens are not merged: their `parts` are []; None for no limit.
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
    """The ordinary tokens of a rank table, which the encoding looks up: a copy of them would take
    longer than a derivation, and tens of megabytes."""

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
