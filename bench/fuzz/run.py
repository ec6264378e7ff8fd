"""Fuzz one target with libFuzzer, guided by coverage of Python lines.

    make fuzz-text SECONDS=3600

The core is not instrumented; the reference is. Failing inputs are written to build/fuzz, and should
become tests.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["bytepair_server", "bytepair_engine"]):
    import bytepair_engine

    from bench.fuzz.targets import TARGETS

from bytepair.v1 import text_pb2, tokenizer_pb2
from support.streaming import DecodeRequest, EncodeRequest, decode_config, encode_config


def seeds(target: str) -> list[bytes]:
    """The seed corpus of a target."""
    if target == "request":
        count = tokenizer_pb2.CountRequest(
            encoding="cl100k_base", text="héllo", allowed_special=["<|endoftext|>"], limit=3
        )
        batch = tokenizer_pb2.BatchEncodeRequest(
            encoding="cl100k_base",
            items=[text_pb2.TextItem(segments=[text_pb2.Segment(special_token="<|endoftext|>")])],
        )
        decode = tokenizer_pb2.DecodeRequest(encoding="cl100k_base", ids=[1, 300])
        messages = [count, batch, decode]
        return [bytes([i]) + each.SerializeToString() for i in range(8) for each in messages]
    if target == "stream":
        decoded = [decode_config("cl100k_base", stop=["lo"]), DecodeRequest(ids=[15339, 1917])]
        encoded = [encode_config("cl100k_base"), EncodeRequest(data=b"\xf0\x9f")]
        return [
            bytes([i])
            + b"".join(bytes([len(raw := m.SerializeToString())]) + raw for m in messages)
            for i in range(3)
            for messages in (decoded, encoded)
        ]
    if target == "vocabulary":
        table = Path(bytepair_engine.__file__).parent / "data" / "r50k_base.tiktoken"
        lines = b"\n".join(table.read_bytes().split(b"\n")[:300])
        json = b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}'
        return [b"\0" + lines, b"\1" + json, b'\2{"config": {}, "vocab": []}', b"\3\x0a\x00"]
    return ["héllo <|endoftext|> 日本語 🙂".encode(), b"\x0b\x3b\x00", b"  \n\t1234567"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=3600)
    arguments = parser.parse_args()
    folder = Path("build/fuzz") / arguments.target
    folder.mkdir(parents=True, exist_ok=True)
    run = TARGETS[arguments.target]
    for number, seed in enumerate(seeds(arguments.target)):
        (folder / f"seed-{number}").write_bytes(seed)
        run(seed)  # what the first run loads would count against libFuzzer's limit for one
    options = [
        f"-max_total_time={arguments.seconds}",
        f"-artifact_prefix={folder.parent}/crash-{arguments.target}-",
        "-max_len=4096",
        "-timeout=30",
        "-print_final_stats=1",
        "-verbosity=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(folder)], run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
