"""Where the public audit bundles are, on a machine that has them; tests without them are skipped."""

from __future__ import annotations

import os
from pathlib import Path


def find() -> Path | None:
    """The folder `dcp` of the mirror, or of shared data next to the checkout; None without either."""
    checkout = Path(__file__).resolve().parents[1]
    named = os.environ.get("PREDICTIVE_CREDIT_MIRROR")
    places = [checkout.parent / "shared/data/dcp"]
    if named:
        places.insert(0, Path(named) / "dcp")
    return next((p for p in places if (p / "mutations/mutations.csv").is_file()), None)


PUBLIC = find()
ABSENT = "the public audit bundles are not on this machine"
