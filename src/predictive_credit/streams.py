"""Randomness has a name: a generator for each analysis, a seed for each unit.

Adding a contrast tomorrow cannot move an interval frozen today, because no two names share a
stream and none depends on how many draws another made.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.random import Generator


def _entropy(seed: int, names: tuple[str | int, ...]) -> bytes:
    # The unit separator keeps ("a", "bc") and ("ab", "c") apart.
    return hashlib.sha256("\x1f".join(map(str, (seed, *names))).encode()).digest()


def stream(seed: int, *names: str | int) -> Generator:
    """The generator of the analysis called `names`, under the study's seed."""
    return np.random.default_rng(int.from_bytes(_entropy(seed, names), "big"))


def unit_seed(seed: int, unit_id: str) -> int:
    """A sampling seed in [0, 2**31) for one unit: independent between the two calls."""
    return int.from_bytes(_entropy(seed, ("unit", unit_id))[:4], "big") >> 1
