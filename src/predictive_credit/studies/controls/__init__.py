"""The post-outcome controls, and the donor gradient: is the instrument known to work, and what carries what?

Each is a study that differs from the prospective ones in timing and contexts. What it takes over from
a study it takes by digest; nothing of that study's folder changes.
"""

from __future__ import annotations

from predictive_credit.studies.controls.calibration import CALIBRATION
from predictive_credit.studies.controls.crossover import CROSSOVER
from predictive_credit.studies.controls.gradient import GRADIENT
from predictive_credit.studies.controls.mechanism import MECHANISM
from predictive_credit.studies.controls.raw_note import RAW_NOTE
from predictive_credit.studies.controls.replay import REPLAY

CONTROLS = (CALIBRATION, REPLAY, CROSSOVER, RAW_NOTE, MECHANISM, GRADIENT)
