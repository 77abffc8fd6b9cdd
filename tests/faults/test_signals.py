"""TERM and HUP end a command as Ctrl-C does: with its status, and nothing half
written."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from taciturn.cli.signals import Interruptions

STOPS_IN_A_WRITE = """
import sys, time
from pathlib import Path
from taciturn.cli import cli, main
from taciturn.files import whole_file

@cli.command
def write():
    with whole_file(Path("old.csv"), overwrite=True) as file:
        file.write(b"new")
        print("writing", flush=True)
        time.sleep(60)

sys.argv = ["taciturn", "write"]
main()
"""


@pytest.fixture(autouse=True)
def signals_as_by_default() -> Iterator[None]:
    """Under `nohup` and some runners HUP is ignored, by what they start too."""
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)}
    for each in before:
        signal.signal(each, signal.SIG_DFL)
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.mark.parametrize(
    ("number", "status", "message"),
    [
        (signal.SIGTERM, 143, "taciturn: ended by SIGTERM; no file is left half written\n"),
        (signal.SIGHUP, 129, "taciturn: ended by SIGHUP; no file is left half written\n"),
        (signal.SIGINT, 130, "taciturn: interrupted; no file is left half written\n"),
    ],
    ids=lambda value: value.name if isinstance(value, signal.Signals) else "",
)
def test_a_signal_during_a_write_leaves_the_old_file(number, status, message, tmp_path):
    old = tmp_path / "old.csv"
    old.write_text("old\n")
    process = subprocess.Popen(
        [sys.executable, "-c", STOPS_IN_A_WRITE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    assert len(list(tmp_path.iterdir())) == 2
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.lstrip("\n")) == (status, "", message)
    assert list(tmp_path.iterdir()) == [old]
    assert old.read_text() == "old\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_counts_and_the_handlers_are_put_back(number):
    before = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)]
    interruptions = Interruptions()
    undone = False
    try:
        with interruptions:
            try:
                signal.raise_signal(number)
            finally:
                signal.raise_signal(signal.SIGTERM)
                signal.raise_signal(signal.SIGHUP)
                undone = True
    except KeyboardInterrupt:
        assert undone
    assert interruptions.status == 128 + number
    assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)] == before


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruptions() as interruptions:
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        assert (interruptions.status, str(interruptions)) == (130, "interrupted")
    finally:
        signal.signal(signal.SIGHUP, before)
