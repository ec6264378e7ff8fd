"""Selection of the backend: the native core if it is built, else the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol

from bytepair_engine.backends.interface import Backend
from bytepair_engine.backends.reference import ReferenceBackend
from bytepair_engine.errors import InvalidOption, check_type
from bytepair_engine.formats.as_ranks import ByRank, merges_by_rank
from bytepair_engine.pipeline.backend import PipelineBackend
from bytepair_engine.pipeline.definition import Merges, Pipeline
from bytepair_engine.resources import Resources
from bytepair_engine.vocabulary.rank_table import RankTable

BackendName = Literal["native", "reference"]


class Table(Protocol):
    """The interface of the two rank tables; see `rank_table.RankTable`."""

    def items(self) -> list[tuple[bytes, int]]: ...
    def missing_byte(self) -> int | None: ...
    def has_id(self, token_id: int) -> bool: ...
    def max_id(self) -> int: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Core:
    """The constructors of one backend: of rank tables, and of encodings from tables and
    pipelines."""

    name: BackendName
    parse_tiktoken: Callable[[bytes], Any]
    from_items: Callable[[Iterable[tuple[bytes, int]]], Any]
    build: Callable[[Any, str, dict[str, int], Resources], Backend[Any]]
    build_pipeline: Callable[[Pipeline, Resources], Backend[Any]]
    by_rank: ByRank


_REFERENCE = Core(
    "reference",
    RankTable.parse_tiktoken,
    RankTable.from_items,
    lambda table, pattern, special_tokens, _: ReferenceBackend(table, pattern, special_tokens),
    lambda pipeline, _: PipelineBackend(pipeline),
    merges_by_rank,
)


def resolve(name: BackendName | None) -> Core:
    """Find a backend.

    Args:
        name: "native" or "reference"; None for native if the core is built, else reference.
    Raises:
        InvalidOption: The name is another one, or it is "native" and the core is not built.
        TypeError: The name is not a string.
    """
    check_type("backend", name, str | None, "str or None")
    return _resolve(name)


@cache
def _resolve(name: BackendName | None) -> Core:
    if name == "reference":
        return _REFERENCE
    if name not in (None, "native"):
        raise InvalidOption("backend", 'must be "native" or "reference"')
    try:
        from bytepair_engine import _core
    except ImportError as error:
        if name is None:
            return _REFERENCE
        raise InvalidOption("backend", f"the native core cannot be loaded: {error}") from error

    def build(
        table: Any, pattern: str, special_tokens: dict[str, int], resources: Resources
    ) -> Backend[Any]:
        return _core.Bpe(
            table,
            pattern,
            special_tokens,
            cache_bytes=resources.cache_bytes,
            threads=resources.threads,
        )

    def build_pipeline(pipeline: Pipeline, resources: Resources) -> Backend[Any]:
        from bytepair_engine.pipeline import native

        return native.build(pipeline, resources.cache_bytes)

    def by_rank(ranks: Mapping[bytes, int], rule: Merges, whole_first: bool) -> bool:
        columns = (rule.lefts, rule.rights, rule.results)
        return _core.merges_by_rank(list(ranks.items()), columns, whole_first)

    return Core(
        "native",
        _core.RankTable.parse_tiktoken,
        _core.RankTable.from_items,
        build,
        build_pipeline,
        by_rank,
    )
