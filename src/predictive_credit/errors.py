"""Our errors: each is one sentence for the person at the keyboard, and stops the run.

Trouble with somebody else's answer (a malformed forecast, a provider's failure) is not here: it
is recorded with the raw reply and becomes the frozen fallback.
"""

from __future__ import annotations


class PredictiveCreditError(Exception):
    """Says what was asked, what was seen, which one, and what to do next."""


class OutOfOrder(PredictiveCreditError):
    """A step was asked for before the step it rests on."""


class Sealed(PredictiveCreditError):
    """Outcomes were asked for while they are locked, or their key is gone."""


class Unpaired(PredictiveCreditError):
    """Rows that must form a gap-free cube do not."""


class BadConfig(PredictiveCreditError):
    """A configuration key or value that nothing here knows."""


class BadSource(PredictiveCreditError):
    """Data that is missing, unreachable, or not what its checksum promised."""


class Stopped(PredictiveCreditError):
    """Asking ended before every unit had its reply; the replies that came are kept."""


class Tampered(PredictiveCreditError):
    """A frozen file is not what was frozen."""
