"""What the README and the pages show runs as it stands, and prints what they say.

The blocks of a page run one after the other, in a folder of its own that holds copies
of ``examples`` and ``models``. Comments in a page, which readers do not see, say the
rest:

- ``<!-- set up`` begins Python code that makes what the page presumes, such as a file;
- ``<!-- slow -->`` before a block: it takes more than a second, or samples by NUTS;
- ``<!-- not run: reason -->`` before a block.

What a block prints is compared with a block of text right after it; a line of dots
there stands for any lines.
"""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import pytest
from click.testing import CliRunner

from taciturn.cli import cli

mpl.use("agg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *(
        path
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if path.name[0] != "_" and "_build" not in path.parts
    ),
]
PIECE = re.compile(
    r"^<!-- set up\n(?P<set_up>.*?)-->"
    r"|(?:^<!-- (?P<mark>slow|not run: [^>\n]+) -->\n+)?"
    r"^```(?P<language>python|sh)\n(?P<code>.*?)^```$"
    r"(?:\n+```text\n(?P<printed>.*?)^```$)?",
    flags=re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    line: int
    language: str
    code: str
    mark: str
    printed: str | None


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page and what sets them up, in its order."""
    text = page.read_text(encoding="utf-8")
    for found in PIECE.finditer(text):
        start = found.start("set_up" if found["set_up"] else "code")
        line = text.count("\n", 0, start)
        code = found["set_up"] or found["code"]
        language = found["language"] or "python"
        yield Block(line, language, code, found["mark"] or "", found["printed"])


def run(page: Path, folder: Path, capsys: Any, *, slow: bool) -> None:
    for name in ("examples", "models"):
        shutil.copytree(ROOT / name, folder / name)
    names: dict[str, Any] = {}
    for block in blocks(page):
        if block.mark.startswith("not run") or (block.mark == "slow" and not slow):
            continue
        if block.language == "python":
            # as many empty lines before it as in the page, so that errors name its line
            exec(compile("\n" * block.line + block.code, str(page), "exec"), names)
            printed = capsys.readouterr().out
        else:
            printed = output_of(block.code)
        if block.printed is not None:
            compare(printed, block.printed)
    plt.close("all")


def output_of(script: str) -> str:
    """What a script prints: commands without an operator of the shell run in this
    process, as Python and its libraries take long to load."""
    if re.search(r"[|<>;$]", script):
        program = Path("taciturn")
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m taciturn "$@"\n')
        program.chmod(0o700)
        shell = ["bash", "-euc", f"PATH=$PWD:$PATH\n{script}"]
        done = subprocess.run(shell, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout
    printed = ""
    for command in re.split(r"\n| && ", script.replace("\\\n", " ").rstrip()):
        words = shlex.split(command.removeprefix("uv run "))
        if words[:3] == ["pip", "install", "uv"]:  # what runs this has it installed
            continue
        if words[0] == "taciturn":
            result = CliRunner().invoke(cli, words[1:])
            assert result.exit_code == 0, result.output or result.exception
            printed += result.stdout
        else:
            assert words[0] == "head", f"mark the block as not run: {command}"
            printed += subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
    return printed


def compare(printed: str, shown: str) -> None:
    """Hold what is printed against what a page shows, whatever its dots stand for."""
    lines = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    parts = [re.escape(part) for part in re.split(r"^\.\.\.\n", shown, flags=re.MULTILINE)]
    assert re.fullmatch(r"(?:.*\n)*?".join(parts), lines), f"{lines}\nis not\n{shown}"


def of(pages: list[Path]) -> Any:
    return pytest.mark.parametrize(
        "page", pages, ids=[str(page.relative_to(ROOT)) for page in pages]
    )


@of([page for page in PAGES if any(not block.mark for block in blocks(page))])
def test_the_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run(page, tmp_path, capsys, slow=False)


@pytest.mark.slow
@of([page for page in PAGES if any(block.mark == "slow" for block in blocks(page))])
def test_all_of_the_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run(page, tmp_path, capsys, slow=True)


@of(PAGES)
def test_no_block_is_overlooked(page):
    """Neither by an indent nor by another name of its language; a script that is not
    run exists."""
    text = page.read_text(encoding="utf-8")
    fences = re.findall(r"^ *(?:```|~~~)(python|py|pycon|sh|bash|shell|console)\b", text, re.M)
    shown = [block for block in blocks(page) if f"```{block.language}\n{block.code}" in text]
    assert len(fences) == len(shown)
    assert len(re.findall("<!--", text)) == sum(bool(block.mark) for block in blocks(page)) + sum(
        1 for _ in re.finditer("^<!-- set up$", text, re.M)
    )
    for block in shown:
        for script in re.findall(r"python (\S+\.py)", block.code):
            assert (ROOT / script).exists()
