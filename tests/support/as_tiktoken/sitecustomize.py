"""On PYTHONPATH this makes every import of tiktoken one of `bytepair_engine.tiktoken`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Alias(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "tiktoken":
            return None
        return ModuleSpec(fullname, self, is_package=fullname == "tiktoken")

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return importlib.import_module(f"bytepair_engine.{spec.name}")

    def exec_module(self, module: ModuleType) -> None:
        """It was run when it was imported under its own name."""


sys.meta_path.insert(0, _Alias())
