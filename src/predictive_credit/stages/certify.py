"""Stage `certify`: a discovery audit of one task, from its registration to a bundle that verifies anywhere.

An audit of the stage graph has a secret that follows from the project's seed: it is fixed before the
run, and known to whoever reads params.yaml. The scripted agents cannot read that file. One of
`predictive-credit certify` draws a secret unless it is given a file.

A model's replies are on disk before they count. Where it is not there, or its budget is used up, the
run pauses with what it has, and the same command asks the rest.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from predictive_credit import compose, config, streams, tables
from predictive_credit.agents import agent as agents
from predictive_credit.agents import model_agent
from predictive_credit.certification import harness, reading, tasks, web
from predictive_credit.certification.agents import Agent, Asked, Script, Unavailable, form
from predictive_credit.certification.harness import Settings
from predictive_credit.certification.reading import Audit
from predictive_credit.errors import BadConfig, BadSource
from predictive_credit.journal import Journal
from predictive_credit.models import asking, providers, sending
from predictive_credit.models.asking import Purse
from predictive_credit.models.model import Model
from predictive_credit.models.provider import Provider
from predictive_credit.records import Prompt, Reply
from predictive_credit.sources import wheels
from predictive_credit.stages import guard, spending
from predictive_credit.stages.paths import Project
from predictive_credit.studies import params as study_params

SCRIPTED = "scripted"
REGISTERED = "registration.json"
REPLIES = "replies.jsonl"  # of a model agent, in the run's folder; the stage keeps them elsewhere
CONTEXT_TOKENS = 8192  # of the embedded model: a prompt with two histories takes some 3,000
SYSTEM = "You act in an experiment. Answer with one JSON object and nothing else."


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What the command line said; see its help."""

    root: Path
    task: str
    agent: str
    budget: str
    to: Path
    secret_file: Path | None
    isolated: str | None  # why isolation is attested against the agent's own word
    web: tuple[str, ...] = ()  # pages that the main run is told of, and whose hosts it may read
    overrides: tuple[str, ...] = ()  # of conf/, for a model's settings


def run(project: Project, params: config.Params, name: str) -> str:
    """Run an audit of params.yaml; write its run, its bundle and its metric."""
    chosen = audits(params).get(name)
    if chosen is None:
        raise BadConfig(f"no audit {name!r} in params.yaml; it holds {', '.join(sorted(audits(params)))}")
    to, kept = project.audit(name), project.audit_journal(name)
    secret = hashlib.sha256(str(params.seed).encode()).digest()
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.touch()  # an output of the stage graph, and empty where a script acts
    with acting(project.root, chosen.agent, kept, task=chosen.task) as agent:
        settings = Settings(task=chosen.task, agent=agent, budget=chosen.budget, secret=secret)
        audit = certify(settings, to, title=name)
    tables.write_json(project.audit_metric(name), {"budget": chosen.budget, **audit.numbers()})
    return f"{name}: core {audit.decision.core.verdict}, evidence {audit.decision.evidence.verdict}"


def audits(params: config.Params) -> dict[str, config.Audit]:
    """The configured audits by name. Raises BadConfig where params.yaml is of an older version."""
    if params.certification is None:
        raise BadConfig("params.yaml has no certification; write it with `predictive-credit params --write`")
    return dict(params.certification.audits)


def command(asked: Command) -> str:
    """Run what the command line asked for, or go on with it; the decision, gate by gate."""
    secret = None if asked.secret_file is None else _secret(asked.secret_file)
    kept = asked.to / REPLIES
    with acting(
        asked.root, asked.agent, kept, task=asked.task, sites=asked.web, overrides=asked.overrides
    ) as agent:
        settings = Settings(
            task=asked.task, agent=agent, budget=asked.budget, secret=secret,
            attest_isolation=None if asked.isolated is None else True,
            isolation_reason=asked.isolated or "", sites=asked.web,
            web=web.limits(asked.web) if asked.web else None,
        )  # fmt: skip
        settings.plan()  # words that do not fit are refused before anything is read
        if not (asked.to / REGISTERED).exists():  # later the registration stands, whatever can be read
            look(settings)
        audit = certify(settings, asked.to, title=asked.task)
    folder = asked.to / "bundle"
    return f"{audit.text()}\n{_ended(asked.to)}\n{folder}: check it with `predictive-credit verify {folder}`"


