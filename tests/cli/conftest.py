"""Commands, run in this process."""

import pytest

from taciturn import cli


@pytest.fixture
def run(capsys, monkeypatch):
    """Runs a command; its status, output and messages."""

    def run(*words):
        monkeypatch.setattr("sys.argv", ["taciturn", *map(str, words)])
        status = 0
        try:
            cli.main()
        except SystemExit as done:
            status = int(done.code or 0)
        return status, *capsys.readouterr()

    return run
