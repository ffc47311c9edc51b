"""What a planned population can resolve, as text for a terminal and as plain JSON values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from predictive_credit import canonical
from predictive_credit.report import words
from predictive_credit.report.exchange import text
from predictive_credit.report.tables import Row, Table
from predictive_credit.studies.power import GatePower, Power, Resolved, Share

ASSUMED = """\
effect: size of the true mean gain, to the side its gate looks; spread, within: standard deviations
between clusters and between the states of one; drift: mean gap of two calls; of calls: the standard
deviation that it brings to the gain of a state."""
COLUMNS = """\
power: share of studies in which the gate holds at the assumed effect, with its Monte Carlo error;
at null: where the true gain is 0, which for a gate on the mean (mean >= margin) is not its margin, and
for an equivalence where it is the margin; 80 %, 90 % from: the smallest gain with that power, of an
equivalence up to the largest; clusters for 80 %: in all, at the assumed effect, to about 5 %. The rule
reads the percentile interval; the t interval on cluster means stands beside it."""
HEAD = ("gate", "asked", "interval", "power", "at null", "80 % from", "90 % from", "clusters for 80 %")
NONE = "none"
EVIDENT = 3.0  # Monte Carlo errors by which a share has to miss its nominal one to be called off


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A study's power and what it is told with. like: the earlier run, None where all was stated."""

    study: str
    rule: str
    scale: str
    pool: str
    design: str  # `12 endpoints x 3 label fractions x 2 seeds`
    cluster: str  # what a cluster is called: the outermost drawn level
    stratum: str | None  # and the level it is drawn within, if there is one
    like: str | None
    unasked: tuple[str, ...]  # gates whose contexts are not asked
    untold: tuple[str, ...]  # gates about something other than a loss
    power: Power


def plain(told: Told) -> dict[str, Any]:
    """All figures as JSON values; a share is given with its Monte Carlo standard error."""
    power = told.power
    return {
        "study": told.study,
        "scale": told.scale,
        "pool": told.pool,
        "rule": told.rule,
        "design": told.design,
        "states": power.states,
        "clusters": power.clusters,
        "cluster": told.cluster,
        "most_clusters": power.most,
        "simulated": canonical.plain(power.effort),
        "like": told.like,
        "gates": [_plain(gate) for gate in power.gates],
        "together": canonical.plain(power.rule),
        "not_asked": list(told.unasked),
        "not_simulated": list(told.untold),
        "limits": list(limits(told)),
    }


def _plain(gate: GatePower) -> dict[str, Any]:
    parts = gate.assumed.components
    return {
        "gate": gate.name,
        **gate.key._asdict(),
        "asked": gate.ask.words,
        "effect": gate.assumed.effect,
        "null": gate.ask.null,
        "nominal": gate.nominal,
        "spread": parts.spread,
        "within": parts.within,
        "drift": parts.drift,
        "calls": parts.calls,
        "resolved": canonical.plain(gate.resolved),
    }


def printed(told: Told) -> str:
    """Population, assumptions, gates and limits as aligned text."""
    parts = [_population(told), text(_assumed(told)), text(_gates(told)), "\n".join(limits(told))]
    return "\n\n".join(parts)


def limits(told: Told) -> tuple[str, ...]:
    """Sentences on what these figures cannot be taken to mean."""
    power = told.power
    untold = words.listed(told.untold)
    sentences = (
        (power.reason, f"No interval at all: {power.reason}; gates that read one never hold."),
        (told.unasked, f"Not asked: {', '.join(told.unasked)}; the rule {told.rule} cannot hold without."),
        (untold, f"Not simulated: {untold}, which the rule {told.rule} asks too."),
    )
    return (
        *(sentence for holds, sentence in sentences if holds),
        *_off(told),
        *_apart(told),
        *_like(told),
        "Gains are simulated as normal, outcomes as defined; figures are as good as what is assumed.",
    )


def _population(told: Told) -> str:
    power, effort = told.power, told.power.effort
    strata = "" if told.stratum is None else f", drawn within {power.strata} strata by {told.stratum}"
    return (
        f"{told.study} ({told.scale}, pool {told.pool}): {power.states} states = {told.design}; "
        f"{power.clusters} clusters ({told.cluster}){strata}\n"
        f"{effort.studies:,} simulated studies of {effort.draws:,} bootstrap draws; for every number of "
        f"clusters that is tried, {effort.search_studies:,} of {effort.search_draws:,}"
    )


