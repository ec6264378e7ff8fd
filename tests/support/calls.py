"""Calls apart from their requests, for what sets them in order."""

from __future__ import annotations

from bytepair_server.rpc.call import Call


def call_of(caller: str, connection: str = "") -> Call:
    """A call without metadata."""
    call = Call(connection)
    call.caller = caller
    return call
