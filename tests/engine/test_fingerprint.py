"""Fingerprints: pinned for the published encodings, and changed by any difference."""

from __future__ import annotations

import hashlib
from struct import pack

from bytepair_engine import Encoding
from bytepair_engine.vocabulary.fingerprint import fingerprint

GOLDEN = {
    "cl100k_base": "sha256:5e40b3238e0855bdb74e6add3c12d59a7990b7deec47dd7f31f86adf7fc0beb1",
    "o200k_base": "sha256:b1285d8918b01663e6c0c7a3ce836cc7c573ee1cbd73d87a5b15723e03e9bb61",
    "o200k_harmony": "sha256:13f999d6356fa4f0c2c8af3cdb44bee9b0f99efa5026e66071b698af3efcd250",
    "p50k_base": "sha256:f60736713b677c956309ec9aab9894e942813e2156ad23ffa70388ac9a411d8a",
    "p50k_edit": "sha256:b0318d6a68ee565cef15dbb344a631a01410ec935a4c76e0ce62494d46baa6c8",
    "r50k_base": "sha256:3ec1e94057e985049e8c1917a2d9f6f1959870ef0bab7107d75929c77a174506",
}


def test_builtin_encodings_have_their_pinned_fingerprint(encoding: Encoding) -> None:
    assert encoding.fingerprint == GOLDEN[encoding.name]


def test_the_hashed_content_is_the_documented_one() -> None:
    data = (
        b"bytepair fingerprint 1\n"
        + pack("<Q", 4) + b"rank" + pack("<Q", 4) + b"none" + pack("<Q", 3) + b".+a"
        + pack("<Q", 2) + pack("<II", 3, 1) + b"a" + pack("<II", 9, 2) + b"bb"
        + pack("<Q", 2) + pack("<II", 10, 2) + "é".encode() + pack("<II", 11, 1) + b"<"
    )  # fmt: skip
    got = fingerprint({b"bb": 9, b"a": 3}, ".+a", {"<": 11, "é": 10})
    assert got == f"sha256:{hashlib.sha256(data).hexdigest()}"


def test_every_part_changes_the_fingerprint() -> None:
    base = ({b"a": 0, b"b": 1}, "p", {"<s>": 2})
    variants = [
        fingerprint(*base),
        fingerprint({b"a": 1, b"b": 0}, "p", {"<s>": 2}),
        fingerprint({b"a": 0, b"b": 1, b"<s>": 2}, "p", {}),
        fingerprint({b"a": 0}, "p", {"<s>": 2}),
        fingerprint({b"a": 0, b"b": 1}, "q", {"<s>": 2}),
        fingerprint({b"a": 0, b"b": 1}, "p", {"<s>": 3}),
        fingerprint({b"a": 0, b"b": 1}, "p", {"<s>": 2, "<t>": 2}),
        fingerprint(*base, merge_rule="merges"),
        fingerprint(*base, normaliser="NFC"),
    ]
    assert len(set(variants)) == len(variants)
    assert fingerprint({b"b": 1, b"a": 0}, "p", {"<s>": 2}) == variants[0]
