"""Two sample states, a burn-in and cards, for tests of what is asked and how it is read."""

from predictive_credit.agents import agent, playbook
from predictive_credit.contexts import Sampling
from predictive_credit.forecasters import sentence
from predictive_credit.records import BurnIn, Explanation, Intervention, Prompt, Reply, State

SAMPLING = Sampling(grammar=sentence.GRAMMAR, max_tokens=64, temperature=0.7, top_p=0.95)
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
        id=f"molecular/{task}/{budget:g}/{seed}", study="molecular", task=task, budget=budget, seed=seed,
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


def burn_in(mean: float = 0.004, *, q10: float = -0.01, q90: float = 0.02) -> BurnIn:
    """A burn-in in which every intervention did the same."""
    spread = {"mean": mean, "q10": q10, "q90": q90, "n": 18.0}
    return BurnIn(
        name="synthetic", tasks=("unused",), n_outcomes=108, n_undefined=0, mean=mean, mean_absolute=0.008,
        q10=q10, q90=q90, by_intervention=dict.fromkeys(ACTIONS, spread),
    )  # fmt: skip


def card(of: State, change: float) -> Explanation:
    """The playbook's card about a state where the burn-in's mean times headroom is `change`."""
    change /= playbook.headroom(of.facts["cv_auc"])
    text = playbook.card_text(of, burn_in(change, q10=change - 0.011, q90=change + 0.014))
    return agent.explanation(of.id, "playbook", reply(text))


def reply(text: str, finish_reason: str | None = "stop") -> Reply:
    return Reply(text=text, finish_reason=finish_reason, model_requested="fake", model_resolved="fake 1")


def prompt(user: str = "What will happen?", seed: int = 1) -> Prompt:
    return Prompt(
        system="You forecast.", user=user, grammar=None, max_tokens=16, temperature=0.7, top_p=0.9, seed=seed
    )
