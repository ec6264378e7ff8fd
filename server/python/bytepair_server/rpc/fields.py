"""Fields taken out of requests in Rust; where that part is not built, protobuf reads all."""

from __future__ import annotations

__all__ = ["Named", "take_field", "take_named_texts"]

#: A name, and the UTF-8 of a text, or None where there is none.
Named = tuple[str, bytes | None]

try:
    from bytepair_server._transport import take_field, take_named_texts
except ImportError:

    def take_field(
        message: bytes, number: int, inner: int | None = None
    ) -> tuple[bytes, list[bytes]] | None:
        """Leave all to protobuf."""
        del message, number, inner
        return None

    def take_named_texts(message: bytes, number: int) -> tuple[bytes, list[Named]] | None:
        """Leave all to protobuf."""
        del message, number
        return None
