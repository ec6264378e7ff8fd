"""Extract fields of requests in Rust; without the native transport, protobuf parses everything."""

from __future__ import annotations

__all__ = ["Named", "take_field", "take_named_texts"]

#: A name, and the UTF-8 of a text; None if there is no text.
Named = tuple[str, bytes | None]

try:
    from bytepair_server._transport import take_field, take_named_texts
except ImportError:

    def take_field(
        message: bytes, number: int, inner: int | None = None
    ) -> tuple[bytes, list[bytes]] | None:
        """Return None: protobuf parses the message."""
        del message, number, inner
        return None

    def take_named_texts(message: bytes, number: int) -> tuple[bytes, list[Named]] | None:
        """Return None: protobuf parses the message."""
        del message, number
        return None
