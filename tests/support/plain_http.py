"""HTTP/1.1 requests to the gRPC port, as curl sends them."""

from __future__ import annotations

from dataclasses import dataclass
from http.client import HTTPConnection


@dataclass
class Answer:
    """The answer to an HTTP request."""

    status: int
    headers: dict[str, str]
    body: bytes


def ask(
    target: str, path: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> Answer:
    """Send an HTTP/1.1 request to the gRPC port."""
    connection = HTTPConnection(target, timeout=60)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        received = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, received, answer.read())
    finally:
        connection.close()
