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

OVERRIDES = "Hydra overrides, e.g. scale=full pool=tox21"
RAW = argparse.RawDescriptionHelpFormatter
Command = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the console script."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["run"] and not {"-h", "--help"} & set(words[1:2]):
        _exit(lambda: _run(words[1:]))  # Hydra has a command line of its own
    args = _parsed(words)
    command: Command = args.command
    _exit(lambda: command(args))


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    """The words of a command; overrides may stand anywhere after its first positional word.

    argparse takes positional words as one run, and so would refuse an override after an option.
    """
    parser = _parser()
    args, later = parser.parse_known_args(words)
    if later and (not hasattr(args, "overrides") or any(word.startswith("-") for word in later)):
        parser.error(f"unrecognized arguments: {' '.join(later)}")
    if later:
        args.overrides = [*args.overrides, *later]
    return args


def _exit(action: Callable[[], int]) -> NoReturn:
    # The shell is imported per command: NumPy, pandas and Hydra are not needed to print help.
    from predictive_credit.stages.guard import guarded

    sys.exit(guarded(action))


class Add:
    """Adds a subcommand to the parser."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._commands = parser.add_subparsers(required=True, metavar="SUBCOMMAND")

    def __call__(
        self, name: str, help: str, command: Command, *examples: str, root: bool = True
    ) -> argparse.ArgumentParser:
        """root: whether it takes the project's folder."""
        sub = self._commands.add_parser(
            name, help=help, description=help, epilog="\n".join(examples), formatter_class=RAW
        )
        if root:
            sub.add_argument("--root", type=Path, default=Path(), help="the project (default: here)")
        sub.set_defaults(command=command)
        return sub


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="predictive-credit", description=DESCRIPTION, formatter_class=RAW)
    parser.add_argument("--version", action="version", version=__version__)
    add = Add(parser)
    _to_run(add)
    _to_judge(add)
    _to_share(add)
    return parser


def _to_run(add: Add) -> None:
    """What plans, fetches, asks and opens."""
    plan = add(
        "plan", "Print the states and units a study would ask, without running anything.", _plan,
        "  predictive-credit plan",
        "  predictive-credit plan molecular scale=full pool=tox21",
    )  # fmt: skip
    plan.add_argument("study", nargs="?", help="one study (default: all)")
    plan.add_argument("overrides", nargs="*", help=OVERRIDES)
    _to_size(add)
    fetch = add(
        "fetch", "Fetch the pools and the embedded model in use, and check their sha256.", _fetch,
        "  predictive-credit fetch",
        "  PREDICTIVE_CREDIT_MIRROR=mirror predictive-credit fetch pool=tox21",
    )  # fmt: skip
    fetch.add_argument("overrides", nargs="*", help=OVERRIDES)
    run = add(
        "run", "Run every stage in a folder of its own with Hydra; -m sweeps.", _plan,
        "  predictive-credit run forecaster=priors",
        "  predictive-credit run -m pool=moleculeace,tox21 seed=1,2",
        "",
        "Each job has its folder under outputs/ or multirun/, with params.yaml, data/, metrics/ and",
        "report/; predictive-credit diff, verify and exchange take such folders.",
        root=False,
    )  # fmt: skip
    run.add_argument(
        "--freeze-only", action="store_true",
        help="stop every job at the freeze; then `predictive-credit open --sweep DIR`",
    )  # fmt: skip
    run.add_argument("overrides", nargs="*", help=f"{OVERRIDES}; -m for a sweep")
    opened = add(
        "open", "Open a frozen study's outcomes, those that arrived later included, and decide it.", _open,
        "  predictive-credit open table --outcomes outcomes.csv",
        "",
        "`dvc repro` opens by itself what was executed here. This is for outcomes that come from elsewhere,",
        "later: they are filed under data/arrived/, opened, scored and decided; `dvc repro` then agrees.",
    )  # fmt: skip
    opened.add_argument("study", nargs="?", help="a frozen study")
    opened.add_argument(
        "--sweep", type=Path, help="a sweep that was run with --freeze-only: open every study of every job"
    )
    opened.add_argument("--outcomes", type=Path, help="the file of outcomes that arrived")
    serve = add(
        "serve", "Serve the embedded model on loopback, by the Anthropic and the OpenAI protocol.", _serve,
        "  predictive-credit serve --port 8080",
        "  predictive-credit serve --port 8080 --study molecular",
        "",
        "For trials of what asks a provider, offline: forecaster=pro, anthropic and openai find it at the",
        "address that the environment names. The model is too small to write JSON by itself.",
    )  # fmt: skip
    serve.add_argument("--port", type=int, default=8080, help="default: 8080; 0 takes a free one")
    serve.add_argument("--name", default="smollm2", help="the model id it serves under (default: smollm2)")
    serve.add_argument(
        "--study", help="hold every answer to the sentence that this study's forecasts are elicited in"
    )


