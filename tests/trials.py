"""Two sample states, a burn-in and cards, for tests of what is asked and how it is read."""

from collections.abc import Sequence

from predictive_credit.agents import agent, playbook
from predictive_credit.contexts import Sampling
from predictive_credit.forecasters import sentence
from predictive_credit.records import (
    BurnIn,
    Explanation,
    Intervention,
    Prompt,
    Reply,
    State,
    Target,
    TargetBurnIn,
)
from predictive_credit.studies.molecular.textbook import TEXTBOOK

ROC_AUC = Target(
    name="roc_auc", phrase="ROC AUC", unit="ROC AUC", suffix="", size="0.0###", lower=-1, upper=1
)
ACCURACY = Target(
    name="accuracy_pp", phrase="Accuracy", unit="percentage points", suffix=" percentage points",
    size="?#.##", lower=-100, upper=100, large=1.0,
)  # fmt: skip
LOG_LOSS = Target(
    name="log_loss", phrase="log loss", unit="nats", suffix=" nats", size="#.####", lower=-10, upper=10,
    better="lower",
)  # fmt: skip
ONE, TWO = (ROC_AUC,), (ACCURACY, LOG_LOSS)
SAMPLING = Sampling(grammar=sentence.grammar(ONE), max_tokens=64, temperature=0.7, top_p=0.95)
ACTIONS = {
    "class_balanced": "Weight the training loss by inverse class frequency, so that actives count equally.",
    "add_descriptors": "Add 15 standardised physicochemical descriptors to the fingerprint.",
    "radius_3": "Use Morgan fingerprints of radius 3 instead of radius 2, with the same number of bits.",
    "bits_2048": "Fold the Morgan fingerprint to 2,048 bits instead of 1,024, with the same radius.",
    "stronger_l2": "Make the L2 penalty ten times stronger.",
    "weaker_l2": "Make the L2 penalty ten times weaker.",
}


def state(
    seed: int = 1, *, task: str = "NR-AhR", budget: float = 0.5, action: str = "stronger_l2",
    cv_auc: float | None = 0.842,
) -> State:  # fmt: skip
    level = "is not available" if cv_auc is None else f"is {cv_auc:.3f} on these training compounds"
    n_train = 2620 + seed
    text = ACTIONS[action]
    return State(
        id=f"molecular/{task}/{budget:g}/{seed}", study="molecular", task=task,
        cluster=(task, f"{budget:g}", str(seed)),
        budget=budget, seed=seed,
        description=(
            f"Endpoint {task} is a binary assay label of small molecules. The parent model is L2-regularised "
            "logistic regression on Morgan fingerprints of radius 2 with 1,024 bits. It is trained on "
            f"{100 * budget:g} % of the available training labels: {n_train:,} compounds, of which 309 are "
            f"active. Its cross-validated ROC AUC {level}. Planned change: {text} Everything else stays as "
            "it is. Parent and changed model are fitted on the same training compounds and scored on the "
            "same held-out compounds. Measured is the change in held-out ROC AUC."
        ),
        facts={"n_train": n_train, "n_train_active": 309, "prevalence": 0.118, "cv_auc": cv_auc},
        intervention=Intervention(name=action, text=text),
    )  # fmt: skip


def learned(mean: float = 0.004, *, q10: float = -0.01, q90: float = 0.02) -> TargetBurnIn:
    """One target's burn-in, in which every intervention did the same."""
    spread = {"mean": mean, "q10": q10, "q90": q90, "n": 18.0}
    return TargetBurnIn(
        n_outcomes=108, n_undefined=0, mean=mean, mean_absolute=0.008, q10=q10, q90=q90,
        by_intervention=dict.fromkeys(ACTIONS, spread),
    )  # fmt: skip


def burn_in(
    mean: float = 0.004, *, q10: float = -0.01, q90: float = 0.02, targets: Sequence[Target] = ONE
) -> BurnIn:
    """A burn-in in which every intervention did the same to every target."""
    each = {target.name: learned(mean, q10=q10, q90=q90) for target in targets}
    return BurnIn(name="synthetic", tasks=("unused",), targets=each)


def card(of: State, change: float) -> Explanation:
    """The playbook's card about a state where the burn-in's mean times headroom is `change`."""
    change /= TEXTBOOK.headroom(of.facts)
    known = burn_in(change, q10=change - 0.011, q90=change + 0.014)
    return agent.explanation(
        of.id, "elicited", "playbook", reply(playbook.card_text(of, known, TEXTBOOK, ONE))
    )


def reply(text: str, finish_reason: str | None = "stop") -> Reply:
    return Reply(text=text, finish_reason=finish_reason, model_requested="fake", model_resolved="fake 1")


def prompt(user: str = "What will happen?", seed: int = 1) -> Prompt:
    return Prompt(
        system="You forecast.", user=user, grammar=None, max_tokens=16, temperature=0.7, top_p=0.9, seed=seed
    )
