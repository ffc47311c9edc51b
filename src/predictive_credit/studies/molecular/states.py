"""The population of the molecular study: endpoints, splits, and each state's public side.

Nothing here reads a held-out label, except that the split itself is stratified: it gives both
sides the same share of actives, and so tells no more than the training share does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from predictive_credit.config import Execution
from predictive_credit.errors import BadConfig
from predictive_credit.records import Intervention, JsonScalar, State
from predictive_credit.streams import stream
from predictive_credit.studies import workers
from predictive_credit.studies.molecular.config import MolecularConfig
from predictive_credit.studies.molecular.features import Features
from predictive_credit.studies.molecular.fitting import fit, unpacked
from predictive_credit.studies.molecular.interventions import PARENT, PARENT_TEXT, assigned
from predictive_credit.studies.molecular.pool import Table, escaped

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

HELD_OUT = 0.2  # of an endpoint's labelled compounds
FOLDS = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """Positions of one endpoint's labelled compounds. A budget's training rows are a prefix of `train`."""

    train: Rows
    test: Rows

    def prefix(self, budget: float) -> Rows:
        """The first `budget` of the training rows, at least one: smaller budgets nest in larger ones."""
        return self.train[: max(1, round(budget * len(self.train)))]


Splits = Mapping[tuple[str, int], Split]  # by endpoint and seed


def rows(splits: Splits, state: State) -> tuple[Rows, Rows]:
    """A state's training and held-out rows."""
    if state.seed is None or state.budget is None:
        raise ValueError(f"{state.id} is no state of the molecular study: it lacks a budget or a seed")
    split = splits[state.task, state.seed]
    return split.prefix(state.budget), split.test


def choose_endpoints(table: Table, config: MolecularConfig) -> tuple[str, ...]:
    """The study's endpoints, in the order that assigns interventions.

    Named ones stand as named. Otherwise the `n_endpoints` with most labelled compounds, largest
    first, ties by name: so a smaller scale's states are among a larger scale's. Labelled counts are
    public; no label is looked at. Raises BadConfig for a name the pool lacks, or one named twice.
    """
    if config.endpoints is None:
        counts = table.labels.notna().sum()
        return tuple(
            sorted(table.endpoints, key=lambda name: (-int(counts[name]), name))[: config.n_endpoints]
        )
    chosen = [name if name in table.endpoints else escaped(name) for name in config.endpoints]
    repeated = [name for name in chosen if chosen.count(name) > 1]
    if repeated:
        raise BadConfig(
            f"endpoints holds {repeated[0]} twice; each state needs an id of its own, so name it once"
        )
    for name, asked in zip(chosen, config.endpoints, strict=True):
        if name not in table.endpoints:
            some = ", ".join(table.endpoints[:6]) + (", ..." if len(table.endpoints) > 6 else "")
            raise BadConfig(f"the pool has no endpoint {asked!r}; it holds {some}; correct endpoints")
    return tuple(chosen)


def splits(table: Table, config: MolecularConfig, *, seed: int) -> dict[tuple[str, int], Split]:
    """Each endpoint's split under each of the study's seeds, from the stream (split, endpoint, seed)."""
    return {
        (endpoint, number): split(table.label(endpoint), rng=stream(seed, "split", endpoint, number))
        for endpoint in choose_endpoints(table, config)
        for number in config.seeds
    }


def split(labels: Array, *, rng: Generator) -> Split:
    """Four fifths for training, one for testing, of the rows of `labels` (molecule,) that are not NaN.

    Stratified where both classes have two compounds or more, so that each side gets one of each.
    """
    classes = [rng.permutation(np.flatnonzero(labels == value)) for value in (0.0, 1.0)]
    if min(map(len, classes)) < 2:
        classes = [rng.permutation(np.concatenate(classes))]
    cuts = [_held_out(len(rows)) for rows in classes]
    test = np.concatenate([rows[:cut] for rows, cut in zip(classes, cuts, strict=True)])
    train = np.concatenate([rows[cut:] for rows, cut in zip(classes, cuts, strict=True)])
    return Split(train=rng.permutation(train), test=np.sort(test))


