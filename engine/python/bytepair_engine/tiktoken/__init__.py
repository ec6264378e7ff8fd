"""A drop-in replacement of tiktoken: `import bytepair_engine.tiktoken as tiktoken`.

>>> import bytepair_engine.tiktoken as tiktoken
>>> tiktoken.encoding_for_model("gpt-4o").encode("hello world")
[24912, 2375]

docs/tiktoken.md lists the differences.
"""

from bytepair_engine.tiktoken.core import Encoding
from bytepair_engine.tiktoken.model import encoding_for_model, encoding_name_for_model
from bytepair_engine.tiktoken.registry import get_encoding, list_encoding_names

#: The version of tiktoken with the same behaviour.
__version__ = "0.14.0"

__all__ = [
    "Encoding",
    "encoding_for_model",
    "encoding_name_for_model",
    "get_encoding",
    "list_encoding_names",
]