def _to_size(add: Add) -> None:
    """What tells what a planned study can resolve."""
    power = add(
        "power", "Simulate which gates a planned study can resolve, and how many clusters would.", _power,
        "  predictive-credit power molecular scale=full --effect 0.02 --like bundles/molecular",
        "  predictive-credit power controlled --effect 1 --spread 2 --drift 1 --effect log_loss=0.02 \\",
        "    --spread log_loss=0.05 --drift log_loss=0.02",
        "",
        "Before a call is paid for, and before anything is fetched.",
        "NUMBER holds for every contrast, KEY=NUMBER for those of a target, a measure or a pair (drift=0.01,",
        "S-M=0.02). Give an option again for another key; the last that fits stands. An effect is a size:",
        "each gate knows its side.",
    )  # fmt: skip
    power.add_argument("study", help="one study")
    power.add_argument("overrides", nargs="*", help=OVERRIDES)
    for option, what in (
        ("effect", "true mean gain to be detected, in the loss's unit; of an equivalence, what is true"),
        ("spread", "standard deviation of the gain between clusters"),
        ("within", "standard deviation of the gain between states of a cluster, calls aside"),
        ("drift", "mean absolute gap of the points of two calls, in the target's unit"),
    ):
        power.add_argument(f"--{option}", action="append", default=[], metavar="[KEY=]NUMBER", help=what)
    power.add_argument(
        "--like",
        type=Path,
        metavar="BUNDLE",
        help="an earlier run, which must verify, whose spread, within and drift are assumed",
    )
    power.add_argument(
        "--simulations",
        type=int,
        metavar="N",
        help="studies to simulate, 100 to 100000 (default: 2000); the error falls with it",
    )
    power.add_argument("--json", action="store_true", help="print one JSON object instead")


def _to_judge(add: Add) -> None:
    """What verifies, reports and compares."""
    verify = add(
        "verify", "Replay a decision from its frozen files; calls no model, needs no network.", _verify,
        "  predictive-credit verify bundles/molecular",
        "  predictive-credit verify .",
        "  predictive-credit verify results/certification/sqlite --json",
        "",
        "--json prints one object. Of a discovery audit: ok, bundle_id, errors and replayed_verdict, as",
        "dcp-audit has them. Of studies: ok, errors, and decision by study. Exit 0 if ok, else 1.",
        "ok says that the record is honest: a refuted claim verifies too.",
        root=False,
    )  # fmt: skip
    verify.add_argument(
        "target", type=Path, help="a study's bundle, a project's root, or a discovery audit's bundle"
    )
    verify.add_argument("--json", action="store_true", help="print one JSON object instead")
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
    exchange = add(
        "exchange", "Tabulate credit by generator and forecaster over decided studies.", _exchange,
        "  predictive-credit exchange multirun/2026-03-01/10-00-00",
        "  predictive-credit exchange main pro flash --csv credit.csv",
    )  # fmt: skip
    exchange.add_argument(
        "places", nargs="+", help="a sweep's folder, a project, a bundle, a revision or DVC experiment"
    )
    exchange.add_argument(
        "--measure", choices=("point_error", "interval_score"), help="default: the one the rule reads"
    )
    exchange.add_argument("--csv", type=Path, help="also write every figure as CSV")
    exchange.add_argument("--json", action="store_true", help="print the rows as JSON")
    _to_rank(add)
    _to_forecast_coverage(add)
    _to_certify(add)


