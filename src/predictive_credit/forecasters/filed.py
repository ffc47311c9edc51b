"""Forecasts from elsewhere, looked up by unit in a hubverse model-output file instead of asked for.

The file need not know our prompts, so there is no model here: a unit's id says which rows are its own.
A file without the column `call` gives both calls the same forecast; their drift is then zero because of
the file and says nothing of who made it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from predictive_credit import canonical
from predictive_credit.errors import BadSource
from predictive_credit.formats import model_output
from predictive_credit.formats.model_output import Task
from predictive_credit.records import Reply, Target
from predictive_credit.wording import FORECAST_KEYS


class Filed:
    """Replies in the form of elicitation `json`, out of a .csv or .parquet file.

    Crossing quantiles stay as they are: who reads the reply refuses a reversed interval. Raises BadSource
    for a file that is missing or malformed.
    """

    def __init__(self, path: Path, targets: Sequence[Target], *, name: str) -> None:
        self.name = name
        self._path = path
        self._targets = tuple(target.name for target in targets)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BadSource(
                f"no forecasts at {path} ({error.strerror}); give a hubverse model-output file, .csv or "
                ".parquet, with forecaster.path=FILE"
            ) from None
        self._found = model_output.parse(data, path.name)
        self._resolved = f"{path.name}@sha256:{canonical.digest_bytes(data)[:12]}"

    def replies(self, unit_ids: Iterable[str]) -> dict[str, Reply]:
        """The replies by unit id. Raises BadSource for a file that has a forecast of none of the units."""
        wanted = list(unit_ids)
        found = {unit_id: self.reply(unit_id) for unit_id in wanted}
        if wanted and not any(reply.text for reply in found.values()):
            raise BadSource(
                f"{self._path} has no forecast of any of the {len(wanted)} units asked for: it "
                f"{self._begins()}, and the first unit is {wanted[0]} with {', '.join(self._targets)}"
            )
        states = {unit_id.rsplit("/", 2)[0] for unit_id in wanted}
        contexts = {unit_id.rsplit("/", 2)[1] for unit_id in wanted}
        strangers = [
            task for task in self._found
            if not (task.state in states and task.context in contexts and task.target in self._targets)
        ]  # fmt: skip
        if strangers:
            first = strangers[0]
            print(
                f"{self._path}: {len(strangers)} of {len(self._found)} forecasts are of no unit asked for, "
                f"and were passed over, first {first.target} of {first.state} in context {first.context}",
                file=sys.stderr,
            )
        return found

    def reply(self, unit_id: str) -> Reply:
        """The unit's numbers as a JSON object; without text, and with the reason, where a target has none."""
        state, context, call = unit_id.rsplit("/", 2)
        numbers = {t: self._numbers(state, t, context, call) for t in self._targets}
        missing = [target for target, found in numbers.items() if found is None]
        reason = f"error: no row of {missing[0]} of {unit_id}" if missing else "stop"
        texts = [_object(target, found) for target, found in numbers.items() if found is not None]
        return Reply(
            text="" if missing else f"{{{', '.join(texts)}}}",
            finish_reason=reason, model_requested=self.name, model_resolved=self._resolved,
        )  # fmt: skip

    def _numbers(self, state: str, target: str, context: str, call: str) -> dict[str, str] | None:
        """Those of this call, else those that serve every call."""
        tasks = (Task(state=state, target=target, context=context, call=c) for c in (call, None))
        return next((self._found[task] for task in tasks if task in self._found), None)

    def _begins(self) -> str:
        if not self._found:
            return "has no rows of output_type quantile"
        first = next(iter(self._found))
        return f"begins with {first.target} of state {first.state} in context {first.context}"


def _object(target: str, numbers: dict[str, str]) -> str:
    """One target's part of the object. The numbers are text already: they stay as the file has them."""
    inner = ", ".join(f'"{key}": {numbers[key]}' for key in FORECAST_KEYS)
    return f'"{target}": {{{inner}}}'
