"""One of our errors is one sentence and a status; a reader that has gone is no error."""

import subprocess
import sys

import pytest

from predictive_credit.errors import BadConfig
from predictive_credit.stages.guard import guarded


def test_an_error_of_ours_is_one_sentence_and_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    def action() -> int:
        raise BadConfig("this was asked, that was seen")

    assert guarded(action) == 1
    assert capsys.readouterr().err == "error: this was asked, that was seen\n"


def test_a_file_that_cannot_be_used_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    def action() -> int:
        raise PermissionError(13, "Permission denied", "/a/file")

    assert guarded(action) == 1
    assert capsys.readouterr().err.startswith("error: /a/file: Permission denied; check the path")


def test_a_reader_that_has_seen_enough_ends_the_command_quietly() -> None:
    code = (
        "import sys\nfrom predictive_credit.stages.guard import guarded\n"
        "def action():\n    for _ in range(10**6): print('a line that fills the pipe')\n    return 0\n"
        "sys.exit(guarded(action))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        assert run.stdout.readline() == b"a line that fills the pipe\n"
        run.stdout.close()
        assert run.stderr.read() == b""
        assert run.wait() == 1
