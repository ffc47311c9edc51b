"""`predictive-credit coverage`: a matrix of agents and tasks to a forecast, or to a study of the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from predictive_credit import __version__, canonical, tables
from predictive_credit.coverage import matrix, page, pilot, real
from predictive_credit.coverage.matrix import Matrix
from predictive_credit.coverage.pilot import Forecast
from predictive_credit.coverage.real import RealStudy
from predictive_credit.errors import BadConfig

PAGE = Path("coverage.html")
ALL = "all"  # of the matrix is the pilot


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line said; see its help."""

    matrix: Path
    pilot: str
    agents: int | None
    first: bool
    target: float | None
    tasks: Path | None
    seed: int
    study: bool
    to: Path | None
    as_json: bool


def run(asked: Asked) -> str:
    """Write the page and say the result, or say it as one line of JSON, with a page only where asked for.

    Raises BadSource for a matrix, BadConfig for words, that do not fit.
    """
    found = matrix.read(asked.matrix, asked.tasks)
    made = _study(found, asked) if asked.study else _forecast(found, asked)
    section = page.real_section([made]) if isinstance(made, RealStudy) else page.forecast_section(made)
    to = asked.to or (None if asked.as_json else PAGE)
    if to is not None:
        what = "Study of" if asked.study else "Coverage forecast for"
        html = page.document(f"{what} {found.name}", [section], version=__version__)
        tables.write_bytes(to, html.encode())
    if asked.as_json:
        return canonical.encode(made).decode()
    return f"{made.text()}\n\n{to}: with the curve, open it in any browser"


def _forecast(found: Matrix, asked: Asked) -> Forecast:
    size = None if asked.pilot == ALL else _size(asked.pilot)
    return pilot.forecast(
        found,
        pilot.Settings(
            seed=asked.seed, pilot=size, agents=asked.agents, first=asked.first, target=asked.target
        ),
    )


def _study(found: Matrix, asked: Asked) -> RealStudy:
    refused = {
        "--agents": asked.agents is not None,
        "--first": asked.first,
        "--target": asked.target is not None,
    }
    for option in (option for option, given in refused.items() if given):
        raise BadConfig(f"--study draws many pilots of the whole matrix; leave {option} out")
    if asked.pilot == ALL:
        raise BadConfig("--study sets pilots against the whole matrix; give --pilot a number")
    return real.study(found, real.Settings(seed=asked.seed, pilot=_size(asked.pilot)))


def _size(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise BadConfig(f"--pilot is a number of agents, or `{ALL}`; seen {word!r}") from None
