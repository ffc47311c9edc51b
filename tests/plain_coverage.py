"""The benchmark's standard-library forecasts, which the vectorised ones are tested against."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

BENCHMARK = Path(__file__).resolve().parents[1] / "benchmarks" / "coverage_plain.py"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coverage_plain", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


plain = _load()
