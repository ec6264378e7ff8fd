"""Imports gRPC so that it does not log failed TLS handshakes; imported before all else.

gRPC writes them to stderr in the words of OpenSSL, although the exceptions say what is wrong. It
reads this variable once, when it is imported: the program itself and its children keep theirs.
"""

import os

_NAME = "GRPC_VERBOSITY"

if _NAME in os.environ:
    import grpc
else:
    os.environ[_NAME] = "NONE"
    import grpc

    del os.environ[_NAME]

__all__ = ["grpc"]
