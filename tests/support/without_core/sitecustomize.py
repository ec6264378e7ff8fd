"""Read by Python at its start from PYTHONPATH: an installation whose core was not built."""

import sys

sys.modules["bytepair_engine._core"] = None  # type: ignore[assignment]
