"""`dvc repro` with nothing to do against DVC's own start-up, which is `dvc status` of an empty repository.

    python benchmarks/dvc_repro.py

Needs a project that was reproduced once (`dvc repro`). The project itself is left alone: its copy
in a temporary folder, with its data as they are, is committed to DVC there, so nothing is to do.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import measure
from measure import Side

COPIED = ("src", "conf", "data", "metrics", "report", "dvc.yaml", "dvc.lock", "params.yaml", ".gitignore")
DVC = [sys.executable, "-m", "dvc"]


def main() -> None:
    """Print the seconds of both commands."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=7, help="rounds (default 7)")
    parser.add_argument(
        "--project", type=Path, default=measure.ROOT, help="a reproduced project (default this)"
    )
    args = parser.parse_args()
    missing = [name for name in COPIED if not (args.project / name).exists()]
    if missing:
        raise SystemExit(f"{missing[0]} is missing: run `dvc repro` once, then this again")
    measure.machine()
    with tempfile.TemporaryDirectory() as scratch:
        empty, project = Path(scratch, "empty"), Path(scratch, "project")
        for folder in (empty, project):
            _repository(folder)
        _copy(args.project, project)
        run(project, *DVC, "commit", "--force")
        said = run(project, *DVC, "repro")
        if "up to date" not in said:
            raise SystemExit(f"the copy still had something to do:\n{said}")
        timings = measure.interleaved(
            [
                Side(name="dvc status, empty repository", run=lambda: run(empty, *DVC, "status")),
                Side(name="dvc status, the project", run=lambda: run(project, *DVC, "status")),
                Side(name="dvc repro, nothing to do", run=lambda: run(project, *DVC, "repro")),
            ],
            repeats=args.repeats,
        )
        stages = said.count("didn't change")
    measure.table(f"start-up of DVC, and a project of {stages} stages", measure.compared(timings))


def run(folder: Path, *words: str) -> str:
    """What a command printed; SystemExit with its last words if it failed."""
    env = os.environ | {"DVC_NO_ANALYTICS": "1", "PYTHONPATH": str(folder / "src")}
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed: {done.stderr.strip()}")
    return done.stdout


def _repository(folder: Path) -> None:
    folder.mkdir()
    run(folder, "git", "init", "--quiet")
    run(folder, *DVC, "init", "--quiet")


def _copy(original: Path, project: Path) -> None:
    for name in COPIED:
        source = original / name
        if source.is_dir():
            shutil.copytree(source, project / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, project / name)
    shutil.copy(original / ".dvc" / "config", project / ".dvc" / "config")


if __name__ == "__main__":
    main()
