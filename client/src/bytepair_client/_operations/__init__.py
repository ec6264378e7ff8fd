"""What the service can be asked, one function each: from arguments to a call ready to be sent.

Everything is decided here once, for both clients and for plain and whole answers alike: the
names and defaults of arguments, how they go into a request, and what of the answer is the
plain value. The first argument, `defaults`, is the client's; users do not pass it.

All operations on text and ids take these:

    encoding: Name or alias; None for the client's. One of the two is required: there is no
        other default.
    expected_fingerprint: Unless the encoding has this fingerprint, the call fails with
        FingerprintMismatch before any work; None to not check. Left out: the client's, if
        the call uses the client's encoding.
    timeout: Seconds until DeadlineExceeded, above 0; None for no deadline. Left out: the
        client's.

All raise InvalidOption before anything is sent if an option is outside its domain, and
otherwise whatever of `bytepair_client.errors` the call ends with.
"""

from bytepair_client._operations.counting import count, count_batch
from bytepair_client._operations.decoding import decode, decode_batch, decode_bytes
from bytepair_client._operations.describing import get_encoding, list_encodings
from bytepair_client._operations.encoding import encode, encode_batch, encode_with_offsets
from bytepair_client._operations.serving import health
from bytepair_client._operations.streaming import count_stream, decode_stream, encode_stream

__all__ = [
    "count",
    "count_batch",
    "count_stream",
    "decode",
    "decode_batch",
    "decode_bytes",
    "decode_stream",
    "encode",
    "encode_batch",
    "encode_stream",
    "encode_with_offsets",
    "get_encoding",
    "health",
    "list_encodings",
]