def _assumed(told: Told) -> Table:
    rows = {
        gate.key: tuple(
            _figure(value)
            for value in (
                gate.assumed.effect, gate.assumed.components.spread, gate.assumed.components.within,
                gate.assumed.components.drift, gate.assumed.components.calls,
            )
        )
        for gate in told.power.gates
    }  # fmt: skip
    whence = "" if told.like is None else f"; what is not stated is of {told.like}, which verifies"
    return Table(
        caption=f"Assumed, in the unit of the loss{whence}",
        columns=("contrast", "effect", "spread", "within", "drift", "of calls"),
        rows=tuple((str(key), *row) for key, row in rows.items()),
        note=ASSUMED,
    )


def _gates(told: Told) -> Table:
    rows = [_row(gate, found, told.power.most) for gate in told.power.gates for found in gate.resolved]
    reachable = all(gate.ask.can_hold(gate.assumed.effect) for gate in told.power.gates)
    for whole in told.power.rule:
        needed = _clusters(whole.clusters_80, reachable, told.power.most)
        rows.append(("all of them", "", whole.interval, _share(whole.power), "", "", "", needed))
    return Table(
        caption=f"Power of the gates of the rule {told.rule}",
        columns=HEAD,
        rows=tuple(rows),
        note=COLUMNS,
        text=frozenset({1, 2}),
    )


def _row(gate: GatePower, found: Resolved, most: int) -> Row:
    effects = (_effect(value, gate) for value in (found.effect_80, found.effect_90))
    reachable = gate.ask.can_hold(gate.assumed.effect)
    return (
        gate.name, gate.ask.words, found.interval or "", _share(found.power), _share(found.at_null), *effects,
        _clusters(found.clusters_80, reachable, most),
    )  # fmt: skip


def _off(told: Told) -> list[str]:
    """Where the rate at the null is not what the level says, under the interval that the rule reads."""
    rates = [
        (gate.name, gate.under("percentile").at_null, gate.nominal)
        for gate in told.power.gates
        if gate.nominal is not None and told.power.reason is None
    ]
    off = [(name, of, level) for name, of, level in rates if abs(of.share - level) > EVIDENT * of.error]
    why = (
        (True, f"the percentile interval is too narrow with {told.power.clusters} clusters"),
        (False, "the percentile interval is wider than it need be where states of a cluster differ most"),
    )
    sentences = []
    for is_above, reason in why:
        if found := [(of.share, level) for _, of, level in off if (of.share > level) is is_above]:
            low, high = (f"{100 * end(of for of, _ in found):.1f}" for end in (min, max))
            seen = f"{low} %" if low == high else f"{low} to {high} %"
            gates = words.listed([name for name, of, level in off if (of.share > level) is is_above])
            meant = f"{100 * found[0][1]:.1f} %"
            sentences.append(f"At the null {gates} held in {seen} of studies instead of {meant}: {reason}.")
    return sentences


def _apart(told: Told) -> list[str]:
    """Which gates of a rule are simulated without what ties them, so that they hold together by chance."""
    drawn = dict.fromkeys(" ".join(gate.key[:2]) for gate in told.power.gates)
    if len(drawn) < 2 or not told.power.rule:
        return []
    return [
        f"Gains in {words.listed(list(drawn))} are simulated as independent of each other: where they go "
        "together, all gates hold at once more often than is told here."
    ]


def _like(told: Told) -> list[str]:
    """That what an earlier run gives is an estimate, which the simulation takes for the truth."""
    if told.like is None:
        return []
    return [
        f"What is taken from {told.like} is an estimate, an uncertain one where its clusters are few, and "
        "nothing of that uncertainty reaches the power."
    ]


def _clusters(needed: int | None, reachable: bool, most: int) -> str:
    if needed is not None:
        return f"{needed:,}"
    return f"more than {most:,}" if reachable else "no number"


def _effect(value: float | None, gate: GatePower) -> str:
    if value is None:
        return NONE
    return f"to {_figure(value)}" if gate.ask.kind == "equivalence" else _figure(value)


def _share(of: Share) -> str:
    return f"{100 * of.share:.1f} +-{100 * of.error:.1f} %"


def _figure(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value == 0.0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"
