"""The exports of the package, and the examples in its docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import types
from pathlib import Path

import bytepair_engine
import pytest

MODULES = [
    module.name
    for module in pkgutil.walk_packages(bytepair_engine.__path__, "bytepair_engine.")
    if "._" not in module.name
]


def test_all_lists_every_public_name() -> None:
    public = {
        name
        for name, value in vars(bytepair_engine).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert sorted(public) == sorted(bytepair_engine.__all__) == bytepair_engine.__all__


@pytest.mark.parametrize("name", ["bytepair_engine", *MODULES])
def test_the_examples_in_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_examples_of_the_readme() -> None:
    readme = Path(__file__).parents[2] / "engine" / "README.md"
    result = doctest.testfile(str(readme), module_relative=False)
    assert result.failed == 0
    assert result.attempted > 10


@pytest.mark.slow
def test_docstrings_contain_examples() -> None:
    modules = map(importlib.import_module, ["bytepair_engine", *MODULES])
    assert sum(doctest.testmod(module).attempted for module in modules) >= 10