def _to_rank(add: Add) -> None:
    """What orders planned experiments."""
    rank = add(
        "rank", "Order planned experiments by expected gain per cost, on checked forecasts.", _rank,
        "  predictive-credit rank proposals.jsonl --using results/molecular-moleculeace-full --budget 3",
        "  predictive-credit rank --replay results/molecular-moleculeace-full",
        "",
        "A proposal has id, situation, intervention and cost, and may have task, explanation and a forecast",
        "(point, lower, upper, forecaster, context). Without forecasts the evidence's own forecaster is",
        "asked, two calls each; its replies are kept beside the file, so a second run asks nothing. Evidence",
        "must verify, and its checks of commitment, delivery and sensitivity must have passed; explanations",
        "are shown where value passed.",
    )  # fmt: skip
    rank.add_argument("proposals", nargs="?", type=Path, help="a CSV, JSONL or Parquet file of proposals")
    rank.add_argument(
        "--using", type=Path, action="append", default=[], metavar="EVIDENCE",
        help="a decided study's bundle or project; several: the best forecaster that passed is taken",
    )  # fmt: skip
    rank.add_argument(
        "--replay", type=Path, metavar="EVIDENCE",
        help="instead: play the evidence's own states as proposals, and print the regret of each order",
    )  # fmt: skip
    rank.add_argument("--study", help="of a project with several studies")
    rank.add_argument("--target", help="what is gained (default: the study's first target)")
    rank.add_argument(
        "--baseline", type=float, help="the outcome that is no gain (default: 0; needed for a level)"
    )
    rank.add_argument("--budget", type=float, help="say what this amount buys, in the unit of the costs")
    rank.add_argument("--top", type=int, default=3, metavar="K", help="also the chance of the first K places")
    rank.add_argument("--seed", type=int, default=1, help="of the draws (default: 1)")
    rank.add_argument("--equal-costs", action="store_true", help="with --replay: every state costs 1")
    rank.add_argument("--replies", type=Path, help="where replies are kept (default: beside the proposals)")
    rank.add_argument("--max-cost", type=float, metavar="USD", help="what a hosted forecaster may cost")
    rank.add_argument("--out", type=Path, help="also write the ranking as CSV")
    rank.add_argument("--json", action="store_true", help="print one line of JSON instead")


def _to_certify(add: Add) -> None:
    """What audits a discovery."""
    certify = add(
        "certify", "Audit a task's discovery: register, run, challenge, decide, and write the bundle.",
        _certify,
        "  predictive-credit certify sqlite",
        "  predictive-credit certify device --agent smollm2 --budget quick",
        "  predictive-credit certify knapsack --agent openai agent.model=MODEL",
        "  predictive-credit certify sqlite --web https://www.sqlite.org/partialindex.html",
        "",
        "Run the same command again to go on after a stop. A full budget takes some minutes with the",
        "scripted agent; a quick one plays too few episodes to certify anything.",
    )  # fmt: skip
    certify.add_argument("task", help="sqlite, catalyst, device or knapsack")
    certify.add_argument(
        "overrides", nargs="*", help="a model's settings, e.g. agent.model=MODEL agent.max_cost=2"
    )
    certify.add_argument(
        "--agent", default="scripted", help="scripted (default), or a model: an option of conf/agent"
    )
    certify.add_argument("--budget", choices=("quick", "full"), default="full", help="default: full")
    certify.add_argument("--to", type=Path, help="the run's folder (default: audits/TASK)")
    certify.add_argument(
        "--secret-file", type=Path,
        help="a file whose bytes fix the sealed instance and all draws (default: a secret that is drawn)",
    )  # fmt: skip
    certify.add_argument(
        "--attest-isolation", metavar="REASON",
        help="attest that the agent could not reach what is sealed; the reason is registered",
    )  # fmt: skip
    certify.add_argument(
        "--web", metavar="URL", action="append", default=[],
        help="a page the main run is told of, and may read with others of its host; all it reads is "
        "recorded, and is what challengers get of the web (several --web for several pages)",
    )  # fmt: skip


