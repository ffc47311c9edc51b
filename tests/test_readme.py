"""What the README shows, runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.small_project import decided


def test_the_notebook_lines_run_on_a_decided_project(root: Path, tmp_path, monkeypatch, capsys):
    made, _ = decided(tmp_path / "p", monkeypatch)
    (lines,) = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(), flags=re.DOTALL)
    monkeypatch.chdir(made.root)
    exec(compile(lines, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "interval_score D-M" in printed
    assert "molecular: confirmation_no_go (rule harm)" in printed or "harm_confirmed" in printed


@pytest.mark.parametrize(
    "group", ["scale", "studies", "pool", "tables", "forecaster", "agent", "extractor", "execution"]
)
def test_every_option_of_a_group_is_named(root: Path, group):
    readme = (root / "README.md").read_text()
    for option in (root / "conf" / group).glob("*.yaml"):
        assert f"`{option.stem}`" in readme, option


def test_every_command_shown_exists(root: Path):
    shown = set(re.findall(r"predictive-credit ([a-z]+)", (root / "README.md").read_text()))
    assert shown <= {
        "plan", "fetch", "run", "open", "verify", "bundle", "report", "diff", "params", "serve", "exchange",
        "export", "coverage", "certify", "power", "rank",
    }  # fmt: skip
    assert {"plan", "run", "verify", "bundle", "diff", "coverage", "certify"} <= shown


def test_no_placeholder_is_left(root: Path):
    assert re.findall(r"@[A-Z]+@", (root / "README.md").read_text()) == []


def test_no_lock_holds_an_address_and_every_lock_holds_hashes(root: Path):
    for lock in root.glob("requirements*.txt"):
        text = lock.read_text()
        assert "://" not in text
        assert "--hash=sha256:" in text
