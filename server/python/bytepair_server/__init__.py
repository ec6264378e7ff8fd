"""The bytepair tokenizer service: gRPC in front of `bytepair_engine`."""

from importlib.metadata import version

__version__ = version("bytepair-server")

__all__ = ["__version__"]
