"""One of our errors as one sentence and an exit status; imports nothing heavy, so that help is at once."""

from __future__ import annotations

import sys
from collections.abc import Callable

from predictive_credit.errors import PredictiveCreditError


def guarded(action: Callable[[], int]) -> int:
    """Run an action; one of our errors becomes one sentence on stderr and exit status 1."""
    try:
        return action()
    except PredictiveCreditError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # who reads has seen enough
        sys.stdout = None  # or the interpreter flushes into it once more
        return 1
    except OSError as error:
        if (path := error.filename2 or error.filename) is None:
            raise
        print(f"error: {path}: {error.strerror}; check the path and who may use it", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stopped:
        how = stopped.args[0] if stopped.args else "run the same command again"
        print(f"interrupted; what was committed is kept, {how} to resume", file=sys.stderr)
        return 130
