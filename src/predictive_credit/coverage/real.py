"""The study of one real matrix: forecasts from random pilots against what all its agents solve.

A matrix is one population. All pilots drawn from it share one truth and overlap, so an interval's
coverage over them describes this matrix and does not estimate a calibration.

Agents below a solve rate of COMPETENT are left out first; fewer than LEAST_AGENTS agents or LEAST_TASKS
tasks after that make the study `not_feasible`, and nothing is estimated. Three hypotheses follow, each
with a rule that was fixed before any matrix was read. Their intervals come from a task-cluster
bootstrap: a task with the results of all agents on it is one cluster, since agents share the task.
Tasks of one repository may share more than that, and then these intervals are too narrow.

* H1, agents fail together, so that independence overstates coverage. `supported` where both the mean
  pairwise phi of all agents and the gap 1 - (1 - p)^M - C(M), p their mean solve rate, have a 95 %
  interval above 0; `falsified` where either lies below; `undecided` otherwise. Tasks of unlike difficulty
  are enough for that: phi is over tasks, and says nothing of a common cause.
* H2, a forecaster that knows of dependence is within TOLERANCE of the coverage of all agents. The
  candidates are the two frozen ones, CANDIDATES; what is tested is the mean absolute error over all
  pilots. `supported` where the 95 % interval of one of them lies at or below the tolerance: with two
  candidates, its upper end is a one-sided 95 % bound for both (Bonferroni); `falsified` where both lie
  above; `undecided` otherwise. A resample repeats tasks, which by itself moves an absolute error up, so
  the interval leans that way. The calibrated forecaster is no candidate.
* H3, a diverse portfolio covers more than one of the best. On a random half of the tasks the greedy rule
  adds the agent that newly solves most tasks, and the rival takes the most accurate agents, both as many
  as a pilot has; ties go to accuracy on that half, then to the matrix's order. The other half decides,
  by McNemar's exact test at ALPHA on the tasks that only one of the two portfolios solves; the gain's
  interval is exact too. In how many further splits the sign is which is told and decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import bdtr

from predictive_credit import bootstrap, exact, streams
from predictive_credit.coverage import calibrated, estimators, intervals
from predictive_credit.coverage.estimators import FORECASTERS, FROZEN
from predictive_credit.coverage.matrix import Matrix, Solved
from predictive_credit.coverage.scoring import TOLERANCE
from predictive_credit.coverage.statistics import histograms, mean_phi, of_histograms
from predictive_credit.coverage.synthetic import CALIBRATED, PREDICTIVE
from predictive_credit.errors import BadConfig

Array = NDArray[np.float64]
Positions = NDArray[np.int64]
Status = Literal["supported", "falsified", "undecided"]

COMPETENT = 0.05  # least solve rate of an agent
LEAST_AGENTS = 20
LEAST_TASKS = 100
GRID = (2, 5, 10, 20, 40)  # sizes of the curve, as far as they are below M; M itself is added
ALPHA = 0.05
PILOT = 10  # agents
CANDIDATES = ("beta_binomial", "incidence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Sizes of the study. calibrated_pilots: the first so many pilots, since it takes long."""

    seed: int
    pilot: int = PILOT
    pilots: int = 200
    calibrated_pilots: int = 60
    replicates: int = 100  # of the pilot's own bootstraps
    draws: int = 1000  # of the task-cluster bootstrap
    splits: int = 200  # further halvings of the tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Feasibility:
    """Whether a matrix is large enough, and which agents the competence screen left out."""

    status: Literal["feasible", "not_feasible"]
    reason: str
    agents: int
    competent: int
    tasks: int
    screened: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One forecaster over its pilots; errors are forecast minus truth, fractions of the tasks.

    curve_mae: over pilots and sizes; the others are of all agents. within: share of pilots whose
    absolute error is at most TOLERANCE.
    """

    forecaster: str
    pilots: int
    curve_mae: float
    coverage_mae: float
    bias: float
    within: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRow:
    """How often a nominal 95 % interval held the one truth, over pilots that overlap; mean width."""

    forecaster: str
    scheme: str
    pilots: int
    coverage: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with its central 95 % interval."""

    name: str
    value: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """A hypothesis, what was estimated for it, and its status by the rule in this module's text."""

    name: str
    claim: str
    status: Status
    estimates: tuple[Estimate, ...]
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RealStudy:
    """Everything that is said of one matrix. Estimates are None or empty where it is not feasible.

    covered, floor: C(M) and the blind-spot floor 1 - C(M) of the competent agents. sizes, curve: the
    exact mean coverage of random agents of each size.
    """

    name: str
    sha256: str
    feasibility: Feasibility
    settings: Settings
    covered: float | None
    floor: float | None
    rate: float | None
    phi: float | None
    sizes: tuple[int, ...]
    curve: tuple[float, ...]
    rows: tuple[Row, ...]
    intervals: tuple[IntervalRow, ...]
    hypotheses: tuple[Hypothesis, ...]

    def text(self) -> str:
        """As lines for a terminal."""
        return "\n".join(_lines(self))


