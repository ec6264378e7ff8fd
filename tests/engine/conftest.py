"""Every test of the engine runs on both backends: the reference and the native core."""

from __future__ import annotations

from collections.abc import Callable

import bytepair_engine
import pytest
from bytepair_engine import Encoding
from bytepair_engine.backends.cores import BackendName

Load = Callable[[str], Encoding]


@pytest.fixture(params=["reference", "native"])
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def load(backend: BackendName) -> Load:
    """`get_encoding` with the backend of the test."""
    return lambda name: bytepair_engine.get_encoding(name, backend=backend)


@pytest.fixture(params=bytepair_engine.list_encodings())
def encoding(request: pytest.FixtureRequest, load: Load) -> Encoding:
    """Every built-in encoding, with the backend of the test."""
    return load(request.param)
