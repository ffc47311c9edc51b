"""Fixtures that many modules share: the project's root, the mirror of real tables, a private vault."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def mirror() -> Path:
    """Real MoleculeNet tables, where somebody has them."""
    folder = Path(os.environ.get("PREDICTIVE_CREDIT_MIRROR", ROOT.parent / "shared" / "data"))
    if not (folder / "molecular").is_dir():
        pytest.skip("no mirror of MoleculeNet tables; set PREDICTIVE_CREDIT_MIRROR to run this")
    return folder


@pytest.fixture(autouse=True)
def private_vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keys and the log of openings of one test, so that none touches the user's own."""
    folder = tmp_path / "vault"
    monkeypatch.setenv("PREDICTIVE_CREDIT_VAULT", str(folder))
    return folder