def study(
    matrix: Matrix, settings: Settings, *, method: calibrated.Settings = calibrated.FROZEN
) -> RealStudy:
    """The whole study of a matrix. method: of the calibrated forecaster.

    Raises BadConfig where a pilot of a feasible matrix would leave no agent to forecast.
    """
    competent = matrix.of(np.flatnonzero(matrix.rates >= COMPETENT).tolist())
    feasible = feasibility(matrix)
    if feasible.status == "not_feasible":
        return RealStudy(
            name=matrix.name, sha256=matrix.sha256, feasibility=feasible, settings=settings, covered=None,
            floor=None, rate=None, phi=None, sizes=(), curve=(), rows=(), intervals=(), hypotheses=(),
        )  # fmt: skip
    solved = competent.solved
    agents = len(solved)
    if not 2 <= settings.pilot < agents:
        raise BadConfig(
            f"a pilot of {settings.pilot} does not fit {agents} competent agents; take 2 to {agents - 1}"
        )
    sizes = grid(agents)
    rng = streams.stream(settings.seed, "coverage", "pilots")
    pilots = intervals.draw_pilots(agents, settings.pilot, settings.pilots, rng)
    truth = estimators.exact_curve(solved, sizes)
    calibrated_row, posterior = _calibrated(
        solved, pilots[: settings.calibrated_pilots], sizes, settings.seed, method
    )
    return RealStudy(
        name=matrix.name, sha256=matrix.sha256, feasibility=feasible, settings=settings,
        covered=competent.covered, floor=1.0 - competent.covered, rate=float(solved.mean()),
        phi=mean_phi(solved), sizes=sizes, curve=tuple(truth.tolist()),
        rows=(*(_row(name, solved, pilots, sizes) for name in FORECASTERS), calibrated_row),
        intervals=(*_intervals(solved, pilots, settings), posterior),
        hypotheses=(
            dependence(solved, settings), tolerance(solved, pilots, settings), portfolios(solved, settings),
        ),
    )  # fmt: skip


def feasibility(matrix: Matrix) -> Feasibility:
    """The competence screen and the least numbers of agents and tasks."""
    competent = matrix.rates >= COMPETENT
    n, tasks = int(competent.sum()), len(matrix.tasks)
    short = [
        f"{have} {what} where the study needs {least}"
        for have, least, what in ((n, LEAST_AGENTS, "competent agents"), (tasks, LEAST_TASKS, "tasks"))
        if have < least
    ]
    return Feasibility(
        status="not_feasible" if short else "feasible",
        reason="; ".join(short) or f"{n} competent agents and {tasks} tasks",
        agents=len(matrix.agents),
        competent=n,
        tasks=tasks,
        screened=tuple(a for a, kept in zip(matrix.agents, competent, strict=True) if not kept),
    )