def _ended(to: Path) -> str:
    """How the main run ended where it left nothing to recover; empty where it left an artifact."""
    main = tables.read_json(to / "episodes" / "main.json")["result"]
    if main["artifact"] is not None:
        return ""
    after = f"after {_count(len(main['turns']), 'answered turn')}"
    return (
        f"\nThe main run left no artifact ({main['outcome']} {after}: {main['reason']}), so nobody was asked "
        "to recover it.\n"
    )


def look(settings: Settings) -> None:
    """Say on stderr which pages cannot be read. Raises BadSource where pages were given and none can.

    Such a run would be registered as one that may read the web, and would have seen nothing of it.
    """
    if settings.web is None:
        return
    pages = list(dict.fromkeys(settings.sites))
    missing = web.unreadable(pages, settings.web)
    if not missing:
        return
    said = (
        f"{len(missing)} of {_count(len(pages), 'page')} could not be read: "
        f"{', '.join(f'{url} ({why})' for url, why in missing.items())}"
    )
    if len(missing) == len(pages):
        raise BadSource(f"{said}; nothing was registered: correct --web, or leave it out")
    print(f"{said}; the main run is told of all the same", file=sys.stderr)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def certify(settings: Settings, to: Path, *, title: str | None) -> Audit:
    """Run an audit; what its bundle tells."""
    settings.plan()  # a name that nothing has is refused before a folder is made
    done = harness.certify(settings, to, title=title)
    return reading.open_audit(done.folder)


def _secret(file: Path) -> bytes:
    """The secret that a file holds, whatever its bytes are."""
    if not file.exists():
        raise BadSource(f"there is no secret file {file}; give one that is there, or leave it out")
    data = file.read_bytes().strip() if file.is_file() else b""
    if not data:
        raise BadSource(f"{file} holds no secret; give a file with more than blanks, or leave it out")
    return hashlib.sha256(data).digest()


@contextmanager
def acting(
    root: Path,
    name: str,
    replies: Path,
    *,
    task: str,
    sites: Sequence[str] = (),
    overrides: Sequence[str] = (),
) -> Iterator[Agent]:
    """The agent called so: our script, or a model of conf/agent whose replies are kept in a journal.

    The embedded model is held to the form of an answer by a grammar; a provider's is not.
    Raises BadConfig for the playbook, which writes explanations and cannot act.
    """
    if name == SCRIPTED:
        if overrides:
            raise BadConfig(
                f"{' '.join(overrides)} was asked of the scripted agent, which has no settings; give --agent "
                "a model"
            )
        yield Script()
        return
    project = Project(root)
    params = study_params.parse(compose.compose(root, [f"agent={name}", *overrides]), origin="conf/")
    chosen = params.agent
    if isinstance(chosen, config.Playbook):
        raise BadConfig(f"agent {name} writes explanations and cannot act; give {SCRIPTED} or a model")
    make = _making(chosen)
    # An answer that is cut off is none, whatever a card takes. A name that no task has is refused.
    tokens = max(chosen.max_tokens, tasks.design(task).answer_tokens)
    settings = agents.identity(chosen) | {"max_tokens": tokens}
    if isinstance(chosen, config.ModelAgent):
        settings |= {"held_to": form(task, sites)}
    purse = spending.purse(project, params, chosen, apart=replies)
    with Journal(replies, agents.identity(chosen)) as kept, make as opened:
        model = _Model(chosen=chosen, make=opened, journal=kept, purse=purse, max_tokens=tokens)
        yield Asked(
            ask=model.ask, identity=f"model:{chosen.name}:{_requested(chosen)}", settings=settings,
            kept=lambda text, held: kept.get(model.prompt(text, held)) is not None,
        )  # fmt: skip


