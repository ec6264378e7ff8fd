"""tiktoken's `Encoding` on this engine: the same methods, errors and handling of surrogates."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeVar

from bytepair_engine import encoding as engine
from bytepair_engine.backends.cores import resolve
from bytepair_engine.backends.reference import merge
from bytepair_engine.building import build_encoding
from bytepair_engine.errors import (
    InvalidUnicode,
    SpecialTokenFound,
    UnknownToken,
    UnknownTokenId,
)
from bytepair_engine.extending import ordinary_tokens
from bytepair_engine.resources import Resources
from bytepair_engine.tiktoken import unstable
from bytepair_engine.vocabulary.file import rejection
from bytepair_engine.vocabulary.rank_table import TableFault

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: A line feed, escaped or not, after what another backslash escapes.
_LINE_FEED: Final = re.compile(r"(\\[^\n])|\\?\n")

_T = TypeVar("_T")
Allowed = Literal["all"] | AbstractSet[str]
Disallowed = Literal["all"] | Collection[str]


class Encoding:
    """An encoding with tiktoken's interface."""

    def __init__(
        self,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: dict[bytes, int],
        special_tokens: dict[str, int],
        explicit_n_vocab: int | None = None,
    ) -> None:
        """Create an encoding from ranks.

        Args:
            name: The name.
            pat_str: The split pattern.
            mergeable_ranks: Bytes to rank, including every single byte.
            special_tokens: Spelling to id.
            explicit_n_vocab: The expected number of tokens, without gaps between ids; None for
                no check.
        Raises:
            VocabularyError: An argument is invalid (a ValueError).
            AssertionError: `explicit_n_vocab` is not the number of tokens, or an id is unused.
        """
        core = resolve(None)
        source = f"mergeable_ranks of {name!r}"
        try:
            table = core.from_items(mergeable_ranks.items())
        except TableFault as fault:
            raise rejection(fault, source) from None
        encoding = build_encoding(
            core,
            table,
            name=name,
            # In a pattern of the engine, a line feed separates splits.
            pattern=_LINE_FEED.sub(lambda found: found[1] or r"\n", pat_str),
            special_tokens=special_tokens,
            source="tiktoken.Encoding",
            table_source=source,
            resources=Resources(),
        )
        if explicit_n_vocab:
            assert len(mergeable_ranks) + len(special_tokens) == explicit_n_vocab
            assert encoding.max_token_id == explicit_n_vocab - 1
        self._set(name, encoding, mergeable_ranks)

    @classmethod
    def of(cls, name: str, encoding: engine.Encoding) -> Encoding:
        """Wrap an encoding of this engine in tiktoken's interface."""
        self = cls.__new__(cls)
        self._set(name, encoding, None)
        return self

    def _set(self, name: str, encoding: engine.Encoding, ranks: dict[bytes, int] | None) -> None:
        self.name = name
        self.max_token_value = encoding.max_token_id
        self._encoding = encoding
        self._pat_str = encoding.pattern
        self._special_tokens = dict(encoding.special_tokens)
        self._ranks = ranks

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    def __reduce__(self) -> tuple[Callable[..., Encoding], tuple[Any, ...]]:
        from bytepair_engine.tiktoken import registry

        if registry.ENCODINGS.get(self.name) is self:
            return registry.get_encoding, (self.name,)
        parts: Any = {
            "pat_str": self._pat_str,
            "mergeable_ranks": self._mergeable_ranks,
            "special_tokens": self._special_tokens,
        }
        return partial(type(self), **parts), (self.name,)

    # Text to ids

    def encode(
        self,
        text: str,
        *,
        allowed_special: Allowed = frozenset(),
        disallowed_special: Disallowed = "all",
    ) -> list[int]:
        """Encode text. A surrogate pair becomes its character, a lone surrogate U+FFFD.

        Raises:
            ValueError: The text contains a disallowed special token.
        """
        return self._on_text(
            text,
            lambda text: self._encoding.encode(
                text, allowed_special=allowed_special, disallowed_special=disallowed_special
            ),
        )

    def encode_ordinary(self, text: str) -> list[int]:
        """Encode text, treating all special tokens in it as ordinary text."""
        return self._on_text(text, self._encoding.encode_ordinary)

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: Allowed = frozenset(),
        disallowed_special: Disallowed = "all",
    ) -> npt.NDArray[np.uint32]:
        """Encode into a read-only numpy array, which shares the engine's memory.

        Raises:
            UnicodeEncodeError: The text holds a surrogate, as in tiktoken.
            ValueError: The text contains a disallowed special token.
        """
        import numpy as np

        try:
            ids = self._encoding.encode_array(
                text, allowed_special=allowed_special, disallowed_special=disallowed_special
            )
        except SpecialTokenFound as found:
            raise_disallowed_special_token(found.token)
        except InvalidUnicode:
            text.encode()  # raises UnicodeEncodeError
            raise
        return np.frombuffer(memoryview(ids).toreadonly(), dtype=np.uint32)

    def encode_batch(
        self,
        text: list[str],
        *,
        num_threads: int = 8,
        allowed_special: Allowed = frozenset(),
        disallowed_special: Disallowed = "all",
    ) -> list[list[int]]:
        """Encode each text as `encode` does. The engine uses its own threads for a large batch."""
        _check_threads(num_threads)
        texts = list(text)
        options: Any = {
            "allowed_special": allowed_special,
            "disallowed_special": disallowed_special,
        }
        try:
            return self._encoding.encode_batch(texts, **options)
        except (InvalidUnicode, SpecialTokenFound):
            return [self.encode(one, **options) for one in texts]

    def encode_ordinary_batch(self, text: list[str], *, num_threads: int = 8) -> list[list[int]]:
        """Encode each text as `encode_ordinary` does."""
        return self.encode_batch(text, num_threads=num_threads, disallowed_special=())

    def encode_with_unstable(
        self,
        text: str,
        *,
        allowed_special: Allowed = frozenset(),
        disallowed_special: Disallowed = "all",
    ) -> tuple[list[int], list[list[int]]]:
        """Return the ids that no continuation of the text changes, and the possible next ones.

        Raises:
            UnicodeEncodeError: The text holds a surrogate, as in tiktoken.
            ValueError: The text contains a disallowed special token.
        """
        ids = self.encode(
            text, allowed_special=allowed_special, disallowed_special=disallowed_special
        )
        text.encode()
        names = self.special_tokens_set if allowed_special == "all" else set(allowed_special)
        return unstable.completions(self, text, ids, names & self.special_tokens_set)

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """Return the id of a token, ordinary or special.

        Raises:
            KeyError: It is not exactly one token.
        """
        token = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
        try:
            return self._encoding.encode_single_token(token)
        except UnknownToken:
            raise KeyError(token) from None

    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]:
        piece = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
        whole = self._mergeable_ranks.get(piece)
        if whole is not None:
            return [whole]
        return [self._mergeable_ranks[token] for token in merge(piece, self._mergeable_ranks)]

    def _encode_only_native_bpe(self, text: str) -> list[int]:
        return self.encode_ordinary(text)

    def _encode_bytes(self, text: bytes) -> list[int]:
        return unstable.encode_bytes(self, text)

    # Ids to text

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """Return the joined bytes of the tokens.

        Raises:
            KeyError: No token has one of the ids.
            OverflowError: An id is negative, or 2**32 or more.
        """
        return self._on_ids(lambda: self._encoding.decode_bytes(tokens))

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """Decode ids; `errors` is an error handler of `bytes.decode`."""
        return self.decode_bytes(tokens).decode(errors=errors)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """Return the bytes of one token.

        Raises:
            KeyError: No token has the id.
        """
        return self._on_ids(lambda: self._encoding.decode_single_token_bytes(token))

    def decode_tokens_bytes(self, tokens: Sequence[int]) -> list[bytes]:
        """Return the bytes of each token."""
        return [self.decode_single_token_bytes(token) for token in tokens]

    def decode_with_offsets(self, tokens: Sequence[int]) -> tuple[str, list[int]]:
        """Return the text, and for each token the index of the first character that it is part of.

        Raises:
            KeyError: No token has one of the ids.
            UnicodeDecodeError: The bytes are not UTF-8.
        """
        parts = self.decode_tokens_bytes(tokens)
        text = b"".join(parts).decode()
        starts = [sum(byte & 0xC0 != 0x80 for byte in part) for part in parts]
        before = accumulate(starts, initial=0)
        return text, [
            count - (part[0] & 0xC0 == 0x80) for part, count in zip(parts, before, strict=False)
        ]

    def decode_batch(
        self, batch: Sequence[Sequence[int]], *, errors: str = "replace", num_threads: int = 8
    ) -> list[str]:
        """Decode each list as `decode` does."""
        _check_threads(num_threads)
        return [self.decode(tokens, errors) for tokens in batch]

    def decode_bytes_batch(
        self, batch: Sequence[Sequence[int]], *, num_threads: int = 8
    ) -> list[bytes]:
        """Decode each list as `decode_bytes` does."""
        _check_threads(num_threads)
        return [self.decode_bytes(tokens) for tokens in batch]

    # The vocabulary

    def token_byte_values(self) -> list[bytes]:
        """Return the bytes of every ordinary token, sorted."""
        return self._encoding.token_byte_values()

    @property
    def eot_token(self) -> int:
        return self._special_tokens["<|endoftext|>"]

    @property
    def special_tokens_set(self) -> set[str]:
        return set(self._special_tokens)

    def is_special_token(self, token: int) -> bool:
        assert isinstance(token, int)
        return self._encoding.is_special_id(token)

    @property
    def n_vocab(self) -> int:
        return self.max_token_value + 1

    @property
    def _mergeable_ranks(self) -> dict[bytes, int]:
        # No cached_property: on Python 3.11 it holds a lock, which a fork meanwhile leaves locked.
        if self._ranks is None:
            self._ranks = dict(ordinary_tokens(self._encoding))
        return self._ranks

    @staticmethod
    def _on_text(text: str, encode: Callable[[str], _T]) -> _T:
        try:
            try:
                return encode(text)
            except InvalidUnicode:
                return encode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        except SpecialTokenFound as found:
            raise_disallowed_special_token(found.token)

    @staticmethod
    def _on_ids(decode: Callable[[], _T]) -> _T:
        try:
            return decode()
        except UnknownTokenId as error:
            problem = f"no token has id {error.token_id}"
            raise (KeyError if 0 <= error.token_id < 2**32 else OverflowError)(problem) from None


def _check_threads(num_threads: int) -> None:
    if num_threads <= 0:
        raise ValueError("num_threads must be at least 1")


def raise_disallowed_special_token(token: str) -> NoReturn:
    """Raise tiktoken's error for a disallowed special token."""
    raise ValueError(
        f"the text contains the disallowed special token {token!r}: allow it by "
        f"allowed_special={{{token!r}}}, or encode it as text by disallowed_special=()"
    ) from None
