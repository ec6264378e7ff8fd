"""The public `Encoding`: a loaded vocabulary and its methods."""

from __future__ import annotations

import uuid
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from weakref import WeakValueDictionary

from bytepair_engine.backends.interface import Backend, DecodeErrors, Fits, OffsetUnit, Text
from bytepair_engine.backends.text_length import text_length
from bytepair_engine.backends.varint import pack
from bytepair_engine.context.methods import ContextMethods
from bytepair_engine.errors import (
    InvalidOption,
    InvalidUnicode,
    SpecialTokenFound,
    check_least,
    check_type,
    wrong_type,
)
from bytepair_engine.pipeline.definition import NO_TEMPLATE, Decoder, Pipeline, Template
from bytepair_engine.resources import Resources
from bytepair_engine.single_tokens import TokenMethods
from bytepair_engine.vocabulary.fingerprint import with_template
from bytepair_engine.vocabulary.special_sets import SpecialSets, SpecialTokens

#: Every encoding of this process, including those inherited by a fork, by identity.
LIVE: Final[WeakValueDictionary[bytes, Encoding]] = WeakValueDictionary()

#: The errors of a batch that belong to one text.
_OF_ONE_TEXT: Final = (InvalidUnicode, SpecialTokenFound, TypeError)


@dataclass(frozen=True, slots=True, weakref_slot=True, repr=False, eq=False)
class Encoding(ContextMethods, TokenMethods):
    """Converts text to token ids and back, for one vocabulary.

    Encodings are created by `get_encoding` and `load_encoding`. They are immutable and
    thread-safe; the native backend releases the GIL. They can be pickled, at almost no cost in
    forked workers.

    Two options of the encoding methods decide what a special token in `text` becomes, as in
    tiktoken:

    - `allowed_special`: the special tokens that become their id; "all" for every one. The longest
      of several that match at the same position wins. A name that is not a special token of this
      encoding is ignored.
    - `disallowed_special`: the strings that are an error, whether they are special tokens or not;
      "all" for every special token that is not allowed. The whole text is searched for them first.

    A special token in neither is ordinary text. By default none is allowed. Encoding disallows all
    by default; counting disallows none, so that counting never fails on the content of a text.

    A third option, `add_special_tokens`, puts the tokens of `template` around the ids of each
    text, as in `tokenizers`. They need not be in `allowed_special`, because the caller requests
    them: their spellings in the text remain ordinary text.

    Attributes:
        name: The canonical name, or the name in the declaration.
        source: "builtin"; "builtin:" and the name of the extended built-in encoding; or "file:"
            and a path.
        pattern: The split pattern: one regular expression per line.
        special_tokens: Spelling to id.
        max_token_id: The largest id, including special tokens.
        n_vocab: `max_token_id` + 1; some ids below it may be unused.
        fingerprint: "sha256:" and 64 hexadecimal digits; see `fingerprint.fingerprint`.
        backend: "native" or "reference".
        resources: Limits of memory and threads.
        splitter: The hand-written scanner that runs the pattern, or "regex".
        pipeline: The pipeline; None if the encoding is a rank table.
        template: The ids that `add_special_tokens` puts before and after a text; empty if the
            file defines none. Only a tokenizer.json can.
        template_names: The names of these tokens in order; the text of a token that is not
            special.
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
        if self.pipeline is None and self.splitter != "regex" and self.backend == "native":
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
        # The fingerprint of a pipeline includes the template.
        return plain if self.pipeline is not None else with_template(plain, self.template)

    @property
    def backend(self) -> Literal["native", "reference"]:
        return self._backend.name

    @property
    def splitter(self) -> str:
        return self._backend.splitter

    @property
    def decoder(self) -> Decoder | None:
        """The decoder if the bytes of a token depend on its position; else None."""
        pipeline = self.pipeline
        return None if pipeline is None or pipeline.decoder.is_plain else pipeline.decoder

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
            allowed_special: See the class. A name that is not a special token is ignored.
            disallowed_special: See the class.
            add_special_tokens: See the class.
        Returns:
            Ids in text order, each in [0, n_vocab); [] for "", apart from the template.
        Raises:
            SpecialTokenFound: `text` holds a disallowed special token.
            InvalidUnicode: `text` holds a lone surrogate.

        >>> from bytepair_engine.toy import toy
        >>> toy().encode("aab")
        [258]
        """
        # Here and below not `*sets`, which costs as much as encoding a short text.
        allowed, disallowed = self._special_sets.resolve(allowed_special, disallowed_special)
        ids = self._backend.encode(text, allowed, disallowed)
        return self.template.around(ids) if add_special_tokens else ids

    def encode_ordinary(self, text: str) -> list[int]:
        """Encode `text`, treating all special tokens in it as ordinary text."""
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
        """Encode into an array of unsigned 32-bit integers (typecode "I").

        An array is far cheaper than a list; `numpy.frombuffer` and `memoryview` share it without
        a copy. Options and errors are those of `encode`.
        """
        allowed, disallowed = self._special_sets.resolve(allowed_special, disallowed_special)
        ids = self._backend.encode_array(text, allowed, disallowed)
        return array("I", self.template.around(ids)) if add_special_tokens else ids

    def encode_packed(
        self,
        text: Text,
        *,
        allowed_special: SpecialTokens = frozenset(),
        disallowed_special: SpecialTokens = "all",
        add_special_tokens: bool = False,
    ) -> bytes:
        """Encode into the varints of a packed `repeated uint32` field of Protocol Buffers.

        `text` may also be UTF-8 bytes, which saves the conversion to `str`; bytes that are not
        UTF-8 raise InvalidUnicode. Options and errors are those of `encode`; b"" for "".
        """
        allowed, disallowed = self._special_sets.resolve(allowed_special, disallowed_special)
        packed = self._backend.encode_packed(text, allowed, disallowed)
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
        """Encode `text`, and return the offset of each token.

        Args:
            text: Any text without lone surrogates.
            unit: "code_point" (indices of a Python str), "byte" (of its UTF-8) or "utf16".
            allowed_special: See the class. A name that is not a special token is ignored.
            disallowed_special: See the class.
            add_special_tokens: See the class.
        Returns:
            Ids, and the start of each token in `text`. Offsets never decrease. The first is 0,
            unless the vocabulary drops the start of the text. Byte offsets are exact; in the
            other units, a token that starts inside a character has the offset of that character.
            Template tokens before the text have the offset 0, those after it the length of the
            text. ([], []) for "", apart from the template.
        Raises:
            SpecialTokenFound: `text` holds a disallowed special token.
            InvalidUnicode: `text` holds a lone surrogate.
            InvalidOption: `unit` is not one of the three.

        >>> from bytepair_engine.toy import toy
        >>> toy().encode_with_offsets("éaa", unit="code_point")
        ([195, 169, 256], [0, 0, 1])
        """
        if unit not in ("byte", "code_point", "utf16"):
            raise InvalidOption("unit", 'must be "byte", "code_point" or "utf16"')
        allowed, disallowed = self._special_sets.resolve(allowed_special, disallowed_special)
        ids, offsets = self._backend.encode_with_offsets(text, unit, allowed, disallowed)
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
        """Encode each text as `encode` does; [] for none. If texts fail, the error of the first is
        raised, with its index."""
        _check_texts(texts)
        allowed, disallowed = self._special_sets.resolve(allowed_special, disallowed_special)
        try:
            found = self._backend.encode_batch(texts, allowed, disallowed)
        except _OF_ONE_TEXT:
            _raise_first(texts, lambda text: self._backend.encode_array(text, allowed, disallowed))
            raise
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
        """Count the ids that `encode` returns for the same options, without building them.

        Args:
            text: Any text without lone surrogates, or UTF-8 bytes, which saves the conversion to
                `str`.
            limit: At least 0: counting may stop once the limit is exceeded. None for no limit.
            allowed_special: See the class. A name that is not a special token is ignored.
            disallowed_special: See the class.
            add_special_tokens: See the class.
        Returns:
            The exact count, or `limit` + 1 if it exceeds `limit`; 0 for "", apart from the
            template.
        Raises:
            SpecialTokenFound: `text` holds a disallowed special token.
            InvalidUnicode: `text` holds a lone surrogate, or is not UTF-8.
            InvalidOption: `limit` is negative.
        """
        allowed, disallowed = self._special_sets.resolve(allowed_special, disallowed_special)
        limit = _checked_limit(limit)
        if not add_special_tokens:
            return self._backend.count(text, allowed, disallowed, limit)
        count = self._backend.count(text, allowed, disallowed, self._text_limit(limit))
        return self._with_template(count, limit)

    def count_batch(
        self,
        texts: Sequence[Text],
        *,
        limit: int | None = None,
        allowed_special: SpecialTokens = frozenset(),
        disallowed_special: SpecialTokens = (),
        add_special_tokens: bool = False,
    ) -> list[int]:
        """Count each text as `count` does; [] for none. If texts fail, the error of the first is
        raised, with its index."""
        _check_texts(texts)
        allowed, disallowed = self._special_sets.resolve(allowed_special, disallowed_special)
        limit = _checked_limit(limit)
        most = self._text_limit(limit) if add_special_tokens else limit
        try:
            counts = self._backend.count_batch(texts, allowed, disallowed, most)
        except _OF_ONE_TEXT:
            _raise_first(texts, lambda text: self._backend.count(text, allowed, disallowed, most))
            raise
        if not add_special_tokens:
            return counts
        return [self._with_template(count, limit) for count in counts]

    def _text_limit(self, limit: int | None) -> int | None:
        """The part of `limit` that the template leaves for a text."""
        return None if limit is None else max(0, limit - len(self.template))

    def _with_template(self, count: int, limit: int | None) -> int:
        total = count + len(self.template)
        return total if limit is None else min(total, limit + 1)

    def contains_special(self, text: Text, *, allowed_special: SpecialTokens = frozenset()) -> bool:
        """Whether a text contains a special token that is not allowed.

        `encode` would treat it as ordinary text or raise, depending on `disallowed_special`. The
        text is searched, not encoded.

        Args:
            text: Any text, or UTF-8 that may start or end within a character.
            allowed_special: See the class. A name that is not a special token is ignored.
        Returns:
            False for "".
        """
        if isinstance(text, str):
            text = str.encode(text, errors="surrogatepass")  # a subclass may encode differently
        elif not isinstance(text, bytes):
            raise wrong_type("text", "str or bytes", text)
        return bool(self._special_sets.resolve(allowed_special, "all")[1].is_in(text))

    # Ids to text

    def decode(self, ids: Collection[int], *, errors: DecodeErrors = "replace") -> str:
        """Decode ids into text; a special id becomes its spelling.

        Args:
            ids: A list, an array or any sequence of token ids.
            errors: Handling of bytes that are not UTF-8: "replace" inserts one U+FFFD for each
                maximal invalid sequence, as Python and the WHATWG do; "strict" raises.
        Returns:
            The text; "" for no ids.
        Raises:
            UnknownTokenId: No token has one of the ids.
            InvalidUnicode: The bytes are not UTF-8, and `errors` is "strict".
            InvalidOption: `errors` is another value.
        """
        if errors not in ("replace", "strict"):
            raise InvalidOption("errors", 'must be "replace" or "strict"')
        try:
            return self._backend.decode(ids, errors)
        except TypeError as error:
            raise TypeError(f"ids: {error}") from None

    def decode_bytes(self, ids: Collection[int]) -> bytes:
        """Join the bytes of the tokens, which need not be UTF-8; b"" for no ids.

        Raises:
            UnknownTokenId: No token has one of the ids.
        """
        try:
            return self._backend.decode_bytes(ids)
        except TypeError as error:
            raise TypeError(f"ids: {error}") from None


def check_encoding(value: object) -> None:
    """Raise TypeError if the argument `encoding` is something else, such as a name."""
    check_type("encoding", value, Encoding, 'an Encoding, such as get_encoding("o200k_base")')


def _check_texts(texts: Sequence[Text]) -> None:
    """Raise TypeError for a single text, whose characters would be the texts, and for others."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Sequence):
        raise wrong_type("texts", "a list or another sequence of texts", texts)


def _raise_first(texts: Sequence[Any], work: Callable[[Any], object]) -> None:
    """Raise the error of the first text for which `work` fails, with its index. The backends differ
    in which of several they find first, and do not return the index."""
    for index, text in enumerate(texts):
        try:
            work(text)
        except (InvalidUnicode, SpecialTokenFound) as error:
            error.index = index
            raise error from None
        except TypeError:
            raise wrong_type(f"texts: text {index}", "str", text) from None


def _checked_limit(limit: int | None) -> int | None:
    if limit is None:
        return None
    return check_least("limit", limit, 0)
