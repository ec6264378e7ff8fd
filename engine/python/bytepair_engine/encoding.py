"""The public `Encoding`: one loaded vocabulary and its methods."""

from __future__ import annotations

import sys
import uuid
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from weakref import WeakValueDictionary

from bytepair_engine.backends.interface import Backend, DecodeErrors, Fits, OffsetUnit, Text
from bytepair_engine.backends.text_length import text_length
from bytepair_engine.backends.varint import pack
from bytepair_engine.context.methods import ContextMethods
from bytepair_engine.errors import InvalidOption, UnknownToken, UnknownTokenId
from bytepair_engine.pipeline.definition import NO_TEMPLATE, Decoder, Pipeline, Template
from bytepair_engine.resources import Resources
from bytepair_engine.vocabulary.fingerprint import with_template
from bytepair_engine.vocabulary.special_sets import SpecialSets, SpecialTokens

#: Every encoding of this process and of the one that it was forked from, by its identity.
LIVE: Final[WeakValueDictionary[bytes, Encoding]] = WeakValueDictionary()


@dataclass(frozen=True, slots=True, weakref_slot=True, repr=False, eq=False)
class Encoding(ContextMethods):
    """Text to token ids and back, for one vocabulary. Immutable and safe to share between
    threads; the native backend works without the interpreter's lock. `get_encoding` and
    `load_encoding` make them. They pickle, and cost next to nothing in forked workers.

    Two options of the encoding methods say what a special token that `text` contains becomes,
    with the meaning that tiktoken gives them:

    - `allowed_special`: the special tokens that become their id; "all" for every one. Of
      several that match at one place the longest wins.
    - `disallowed_special`: the strings whose presence is an error; "all" for every special
      token that is not allowed. It is looked for in the whole text before anything else.

    A special token in neither is ordinary text. The defaults allow none; those of encoding disallow
    all, and those of counting none, so that counting never fails on what a text contains.

    A third one, `add_special_tokens`, puts the tokens of `template` around the ids of each text,
    as the option of that name does in `tokenizers`. The caller asks for them and not the text, so
    they need not be in `allowed_special`: text that contains them gives none.

    Attributes:
        name: The canonical name, or the one that the declaration gives.
        source: "builtin", "builtin:" and the built-in encoding that it extends, or "file:"
            and a path.
        pattern: The split pattern: a regular expression, or several, one for each line.
        special_tokens: Spelling to id.
        max_token_id: The largest id, special tokens included.
        n_vocab: `max_token_id` + 1; not every id below it need exist.
        fingerprint: "sha256:" and 64 hexadecimal digits; see `fingerprint.fingerprint`.
        backend: "native" or "reference".
        resources: What it may take of the machine.
        splitter: The hand-written scanner that runs the pattern, or "regex".
        pipeline: What it is where a table, a pattern and special tokens do not say it; else None.
        template: The ids that `add_special_tokens` puts before and after a text; none where the
            file does not say it, as only a tokenizer.json can.
        template_names: The names of these tokens, those before a text first: of one that is not
            special, its text.
        fits: Finds how much text fits, for `context.measure`; None where only the definition can.
    """

    name: str
    source: str
    pattern: str
    special_tokens: Mapping[str, int]
    max_token_id: int
    resources: Resources
    _backend: Backend[Any]
    _special_sets: SpecialSets
    _special_ids: frozenset[int]
    pipeline: Pipeline | None = None
    template: Template = NO_TEMPLATE
    template_names: tuple[str, ...] = ()
    fits: Fits | None = field(init=False, default=None)
    _identity: bytes = field(default_factory=lambda: uuid.uuid4().bytes)

    def __post_init__(self) -> None:
        LIVE[self._identity] = self
        published = self.pipeline is None and self.splitter != "regex"
        if published and self.backend == "native":
            object.__setattr__(self, "fits", self._backend)

    def __reduce__(self) -> tuple[Callable[..., Encoding], tuple[Any, ...]]:
        from bytepair_engine.pickling import reduced

        return reduced(self)

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r} ({self.backend})>"

    @property
    def n_vocab(self) -> int:
        return self.max_token_id + 1

    @property
    def fingerprint(self) -> str:
        plain = self._backend.fingerprint
        # That of a pipeline says it already.
        return plain if self.pipeline is not None else with_template(plain, self.template)

    @property
    def backend(self) -> Literal["native", "reference"]:
        return self._backend.name

    @property
    def splitter(self) -> str:
        return self._backend.splitter

    @property
    def decoder(self) -> Decoder | None:
        """What tokens' bytes are where that depends on their place in a sequence; None where it
        does not."""
        return (
            None
            if self.pipeline is None or self.pipeline.decoder.is_plain
            else self.pipeline.decoder
        )

    # Text to ids

    def encode(
        self,
        text: str,
        *,
        allowed_special: SpecialTokens = frozenset(),
        disallowed_special: SpecialTokens = "all",
        add_special_tokens: bool = False,
    ) -> list[int]:
        """Encode `text` into token ids.

        Args:
            text: Any text without lone surrogates.
            allowed_special: See the class.
            disallowed_special: See the class.
            add_special_tokens: See the class.
        Returns:
            Ids in text order, each in [0, n_vocab); [] for "", except for the template.
        Raises:
            SpecialTokenFound: `text` holds a disallowed special token.
            InvalidUnicode: `text` holds a lone surrogate.

        >>> from bytepair_engine.toy import toy
        >>> toy().encode("aab")
        [258]
        """
        sets = self._special_sets.resolve(allowed_special, disallowed_special)
        ids = self._backend.encode(text, *sets)
        return self.template.around(ids) if add_special_tokens else ids

    def encode_ordinary(self, text: str) -> list[int]:
        """As `encode` with every special token that `text` contains as ordinary text."""
        none = self._special_sets.none
        return self._backend.encode(text, none, none)

    def encode_array(
        self,
        text: str,
        *,
        allowed_special: SpecialTokens = frozenset(),
        disallowed_special: SpecialTokens = "all",
        add_special_tokens: bool = False,
    ) -> array[int]:
        """As `encode`, as one array of unsigned 32-bit integers (typecode "I"), which costs
        far less than a list: `numpy.frombuffer` and `memoryview` take it without a copy."""
        sets = self._special_sets.resolve(allowed_special, disallowed_special)
        ids = self._backend.encode_array(text, *sets)
        return array("I", self.template.around(ids)) if add_special_tokens else ids

    def encode_packed(
        self,
        text: Text,
        *,
        allowed_special: SpecialTokens = frozenset(),
        disallowed_special: SpecialTokens = "all",
        add_special_tokens: bool = False,
    ) -> bytes:
        """As `encode`, as the varints that a packed `repeated uint32` field holds on the
        wire of Protocol Buffers; b"" for "". The text may come as its UTF-8, in bytes, which spares
        Python the text: bytes that are not UTF-8 are InvalidUnicode."""
        sets = self._special_sets.resolve(allowed_special, disallowed_special)
        packed = self._backend.encode_packed(text, *sets)
        if not add_special_tokens:
            return packed
        return pack(self.template.before) + packed + pack(self.template.after)

    def encode_with_offsets(
        self,
        text: str,
        *,
        unit: OffsetUnit = "code_point",
        allowed_special: SpecialTokens = frozenset(),
        disallowed_special: SpecialTokens = "all",
        add_special_tokens: bool = False,
    ) -> tuple[list[int], list[int]]:
        """Encode `text`, and say where in it each token starts.

        Args:
            text: Any text without lone surrogates.
            unit: "code_point" (indices of a Python str), "byte" (of its UTF-8) or "utf16".
            allowed_special: See the class.
            disallowed_special: See the class.
            add_special_tokens: See the class.
        Returns:
            Ids, and as many offsets, which never decrease and begin with 0,
            unless the vocabulary drops what the text begins with. In bytes they are
            exact; in the other units a token that starts inside a character has the offset
            of that character. What the template puts before the text has the offset 0, what
            comes after it the length of the text. ([], []) for "", except for the template.
        Raises:
            SpecialTokenFound: `text` holds a disallowed special token.
            InvalidUnicode: `text` holds a lone surrogate.
            InvalidOption: `unit` is none of the three.

        >>> from bytepair_engine.toy import toy
        >>> toy().encode_with_offsets("éaa", unit="code_point")
        ([195, 169, 256], [0, 0, 1])
        """
        if unit not in ("byte", "code_point", "utf16"):
            raise InvalidOption("unit", 'must be "byte", "code_point" or "utf16"')
        sets = self._special_sets.resolve(allowed_special, disallowed_special)
        ids, offsets = self._backend.encode_with_offsets(text, unit, *sets)
        if not add_special_tokens:
            return ids, offsets
        before, after = self.template.before, self.template.after
        end = text_length(text, unit) if after else 0
        return self.template.around(ids), [0] * len(before) + offsets + [end] * len(after)

    def encode_batch(
        self,
        texts: Sequence[str],
        *,
        allowed_special: SpecialTokens = frozenset(),
        disallowed_special: SpecialTokens = "all",
        add_special_tokens: bool = False,
    ) -> list[list[int]]:
        """As `encode` for each text; [] for none. The first text that fails fails all."""
        sets = self._special_sets.resolve(allowed_special, disallowed_special)
        found = self._backend.encode_batch(texts, *sets)
        return [self.template.around(ids) for ids in found] if add_special_tokens else found

    def count(
        self,
        text: Text,
        *,
        limit: int | None = None,
        allowed_special: SpecialTokens = frozenset(),
        disallowed_special: SpecialTokens = (),
        add_special_tokens: bool = False,
    ) -> int:
        """Count the ids that `encode` gives by the same options, without building them.

        Args:
            text: Any text without lone surrogates, or its UTF-8 as bytes, which spares Python the
                text.
            limit: If given, at least 0: counting may stop once there are more tokens.
            allowed_special: See the class.
            disallowed_special: See the class.
            add_special_tokens: See the class.
        Returns:
            The exact count, or `limit` + 1 where there are more than `limit`; 0 for "", except for
            the template.
        Raises:
            SpecialTokenFound: `text` holds a disallowed special token.
            InvalidUnicode: `text` holds a lone surrogate, or bytes that are not UTF-8.
            InvalidOption: `limit` is negative.
        """
        sets = self._special_sets.resolve(allowed_special, disallowed_special)
        limit = _checked_limit(limit)
        if not add_special_tokens:
            return self._backend.count(text, *sets, limit)
        return self._with_template(self._backend.count(text, *sets, self._rest(limit)), limit)

    def count_batch(
        self,
        texts: Sequence[Text],
        *,
        limit: int | None = None,
        allowed_special: SpecialTokens = frozenset(),
        disallowed_special: SpecialTokens = (),
        add_special_tokens: bool = False,
    ) -> list[int]:
        """As `count` for each text; [] for none. The first text that fails fails all."""
        sets = self._special_sets.resolve(allowed_special, disallowed_special)
        limit = _checked_limit(limit)
        if not add_special_tokens:
            return self._backend.count_batch(texts, *sets, limit)
        counts = self._backend.count_batch(texts, *sets, self._rest(limit))
        return [self._with_template(count, limit) for count in counts]

    def _rest(self, limit: int | None) -> int | None:
        """How many tokens a text may have within `limit` beside those of the template."""
        return None if limit is None else max(0, limit - len(self.template))

    def _with_template(self, count: int, limit: int | None) -> int:
        total = count + len(self.template)
        return total if limit is None else min(total, limit + 1)

    def contains_special(self, text: Text, *, allowed_special: SpecialTokens = frozenset()) -> bool:
        """Whether a text contains a special token that is not allowed: `encode` would encode it as
        text or raise, by `disallowed_special`. The text is not encoded.

        Args:
            text: Any text, or UTF-8 that may be cut within a character.
            allowed_special: See the class.
        Returns:
            False for "".
        """
        data = text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
        _, others = self._special_sets.resolve(allowed_special, "all")
        found: bool = others.is_in(data)
        return found

    # Ids to text

    def decode(self, ids: Sequence[int], *, errors: DecodeErrors = "replace") -> str:
        """Decode ids into text; special ids give their spelling.

        Args:
            ids: Token ids; a list, an array or any sequence of integers.
            errors: What bytes that are not UTF-8 become: "replace" gives one U+FFFD for
                each maximal invalid sequence, as Python and the WHATWG do; "strict" raises.
        Returns:
            The text; "" for no ids.
        Raises:
            UnknownTokenId: No token has one of the ids.
            InvalidUnicode: The bytes are not UTF-8, and `errors` is "strict".
            InvalidOption: `errors` is neither.
        """
        if errors not in ("replace", "strict"):
            raise InvalidOption("errors", 'must be "replace" or "strict"')
        return self._backend.decode(ids, errors)

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Join the bytes of the tokens, which need not be UTF-8; b"" for no ids.

        Raises:
            UnknownTokenId: No token has one of the ids.
        """
        return self._backend.decode_bytes(ids)

    # Single tokens

    def encode_single_token(self, token: str | bytes) -> int:
        """The id of exactly one token, ordinary or special.

        This asks the vocabulary, not text: never give it what a user wrote.

        Raises:
            UnknownToken: It is not one token.
        """
        # A lone surrogate is in no token.
        data = token.encode(errors="replace") if isinstance(token, str) else token
        if isinstance(token, str) and data.decode() != token:
            raise UnknownToken(len(data))
        token_id = self._backend.token_id(data)
        if token_id is None:
            spelling = token if isinstance(token, str) else data.decode(errors="surrogateescape")
            token_id = self.special_tokens.get(spelling)
        if token_id is None:
            raise UnknownToken(len(data))
        return token_id

    def decode_single_token_bytes(self, token_id: int) -> bytes:
        """The bytes of one token, ordinary or special.

        Raises:
            UnknownTokenId: No token has this id.
        """
        token = self._backend.token_bytes(token_id)
        if token is None:
            raise UnknownTokenId(token_id)
        return token

    def token_byte_values(self) -> list[bytes]:
        """The bytes of every ordinary token, sorted."""
        return self._backend.token_byte_values()

    def is_special_id(self, token_id: int) -> bool:
        """Whether a special token has this id."""
        return token_id in self._special_ids

    def without_special(self, ids: Sequence[int]) -> list[int]:
        """The ids that are not those of special tokens, in order."""
        return [token_id for token_id in ids if token_id not in self._special_ids]


def _checked_limit(limit: int | None) -> int | None:
    if limit is not None and limit < 0:
        raise InvalidOption("limit", f"must be 0 or more, and is {limit}")
    # No text is so long, and no word of the core.
    return None if limit is not None and limit > sys.maxsize else limit