def grid(agents: int) -> tuple[int, ...]:
    """The sizes of the curve: those of GRID below `agents`, and `agents`."""
    return (*(size for size in GRID if size < agents), agents)


def dependence(solved: Solved, settings: Settings) -> Hypothesis:
    """H1: agents fail together, so that independence overstates coverage."""

    def both(block: Array) -> Array:
        return np.array([_dependence(solved[:, _columns(counts)]) for counts in block])

    rng = streams.stream(settings.seed, "coverage", "H1")
    drawn = bootstrap.nested_statistic(_tasks(solved), both, draws=settings.draws, rng=rng)
    values = _dependence(solved)
    estimates = tuple(
        _estimate(name, value, drawn[:, at])
        for at, (name, value) in enumerate(zip(("mean phi", "independence gap"), values, strict=True))
    )
    status: Status = "undecided"
    if all(e.lower > 0 for e in estimates):
        status = "supported"
    elif any(e.upper < 0 for e in estimates):
        status = "falsified"
    return Hypothesis(
        name="H1",
        claim="Agents fail together, so that independence overstates coverage",
        status=status,
        estimates=estimates,
        detail="mean pairwise phi over tasks, and the coverage that independence promises minus C(M)",
    )


def _dependence(solved: Solved) -> tuple[float, float]:
    promised = 1.0 - (1.0 - float(solved.mean())) ** len(solved)
    return mean_phi(solved), promised - float(solved.any(axis=0).mean())


def tolerance(solved: Solved, pilots: Positions, settings: Settings) -> Hypothesis:
    """H2: a forecaster that knows of dependence is within TOLERANCE of C(M)."""
    rng = streams.stream(settings.seed, "coverage", "H2")
    drawn = bootstrap.nested_statistic(
        _tasks(solved), lambda block: candidate_errors(solved, pilots, block), draws=settings.draws, rng=rng
    )
    (values,) = candidate_errors(solved, pilots, np.ones((1, solved.shape[1])))
    estimates = tuple(
        _estimate(f"{name} MAE", float(values[at]), drawn[:, at]) for at, name in enumerate(CANDIDATES)
    )
    return Hypothesis(
        name="H2",
        claim=f"A forecaster that knows of dependence is within {TOLERANCE:g} of the coverage of all agents",
        status=within_tolerance(estimates),
        estimates=estimates,
        detail=f"mean absolute error over {len(pilots)} pilots of {settings.pilot}, tolerance {TOLERANCE:g}",
    )


def within_tolerance(errors: Sequence[Estimate]) -> Status:
    """The rule of H2 on the candidates' mean absolute errors."""
    if any(e.upper <= TOLERANCE for e in errors):
        return "supported"
    return "falsified" if all(e.lower > TOLERANCE for e in errors) else "undecided"


def candidate_errors(solved: Solved, pilots: Positions, times: Array) -> Array:
    """Mean absolute error over pilots of each of CANDIDATES, (draws, candidates), in resamples of the tasks.

    times: (draws, N), how often each task occurs; pilot and truth are resampled together.
    """
    k, tasks = pilots.shape[1], solved.shape[1]
    counts = solved[pilots].sum(axis=1)  # (pilots, N)
    levels = (counts[:, None, :] == np.arange(k + 1)[:, None]).reshape(-1, tasks).astype(np.float64)
    # Whole numbers below 2**53: these matrix products are exact on every machine.
    statistics = of_histograms((times @ levels.T).astype(np.int64).reshape(len(times), len(pilots), k + 1))
    truth = (times @ solved.any(axis=0).astype(np.float64) / tasks)[:, None]
    size = np.array([len(solved)])
    made = [estimators.at(name, statistics, size)[..., 0] for name in CANDIDATES]
    return np.stack([np.abs(one - truth).mean(axis=1) for one in made], axis=1)