def _to_forecast_coverage(add: Add) -> None:
    """What tells from a pilot of agents how many tasks all of them solve."""
    coverage = add(
        "coverage", "Forecast from a pilot of agents how many tasks all of them together solve.", _coverage,
        "  predictive-credit coverage matrix.csv --pilot 10",
        "  predictive-credit coverage matrix.csv --pilot all --agents 60 --target 0.9",
        "  predictive-credit coverage reports/ --tasks tasks.txt --study",
        "",
        "A matrix is a CSV `agent,<task>,...` of 0 and 1, a folder of SWE-bench reports, or one JSON object",
        "{agent: report}. A pilot that is drawn from it is checked against all its agents; with --pilot all",
        "the matrix is the pilot, and --agents says how many there are in all, those of the pilot included.",
        root=False,
    )  # fmt: skip
    coverage.add_argument("matrix", type=Path, help="a CSV, a JSON file, or a folder of reports")
    coverage.add_argument("--pilot", default="10", metavar="K|all", help="agents in the pilot (default: 10)")
    coverage.add_argument("--agents", type=int, metavar="M", help="agents in all, with --pilot all")
    coverage.add_argument("--first", action="store_true", help="the matrix's first agents, not random ones")
    coverage.add_argument("--target", type=float, help="a coverage, 0 to 1: how many agents reach it?")
    coverage.add_argument("--tasks", type=Path, help="the full list of tasks, for reports that lack it")
    coverage.add_argument("--seed", type=int, default=1, help="of the pilot and the draws (default: 1)")
    coverage.add_argument(
        "--study", action="store_true", help="set every forecaster against the matrix, over many pilots"
    )
    coverage.add_argument("--to", type=Path, help="the page (default: coverage.html; none with --json)")
    coverage.add_argument("--json", action="store_true", help="print one line of JSON instead")


def _to_share(add: Add) -> None:
    """What packs for others, and the configuration."""
    bundle = add(
        "bundle", "Pack a decided study into one directory that verifies anywhere.", _bundle,
        "  predictive-credit bundle molecular --to results/tox21-full",
    )  # fmt: skip
    bundle.add_argument("study", help="a decided study")
    bundle.add_argument("--to", type=Path, help="destination (default: bundles/STUDY)")
    exported = add(
        "export", "Write a frozen study in a format of others: a hubverse hub, or an Inspect log.", _export,
        "  predictive-credit export hub molecular --to hub",
        "  predictive-credit export inspect results/controlled-full --to log.json",
        "",
        "A hub has the target data once the outcomes are opened. Both come back: forecaster=file reads a",
        "hub's model-output file, forecaster=replay an Inspect log.",
    )  # fmt: skip
    exported.add_argument("format", choices=("hub", "inspect"))
    exported.add_argument("study", help="a frozen study, or a bundle's folder")
    exported.add_argument("--to", type=Path, help="default: exports/STUDY-hub or exports/STUDY.json")
    params = add(
        "params", "Compose conf/ into params.yaml, or check that they are equal.", _params,
        "  predictive-credit params --check",
        "  predictive-credit params --write scale=full",
    )  # fmt: skip
    what = params.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true", help="exit 1 with the first difference")
    what.add_argument("--write", action="store_true", help="write params.yaml")
    params.add_argument("overrides", nargs="*", help=OVERRIDES)


def _plan(args: argparse.Namespace) -> int:
    from predictive_credit.stages.counts import print_counts

    words = [args.study, *args.overrides] if args.study else list(args.overrides)
    if args.study and "=" in args.study:  # `plan scale=full`: the first word is an override
        return print_counts(args.root, None, words)
    return print_counts(args.root, args.study, words[1:])


