"""Read by Python at its start from PYTHONPATH: an installation whose core panics when asked to."""

import importlib.machinery
import importlib.util
import os
import sys

_LOADER = importlib.machinery.ExtensionFileLoader(
    "bytepair_engine._core", os.environ["BYTEPAIR_PROBED_CORE"]
)
_SPEC = importlib.util.spec_from_loader(_LOADER.name, _LOADER)
assert _SPEC is not None
_CORE = importlib.util.module_from_spec(_SPEC)
_LOADER.exec_module(_CORE)
sys.modules[_LOADER.name] = _CORE
