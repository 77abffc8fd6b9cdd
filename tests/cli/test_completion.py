"""Completion at the shell, which click provides."""

import pytest
from click.testing import CliRunner

from taciturn.cli import cli


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell):
    asked = {"_TACITURN_COMPLETE": f"{shell}_source"}
    done = CliRunner().invoke(cli, env=asked, prog_name="taciturn")
    assert done.exit_code == 0
    assert "_TACITURN_COMPLETE" in done.stdout