def states(
    table: Table,
    features: Features,
    config: MolecularConfig,
    splits: Splits,
    *,
    study: str,
    execution: Execution,
) -> tuple[State, ...]:
    """Every state of the study, sorted by id (`study/endpoint/budget/seed`).

    Facts come from the training labels of the state's own label fraction and from structures. That
    budgets and seeds do not repeat, config has seen to.
    """
    cells = [
        (endpoint, budget, seed, assigned(i, j))
        for i, endpoint in enumerate(choose_endpoints(table, config))
        for j, budget in enumerate(config.budgets)
        for seed in config.seeds
    ]
    bits = unpacked(features.fingerprints[PARENT.fingerprint])
    prefixes = [(splits[e, seed].prefix(budget), table.label(e)) for e, budget, seed, _ in cells]
    jobs = [(bits[rows], labels[rows]) for rows, labels in prefixes]
    aucs = workers.run(cross_validated_auc, jobs, execution, title="states")
    made = [
        _state(study, cell, _facts(job, len(splits[cell[0], cell[2]].test), auc), table.meaning)
        for cell, job, auc in zip(cells, jobs, aucs, strict=True)
    ]
    return tuple(sorted(made, key=lambda state: state.id))


def cross_validated_auc(job: tuple[Any, Array]) -> float | None:
    """Mean ROC AUC of the parent over three stratified folds of training rows alone.

    `job` holds sparse fingerprints (row, bits) and labels (row,), in the split's random order.
    None where a class has fewer than three compounds, for some fold would lack it.
    """
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold

    bits, labels = job
    if min((labels == 0).sum(), (labels == 1).sum()) < FOLDS:
        return None
    data = bits.astype(float)
    aucs = []
    for train, test in StratifiedKFold(FOLDS).split(labels, labels):
        model = fit(PARENT, data[train], labels[train])
        aucs.append(roc_auc_score(labels[test], model.decision_function(data[test])))
    return round(float(np.mean(aucs)), 4)


def _held_out(n: int) -> int:
    """A fifth of n, but one at least and not all, where n allows."""
    return min(max(1, round(HELD_OUT * n)), max(n - 1, 0))


def _facts(job: tuple[Any, Array], n_held_out: int, auc: float | None) -> dict[str, JsonScalar]:
    """Public facts, rounded so that a last bit cannot change a prompt."""
    bits, labels = job
    n = len(labels)
    return {
        "n_train": n,
        "n_train_active": int(labels.sum()),
        "prevalence": round(float(labels.mean()), 4) if n else None,
        "cv_auc": auc,
        "n_held_out": n_held_out,
        "mean_bits_set": round(bits.nnz / n, 1) if n else None,
    }


def _state(
    study: str, cell: tuple[str, float, int, Intervention], facts: dict[str, JsonScalar], meaning: str
) -> State:
    endpoint, budget, seed, intervention = cell
    return State(
        id=f"{study}/{endpoint}/{budget:g}/{seed}",
        study=study,
        task=endpoint,
        cluster=(endpoint, f"{budget:g}", str(seed)),
        budget=budget,
        seed=seed,
        description=_description(endpoint, budget, intervention, facts, meaning),
        facts=facts,
        intervention=intervention,
    )


def _description(
    endpoint: str, budget: float, intervention: Intervention, facts: Mapping[str, JsonScalar], meaning: str
) -> str:
    """Plain sentences, about a hundred words. It names levels and never the size of a change.

    Small models copy a number that they are shown, and drift would vanish under every context.
    """
    auc = facts["cv_auc"]
    level = (
        "Its cross-validated ROC AUC is not available, because one class has too few training compounds."
        if auc is None
        else f"In three-fold cross-validation on these training compounds its ROC AUC is {auc:.3f}."
    )
    share = "" if facts["prevalence"] is None else f" ({100 * float(facts['prevalence']):.1f} %)"
    return (
        f"Endpoint {endpoint} is a binary assay label of small molecules. {meaning} "
        f"The parent model is {PARENT_TEXT}. "
        f"It is trained on {100 * budget:g} % of the available training labels: {facts['n_train']:,} "
        f"compounds, of which {facts['n_train_active']:,}{share} are active. {level} "
        f"Planned change: {intervention.text} Everything else stays as it is. "
        f"Parent and changed model are fitted on the same training compounds and scored on the same "
        f"{facts['n_held_out']:,} held-out compounds. Measured is the change in held-out ROC AUC: "
        "the changed model's minus the parent's."
    )
