"""A panic in the core is an ordinary exception of one call.

make panics

These tests need a core that was built with a probe, a string of bytes at which it panics, and so
are not part of the suite. $BYTEPAIR_PROBED_CORE names the library.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bytepair_engine
import grpc
import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_engine import Encoding, EncodingSpec, InternalError, load_encoding
from support.failures import failure
from support.serving import RunningServer

PROBE = "panic, please"
PROBE_ID = 60_000
SECRET = "the secret of a user, and then "

#: By size: with the interpreter's lock, without it, and on several threads.
TEXTS = [SECRET + PROBE, SECRET * 500 + PROBE, SECRET * 40_000 + PROBE]


@pytest.fixture(scope="module")
def encoding() -> Encoding:
    """An encoding of the probed core, with the probe as a special token."""
    name = "bytepair_engine._core"
    spec = importlib.util.spec_from_file_location(name, os.environ["BYTEPAIR_PROBED_CORE"])
    assert spec is not None
    assert spec.loader is not None
    core = importlib.util.module_from_spec(spec)
    assert name not in sys.modules
    spec.loader.exec_module(core)
    sys.modules[name] = bytepair_engine._core = core
    declared = EncodingSpec(name="x", extends="r50k_base", special_tokens={PROBE: PROBE_ID})
    return load_encoding(declared, backend="native", threads=3)


Call = Callable[[Encoding, str], object]

CALLS: dict[str, Call] = {
    "encode": lambda encoding, text: encoding.encode_ordinary(text),
    "encode_array": lambda encoding, text: encoding.encode_array(text, disallowed_special=()),
    "encode_packed": lambda encoding, text: encoding.encode_packed(text, disallowed_special=()),
    "count": lambda encoding, text: encoding.count(text, disallowed_special=()),
    "offsets": lambda encoding, text: encoding.encode_with_offsets(text, disallowed_special=()),
    "batch": lambda encoding, text: encoding.encode_batch(["a", text], disallowed_special=()),
    "count_batch": lambda encoding, text: encoding.count_batch([text], disallowed_special=()),
    "decode": lambda encoding, text: encoding.decode([PROBE_ID] * len(text)),
    "decode_bytes": lambda encoding, text: encoding.decode_bytes([PROBE_ID] * len(text)),
}


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{len(text)} bytes")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_panic_is_an_exception_and_the_encoding_stays_usable(
    encoding: Encoding, call: Call, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    good = text.replace(PROBE, "so on")
    expected = encoding.encode(good)
    for _ in range(5):
        with pytest.raises(InternalError) as caught:
            call(encoding, text)
        assert isinstance(caught.value, Exception)
        assert "secret" not in str(caught.value)
        assert encoding.encode(good) == expected
        assert encoding.decode(expected) == good
    said = capfd.readouterr().err
    assert said.count("panic at src/probe.rs") >= 5
    assert "secret" not in said


def test_calls_concurrent_with_a_panic_are_unaffected(encoding: Encoding) -> None:
    good = SECRET * 2_000
    expected = encoding.encode(good)

    def work(number: int) -> bool:
        if number % 3:
            return encoding.encode(good) == expected
        with pytest.raises(InternalError):
            encoding.encode_ordinary(TEXTS[number % 2])
        return True

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(60)))


def test_a_panic_does_not_end_a_process_with_closed_standard_error(encoding: Encoding) -> None:
    kept = os.dup(2)
    os.close(2)
    try:
        with pytest.raises(InternalError):
            encoding.encode_ordinary(PROBE)
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@pytest.mark.parametrize("text", TEXTS[:2], ids=["on the event loop", "on a thread"])
def test_a_caller_gets_only_a_request_id_and_the_server_continues(text: str) -> None:
    folder = Path(__file__).parents[1] / "support/with_probed_core"
    environment = {
        "PYTHONPATH": str(folder),
        "BYTEPAIR_PROBED_CORE": os.environ["BYTEPAIR_PROBED_CORE"],
    }
    with RunningServer("--builtin-encodings", "r50k_base", environment=environment) as server:
        for number in range(3):
            request = tokenizer_pb2.CountRequest(encoding="r50k_base", text=text)
            metadata = (("x-request-id", f"asked-{number}"),)
            failed = failure(server.stub.Count, request, metadata=metadata)
            assert (failed.code, failed.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
            assert failed.metadata == {"request_id": f"asked-{number}"}
            assert server.wait_for_log("unexpected error", request_id=f"asked-{number}")
            good = tokenizer_pb2.CountRequest(encoding="r50k_base", text="hello world")
            assert server.stub.Count(good).count == 2
        assert "secret" not in server.raw_log