def portfolios(solved: Solved, settings: Settings) -> Hypothesis:
    """H3: a greedy portfolio covers more held-out tasks than the most accurate agents."""
    rng = streams.stream(settings.seed, "coverage", "H3")
    only_greedy, only_best, held_out = _halved(solved, settings.pilot, rng)
    gains = [_gain(*_halved(solved, settings.pilot, rng)) for _ in range(settings.splits)]
    p = mcnemar(only_greedy, only_best)
    status: Status = "undecided"
    if p <= ALPHA:
        status = "supported" if only_greedy > only_best else "falsified"
    lower, upper = exact.paired_difference(only_greedy, only_best, held_out)
    more, fewer = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    value = _gain(only_greedy, only_best, held_out)
    return Hypothesis(
        name="H3",
        claim="A greedy, diverse portfolio covers more held-out tasks than the most accurate agents",
        status=status,
        estimates=(Estimate(name="held-out gain", value=value, lower=lower, upper=upper),),
        detail=(
            f"of {held_out} held-out tasks the greedy {settings.pilot} agents alone solve {only_greedy}, the "
            f"most accurate {settings.pilot} alone {only_best}: McNemar's exact p = {p:.3g}; in "
            f"{len(gains)} further splits the greedy ones cover more in {more} and fewer in {fewer}"
        ),
    )


def mcnemar(gained: int, lost: int) -> float:
    """McNemar's exact two-sided p: are so many of the discordant pairs on one side by a fair coin?"""
    return min(1.0, 2.0 * float(bdtr(min(gained, lost), gained + lost, 0.5)))


def greedy(solved: Solved, size: int) -> list[int]:
    """Rows of the agents that newly solve most tasks, one after another; ties go to accuracy, then order."""
    rates = solved.sum(axis=1)
    left = np.ones(solved.shape[1], dtype=bool)
    chosen: list[int] = []
    for _ in range(size):
        # A task newly solved outweighs any accuracy: accuracy is at most the number of tasks.
        worth = (solved & left).sum(axis=1) * (solved.shape[1] + 1) + rates
        worth[chosen] = -1
        chosen.append(int(worth.argmax()))
        left &= ~solved[chosen[-1]]
    return chosen


def most_accurate(solved: Solved, size: int) -> list[int]:
    """Rows of the agents that solve most tasks; ties go to the matrix's order."""
    return [int(row) for row in np.argsort(-solved.sum(axis=1), kind="stable")[:size]]


def _halved(solved: Solved, size: int, rng: Generator) -> tuple[int, int, int]:
    """Held-out tasks solved by the greedy portfolio alone, by the most accurate alone, and all of them."""
    order = rng.permutation(solved.shape[1])
    half = len(order) // 2
    chosen_on, held_out = solved[:, order[:half]], solved[:, order[half:]]
    one = held_out[greedy(chosen_on, size)].any(axis=0)
    other = held_out[most_accurate(chosen_on, size)].any(axis=0)
    return int((one & ~other).sum()), int((other & ~one).sum()), held_out.shape[1]


def _gain(only_greedy: int, only_best: int, held_out: int) -> float:
    return (only_greedy - only_best) / held_out


def _tasks(solved: Solved) -> bootstrap.Design:
    """Every task a cluster of its own, drawn with replacement."""
    width = len(str(solved.shape[1]))
    return bootstrap.Design(paths=tuple((f"{t:0{width}}",) for t in range(solved.shape[1])), drawn=(True,))


def _columns(counts: Array) -> Positions:
    """The columns of a resample, each as often as it was drawn."""
    return np.repeat(np.arange(len(counts)), counts.astype(np.int64))


def _estimate(name: str, value: float, drawn: Array) -> Estimate:
    lower, upper = bootstrap.percentile_interval(drawn)
    return Estimate(name=name, value=value, lower=lower, upper=upper)


