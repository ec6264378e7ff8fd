"""The targets of the fuzzer: each takes bytes, and raises if a result is wrong."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import bytepair_engine
import tiktoken
from bytepair_engine import BytepairError, Encoding, EncodingSpec, load_encoding
from bytepair_server import catalog
from bytepair_server.auth.callers import Callers
from bytepair_server.auth.policy import Policy
from bytepair_server.call import Call
from bytepair_server.config.settings import Settings
from bytepair_server.rpc.methods import METHODS
from bytepair_server.rpc.service import Service
from bytepair_server.rpc.status import failure_of
from bytepair_server.streaming.handler import SESSIONS

NAME: Final = "cl100k_base"


@cache
def _service() -> Service:
    settings = Settings(builtin_encodings=(NAME,), max_input_bytes=1 << 16)
    loaded = catalog.load(settings, Path())
    return Service(settings, loaded, Policy({"default": {NAME: "ALL"}}, loaded, Callers()))


def _expected(error: Exception) -> None:
    """Raise the error again, unless it is one that the service maps to a status."""
    if failure_of(error) is None:
        raise error


def request(data: bytes) -> None:
    """Parse the bytes as the request of an RPC, which the first byte selects."""
    if not data:
        return
    methods = sorted(METHODS)
    method = METHODS[methods[data[0] % len(methods)]]
    service = _service()
    try:
        parsed, _ = method.read(data[1:])
        method.answer(service, parsed, Call())
    except Exception as error:
        _expected(error)


def stream(data: bytes) -> None:
    """Parse the bytes as the length-prefixed messages of a stream."""
    if not data:
        return
    sessions = sorted(SESSIONS)
    session = SESSIONS[sessions[data[0] % len(sessions)]](_service().options, Call(), 1 << 14)
    rest = data[1:]
    try:
        while rest and not session.over:
            size = rest[0]
            session.take(rest[1 : 1 + size])
            rest = rest[1 + size :]
        if not session.over:
            session.end()
        if session.fault is not None:
            raise session.fault
    except Exception as error:
        _expected(error)


@cache
def _twins() -> tuple[Encoding, Encoding, tiktoken.Encoding]:
    native = bytepair_engine.get_encoding(NAME, backend="native")
    reference = bytepair_engine.get_encoding(NAME, backend="reference")
    oracle = tiktoken.Encoding(
        NAME,
        pat_str=native.pattern,
        mergeable_ranks={
            token: native.encode_single_token(token) for token in native.token_byte_values()
        },
        special_tokens=dict(native.special_tokens),
    )
    return native, reference, oracle


def text(data: bytes) -> None:
    """Pass the bytes as text and as ids to the core, the reference and tiktoken."""
    native, reference, oracle = _twins()
    read = data.decode("utf-8", "ignore")
    ids = native.encode_ordinary(read)
    assert ids == oracle.encode_ordinary(read), "ids differ from the oracle's"
    assert native.count(read, disallowed_special=()) == len(ids)
    assert native.decode(ids) == read
    if len(read) < 256:
        assert reference.encode_ordinary(read) == ids, "ids differ from the reference's"
        offsets = native.encode_with_offsets(read, disallowed_special=())
        assert offsets == reference.encode_with_offsets(read, disallowed_special=())
    some = [int.from_bytes(data[i : i + 3], "little") for i in range(0, len(data) - 2, 3)]
    ours: Any = None
    theirs: Any = None
    with suppress(BytepairError):
        ours = native.decode_bytes(some)
    with suppress(KeyError):
        theirs = oracle.decode_bytes(some)
    assert ours == theirs, "bytes differ from the oracle's"


def vocabulary(data: bytes) -> None:
    """Load the bytes as a vocabulary file of every format."""
    if not data:
        return
    names = ("x.tiktoken", "tokenizer.json", "tekken.json", "x.model", "x.bin")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / names[data[0] % len(names)]
        file.write_bytes(data[1:])
        for table in ({"file": file.name}, {"file": file.name, "pattern": "r50k_base"}):
            with suppress(BytepairError):
                encoding = load_encoding(EncodingSpec.from_mapping("x", table, Path(folder)))
                encoding.decode(encoding.encode_ordinary("hello world"))


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    "request": request,
    "stream": stream,
    "text": text,
    "vocabulary": vocabulary,
}
