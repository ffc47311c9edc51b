"""Where fetched files are kept between runs and projects."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """PREDICTIVE_CREDIT_CACHE, or ~/.cache/predictive-credit; made when something is first put there."""
    named = os.environ.get("PREDICTIVE_CREDIT_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "predictive-credit"
