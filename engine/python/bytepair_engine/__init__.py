"""Exact byte-pair encoding: published vocabularies, text to token ids and back.

>>> import bytepair_engine
>>> encoding = bytepair_engine.get_encoding("cl100k_base")
>>> encoding.encode("hello world")
[15339, 1917]
>>> encoding.decode([15339, 1917])
'hello world'

`backends.reference` defines the encoding, and proves that each text has exactly one.
"""

from bytepair_engine.cancel import CancelScope
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import (
    BytepairError,
    Cancelled,
    InternalError,
    InvalidOption,
    InvalidUnicode,
    PieceTooLong,
    SpecialTokenFound,
    StreamFinished,
    TrainingError,
    UnknownEncoding,
    UnknownToken,
    UnknownTokenId,
    VocabularyError,
)
from bytepair_engine.extending import extend_encoding
from bytepair_engine.loading import load_encoding
from bytepair_engine.registry import aliases, get_encoding, list_encodings
from bytepair_engine.resources import Resources
from bytepair_engine.spec import EncodingSpec
from bytepair_engine.streaming.decoder import StreamDecoder
from bytepair_engine.streaming.encoder import StreamCounter, StreamEncoder, can_stream
from bytepair_engine.training.training import train

__all__ = [
    "BytepairError",
    "CancelScope",
    "Cancelled",
    "Encoding",
    "EncodingSpec",
    "InternalError",
    "InvalidOption",
    "InvalidUnicode",
    "PieceTooLong",
    "Resources",
    "SpecialTokenFound",
    "StreamCounter",
    "StreamDecoder",
    "StreamEncoder",
    "StreamFinished",
    "TrainingError",
    "UnknownEncoding",
    "UnknownToken",
    "UnknownTokenId",
    "VocabularyError",
    "aliases",
    "can_stream",
    "extend_encoding",
    "get_encoding",
    "list_encodings",
    "load_encoding",
    "train",
]
