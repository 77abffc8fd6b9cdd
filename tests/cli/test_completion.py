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


def test_options_are_completed_after_others():
    asked = {
        "_TACITURN_COMPLETE": "bash_complete",
        "COMP_WORDS": "taciturn assess --draws 9 --draws 9 --popu",
        "COMP_CWORD": "6",
    }
    done = CliRunner().invoke(cli, env=asked, prog_name="taciturn")
    assert done.stdout == "plain,--population-size\n"