def _row(name: str, solved: Solved, pilots: Positions, sizes: Sequence[int]) -> Row:
    made = np.array([estimators.curve(name, solved[p], agents=len(solved), sizes=sizes) for p in pilots])
    return _judged(name, made, estimators.exact_curve(solved, sizes))


def _judged(name: str, made: Array, truth: Array) -> Row:
    """A forecaster's curves (pilots, sizes) against the truth (sizes,), whose last size is all agents."""
    errors = made - truth
    return Row(
        forecaster=name,
        pilots=len(made),
        curve_mae=float(np.abs(errors).mean()),
        coverage_mae=float(np.abs(errors[:, -1]).mean()),
        bias=float(errors[:, -1].mean()),
        within=float((np.abs(errors[:, -1]) <= TOLERANCE).mean()),
    )


def _intervals(solved: Solved, pilots: Positions, settings: Settings) -> tuple[IntervalRow, ...]:
    """Both bootstraps of every frozen forecaster."""
    blocks = solved[pilots]
    rng = streams.stream(settings.seed, "coverage", "bootstraps")
    resamples = {
        "task": intervals.resample_tasks(histograms(blocks), rng, replicates=settings.replicates),
        "agent": intervals.resample_agents(blocks, rng, replicates=settings.replicates),
    }
    truth = float(solved.any(axis=0).mean())
    return tuple(
        _held(name, scheme, *intervals.limits(name, drawn, len(solved)), truth)
        for name in FROZEN
        for scheme, drawn in resamples.items()
    )


def _calibrated(
    solved: Solved, pilots: Positions, sizes: Sequence[int], seed: int, method: calibrated.Settings
) -> tuple[Row, IntervalRow]:
    """The calibrated forecaster's curves and its intervals of C(M)."""
    made = [
        calibrated.predict(
            solved[pilot], agents=len(solved), sizes=sizes,
            rng=streams.stream(seed, "coverage", CALIBRATED, at), settings=method,
        )
        for at, pilot in enumerate(pilots)
    ]  # fmt: skip
    row = _judged(CALIBRATED, np.array([m.point for m in made]), estimators.exact_curve(solved, sizes))
    lower, upper = (np.array([getattr(m, end)[-1] for m in made]) for end in ("lower", "upper"))
    return row, _held(CALIBRATED, PREDICTIVE, lower, upper, float(solved.any(axis=0).mean()))


def _held(forecaster: str, scheme: str, lower: Array, upper: Array, truth: float) -> IntervalRow:
    return IntervalRow(
        forecaster=forecaster,
        scheme=scheme,
        pilots=len(lower),
        coverage=float(((lower <= truth) & (truth <= upper)).mean()),
        width=float((upper - lower).mean()),
    )


def _lines(made: RealStudy) -> Sequence[str]:
    head = f"{made.name}: {made.feasibility.status}, {made.feasibility.reason}"
    if made.covered is None or made.floor is None:
        return [head]
    rows = [
        f"  {r.forecaster:<16}{r.curve_mae:>9.3f}{r.coverage_mae:>14.3f}{r.bias:>+9.3f}{r.within:>13.0%}"
        for r in made.rows
    ]
    held = [
        f"  {f'{r.forecaster}/{r.scheme}':<28}{100 * r.coverage:>5.0f} %{r.width:>10.3f}"
        for r in made.intervals
    ]
    said = []
    for h in made.hypotheses:
        said.append(f"  {h.name} {h.status}: {h.claim}")
        said += [f"     {e.name} {e.value:+.3f} [{e.lower:+.3f}, {e.upper:+.3f}]" for e in h.estimates]
        said.append(f"     {h.detail}")
    return [
        head,
        f"  all competent agents solve {100 * made.covered:.1f} %, blind-spot floor {100 * made.floor:.1f} %",
        "",
        f"  {'forecaster':<16}curve MAE  coverage MAE     bias   within .03",
        *rows,
        "",
        f"  {'nominal 95 % interval':<28}  held     width   (one truth: descriptive)",
        *held,
        "",
        *said,
    ]
