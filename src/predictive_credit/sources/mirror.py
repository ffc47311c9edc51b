"""The local directory that stands in for origins this machine cannot or should not reach."""

from __future__ import annotations

import os
from pathlib import Path

from predictive_credit.errors import BadSource


def mirror() -> Path | None:
    """The directory PREDICTIVE_CREDIT_MIRROR names, or None when it is unset or empty.

    Raises BadSource when it names no directory: falling back to an origin in silence would use
    other bytes than the user asked for.
    """
    named = os.environ.get("PREDICTIVE_CREDIT_MIRROR")
    if not named:
        return None
    path = Path(named)
    if not path.is_dir():
        raise BadSource(f"PREDICTIVE_CREDIT_MIRROR is {named}, which is no directory; correct or unset it")
    return path