def _requested(chosen: config.ModelAgent | config.Provided) -> str:
    """What is asked to answer: a provider's model id, or the embedded model's file."""
    if isinstance(chosen, config.ModelAgent):
        return f"{PurePosixPath(chosen.member).name}@sha256:{chosen.member_sha256[:12]}"
    return chosen.model


def _making(
    chosen: config.ModelAgent | config.Provided,
) -> AbstractContextManager[Callable[[], Model | Provider]]:
    """What opens the model. Raises at once, before anything is run, where a file or a key is missing."""
    if isinstance(chosen, config.ModelAgent):
        path = wheels.gguf(chosen)
        return _embedded(lambda: model_agent.embedded(path, chosen, context_tokens=CONTEXT_TOKENS))
    providers.key(chosen)
    return nullcontext(lambda: providers.make(chosen))


@contextmanager
def _embedded(load: Callable[[], Model]) -> Iterator[Callable[[], Model]]:
    """Opens the one embedded model of a run, loaded when it is first asked and freed at the end."""
    with ExitStack() as end:

        @functools.cache
        def loaded() -> Model:
            return end.enter_context(closing(load()))

        yield lambda: _Shared(loaded())


@dataclass(frozen=True, slots=True)
class _Shared:
    """A model that outlives who asks it: with it would go what it has read, which the next prompt repeats."""

    model: Model

    @property
    def name(self) -> str:
        return self.model.name

    def answer(self, prompt: Prompt) -> Reply:
        return self.model.answer(prompt)

    def close(self) -> None:
        """Nothing: the run closes the model."""


@dataclass(frozen=True, kw_only=True)
class _Model:
    """A model asked one prompt at a time, each reply on disk before it counts."""

    chosen: config.ModelAgent | config.Provided
    make: Callable[[], Model | Provider]
    journal: Journal
    purse: Purse | None
    max_tokens: int

    def prompt(self, text: str, held: Mapping[str, Any]) -> Prompt:
        """All that is sent; the seed follows from the text, in which each episode has its own tag."""
        grammar = model_agent.held_to(held) if isinstance(self.chosen, config.ModelAgent) else None
        return Prompt(
            system=SYSTEM, user=text, grammar=grammar, max_tokens=self.max_tokens,
            temperature=self.chosen.temperature, top_p=self.chosen.top_p, seed=streams.unit_seed(0, text),
        )  # fmt: skip

    def ask(self, text: str, held: Mapping[str, Any]) -> Reply:
        """The reply. Raises Stopped where the model is not there, or the budget is used up.

        Raises Unavailable for a prompt that is on record as given no content, as `unanswered: fallback`
        has it: this session is lost, and the run goes on.
        """
        prompt = self.prompt(text, held)
        reply = self.journal.get(prompt)
        if reply is None:
            unit = f"session-{len(self.journal) + 1}"
            reply = asking.ask([(unit, prompt)], self.make(), self.journal, purse=self._purse())[unit]
        if sending.is_missing(reply):
            raise Unavailable(reply.finish_reason)
        return reply

    def _purse(self) -> Purse | None:
        """The budget, less what this run has spent so far."""
        if self.purse is None or not isinstance(self.chosen, config.Provided):
            return None
        spent = spending.spent(self.journal.path, self.chosen.model, self.purse.price)
        return replace(self.purse, spent_usd=self.purse.spent_usd + spent)


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--audit", required=True, help="which audit of params.yaml")
    parser.add_argument("--root", type=Path, default=Path(), help="the project (default: here)")
    args = parser.parse_args(argv)

    def action() -> int:
        project = Project(args.root)
        print(run(project, study_params.load(project.params), args.audit))
        return 0

    sys.exit(guard.guarded(action))


if __name__ == "__main__":
    main()