def _power(args: argparse.Namespace) -> int:
    from predictive_credit.stages.power import Asked, run
    from predictive_credit.studies.assumptions import OPTIONS

    print(
        run(
            args.root,
            Asked(
                study=args.study, overrides=args.overrides, like=args.like, studies=args.simulations,
                stated={option: getattr(args, option) for option in OPTIONS}, as_json=args.json,
            ),
        )
    )  # fmt: skip
    return 0


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
    for pool, chosen in params.pools.items():
        if isinstance(chosen, config.FrozenPool):
            print(f"{pool}: nothing to fetch ahead, it is taken from {chosen.study} when that is decided")
        else:
            print(fetch.run(project, params, pool))
    asked = [config.of_study(params, name).forecaster for name in params.studies]
    models = {
        user.member_sha256: user
        for user in (params.forecaster, *asked, params.agent, params.extractor)
        if isinstance(user, config.Gguf)
    }
    for model in models.values():
        print(f"{model.name}: {wheels.gguf(model).name} from {model.distribution} {model.version}")
    return 0


def _run(words: Sequence[str]) -> int:
    from predictive_credit.stages.app import run

    return run(words)


def _open(args: argparse.Namespace) -> int:
    from predictive_credit.errors import BadConfig
    from predictive_credit.stages.paths import Project
    from predictive_credit.stages.pipeline import open_and_decide, open_sweep
    from predictive_credit.studies import params as study_params

    if (args.study is None) == (args.sweep is None):
        raise BadConfig("give a study of this project, or --sweep with a sweep's folder, and not both")
    if args.sweep is not None:
        open_sweep(args.sweep, args.outcomes)
        return 0
    project = Project(args.root)
    open_and_decide(project, study_params.load(project.params), args.study, args.outcomes)
    return 0


def _serve(args: argparse.Namespace) -> int:
    from predictive_credit.stages.serve import serve

    serve(args.root, port=args.port, name=args.name, study=args.study)
    return 0


def _verify(args: argparse.Namespace) -> int:
    from predictive_credit.stages.verdict import verdict

    told = verdict(args.target)
    if args.json:
        print(told.json())
    else:
        for line in told.errors:
            print(line, file=sys.stderr)
        for line in told.lines:
            print(line)
    return 0 if told.ok else 1


def _certify(args: argparse.Namespace) -> int:
    from predictive_credit.stages.certify import Command, command

    print(
        command(
            Command(
                root=args.root, task=args.task, agent=args.agent, budget=args.budget,
                to=args.to or args.root / "audits" / args.task, secret_file=args.secret_file,
                isolated=args.attest_isolation, web=tuple(args.web), overrides=tuple(args.overrides),
            )
        )
    )  # fmt: skip
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


def _export(args: argparse.Namespace) -> int:
    from predictive_credit.stages.export import export

    print(export(args.root, args.format, args.study, args.to))
    return 0


def _exchange(args: argparse.Namespace) -> int:
    from predictive_credit.stages.exchange import run

    print(run(args.root, args.places, measure=args.measure, csv=args.csv, as_json=args.json))
    return 0


def _rank(args: argparse.Namespace) -> int:
    from predictive_credit.stages.rank import Asked, run

    print(
        run(
            Asked(
                root=args.root, proposals=args.proposals, using=args.using, replay=args.replay,
                study=args.study, target=args.target, baseline=args.baseline, budget=args.budget,
                top=args.top, seed=args.seed, equal_costs=args.equal_costs, replies=args.replies,
                max_cost=args.max_cost, out=args.out, as_json=args.json,
            )
        )
    )  # fmt: skip
    return 0


def _coverage(args: argparse.Namespace) -> int:
    from predictive_credit.stages.coverage_forecast import Asked, run

    print(
        run(
            Asked(
                matrix=args.matrix, pilot=args.pilot, agents=args.agents, first=args.first,
                target=args.target, tasks=args.tasks, seed=args.seed, study=args.study, to=args.to,
                as_json=args.json,
            )
        )
    )  # fmt: skip
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
